"""A language model written as plain functions of inputs and weights."""
