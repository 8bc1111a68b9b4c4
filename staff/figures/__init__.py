"""The pictures of the handout and the docs: each is made by a program, none is edited by hand."""
