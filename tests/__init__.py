"""The graded suite: fixed, read by students, laid over a submission's own tests by a grader."""
