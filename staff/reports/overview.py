"""The table of all grades of a batch, for the person who runs the grader."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from staff.grader.grade import Grade
from tests.harness.results import (
    Points,
    State,
    SuiteResult,
    TaskResult,
    percent_text,
    points_text,
)


def table(grades: list[Grade]) -> Table:
    """Return a table with one row for each submission: its points and the state of its tasks."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    with_bonus = any(it.run.result and it.run.result.bonus.possible for it in grades)
    for column in ("submission", "points", "share", *["bonus"] * with_bonus, "state"):
        shown.add_column(column, justify="left" if column in ("submission", "state") else "right")
    for grade in grades:
        result = grade.run.result
        if result is None:
            problem = f"could not be graded: {grade.run.problem}"
            shown.add_row(escape(grade.submission), "—", "—", *["—"] * with_bonus, escape(problem))
            continue
        share = percent_text(result.earned, result.possible)
        bonus = [_points(result.bonus) if result.bonus.possible else "—"] * with_bonus
        row = (_points(result), share, *bonus, _state(result))
        shown.add_row(escape(grade.submission), *row)
    return shown


def _points(it: SuiteResult | Points) -> str:
    return f"{points_text(it.earned)} / {points_text(it.possible)}"


def _wrong(task: TaskResult) -> str:
    if task.blames:
        return f"{task.id}: see {task.blames}"
    return f"{task.id}: known mistake" if task.known else f"{task.id}: wrong"


def _state(result: SuiteResult) -> str:
    not_started = sum(task.state is State.NOT_STARTED and not task.bonus for task in result.tasks)
    states = [_wrong(task) for task in result.tasks if task.state.failed]
    states += [f"{not_started} not started"] if not_started else []
    # The public layout offers fewer points. Earning them all must not look like a full score.
    layout = ["public layout"] if result.layout == "public" else []
    return " · ".join([*(states or ["✓"]), *layout])
