"""The figures of the handout and the docs: programs make all of them, nobody edits them by hand."""
