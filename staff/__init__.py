"""The instructors' side: the solution, the catalogue of mistakes, the saved cases, the grader."""
