"""The report as plain text, like the output of `pytest` in a terminal."""

from __future__ import annotations

from staff.grader.grade import Grade
from staff.reports.notes import notes
from staff.reports.shown import not_shown
from tests.harness import terminal
from tests.harness.rubric import Rubric


def text(grade: Grade, rubric: Rubric) -> str:
    """Return every failure, the table of tasks, the notes and the next step."""
    result = grade.run.result
    if result is None:
        return f"Could not be graded: {grade.run.problem}\n"
    lines = [line for line, _ in terminal.failures(result, rubric, everything=True)]
    lines += [line.rstrip() for line, _ in terminal.table(result, rubric)]
    lines += notes(grade)
    lines += [terminal.next_step(result, rubric), not_shown(result, rubric)]
    return "\n".join(lines).rstrip() + "\n"
