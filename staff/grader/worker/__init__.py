"""The worker: the process that runs a submission, and how the grader talks with it."""
