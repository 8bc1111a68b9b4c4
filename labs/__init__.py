"""Labs: small programs that show what your own model does."""
