"""My solution of the model half of assignment 1."""
