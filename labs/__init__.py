"""Small programs to look at one's own model with."""
