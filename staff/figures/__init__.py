"""The pictures of the handout and the docs: each is made by a program, and none is edited by hand."""
