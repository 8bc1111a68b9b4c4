"""For instructors: the solution, the catalogue of mistakes, the fixtures, the grader."""
