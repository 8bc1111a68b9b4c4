"""The drawings of the handout: each is made by a program, and none is edited by hand."""
