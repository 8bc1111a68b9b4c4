"""The table of many grades, for whoever runs the grader."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from staff.grader.grade import Grade
from tests.harness.results import State, TaskResult, percent_text, points_text


def table(grades: list[Grade]) -> Table:
    """One line a submission: its points and what there is to know."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    for column in ("submission", "points", "share", "state"):
        shown.add_column(column, justify="right" if column in ("points", "share") else "left")
    for grade in grades:
        result = grade.run.result
        if result is None:
            problem = f"could not be graded: {grade.run.problem}"
            shown.add_row(escape(grade.submission), "—", "—", escape(problem))
            continue
        points = f"{points_text(result.earned)} / {points_text(result.possible)}"
        share = percent_text(result.earned, result.possible)
        shown.add_row(escape(grade.submission), points, share, _state(result.tasks))
    return shown


def _wrong(task: TaskResult) -> str:
    if task.blames:
        return f"{task.id}: see {task.blames}"
    return f"{task.id}: known mistake" if task.known else f"{task.id}: wrong"


def _state(tasks: tuple[TaskResult, ...]) -> str:
    waiting = sum(task.state is State.NOT_STARTED for task in tasks)
    said = [_wrong(task) for task in tasks if task.state.failed]
    said += [f"{waiting} not started"] if waiting else []
    return " · ".join(said) or "✓"
