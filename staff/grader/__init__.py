"""The grader turns submissions into grades. It knows nothing about Transformers."""
