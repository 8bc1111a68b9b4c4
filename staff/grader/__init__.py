"""The grader: submissions in, grades and reports out. It knows nothing about Transformers."""
