"""The picture of an audit: how far the errors of right answers and mistakes are from the limit.

A picture with one row for each task fits on a screen. One row for each saved case shows in which
case right answers and mistakes are closest.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from labs.drawing import GREEN, GREY, INK, RED, write
from staff.validation.audit import Audit, CaseMargins

_RIGHT, _WRONG = "the right answer with the largest error", "the mistake with the smallest error"
_FLOOR = 1e-3
"""An error below this share of the limit is drawn at the left edge."""
_CEILING = 1e7
"""An error of more limits than this is drawn at the right edge."""


class _Row(NamedTuple):
    name: str
    right: float
    """The largest error of a right answer, in units of the limit."""
    wrong: float | None
    """The smallest error of a mistake, in units of the limit; None if no mistake has one."""


def draw(audit: Audit, file: Path, *, by_case: bool = False) -> None:
    """Draw the errors on a logarithmic axis, in units of the limit, and write an SVG.

    Args:
        audit: the results.
        file: the SVG; its folder is made if it is missing.
        by_case: draw one row for each saved case, not one for each task.
    """
    rows = _cases(audit.cases) if by_case else _tasks(audit)
    file.parent.mkdir(parents=True, exist_ok=True)
    write(lambda: _figure(rows, "case by case" if by_case else "task by task"), file)


def _cases(cases: Sequence[CaseMargins]) -> list[_Row]:
    return [
        _Row(
            f"{case.task} · {case.case}",
            case.right / case.limit,
            None if case.wrong is None else case.wrong / case.limit,
        )
        for case in cases
    ]


def _tasks(audit: Audit) -> list[_Row]:
    """Make one row for each task: the largest error of a right answer, the smallest of a mistake.

    The error of a mistake is its error in the case that shows it best.
    """
    rows = []
    for task in dict.fromkeys(case.task for case in audit.cases):
        right = [case.right / case.limit for case in audit.cases if case.task == task]
        wrong = [
            verdict.margin
            for verdict in audit.mistakes
            if verdict.task == task and verdict.shows == "value" and verdict.margin is not None
        ]
        rows.append(_Row(task, max(right), min(wrong, default=None)))
    return rows


def _figure(rows: Sequence[_Row], how: str) -> Figure:
    height = 0.19 * len(rows) + 1.5
    figure = Figure(figsize=(9, height), layout="constrained")
    axes = figure.subplots()
    heights = range(len(rows))
    right = [min(max(row.right, _FLOOR), _CEILING) for row in rows]
    wrong = [(min(row.wrong, _CEILING), i) for i, row in enumerate(rows) if row.wrong]
    axes.hlines(heights, right, 1.0, color=GREEN, lw=1, alpha=0.4)
    axes.scatter(right, heights, s=16, color=GREEN, label=_RIGHT, zorder=3)
    axes.axvline(1.0, color=INK, lw=1.2, label="limit")
    errors, caught = [error for error, _ in wrong], [i for _, i in wrong]
    axes.hlines(caught, 1.0, errors, color=RED, lw=1, alpha=0.3)
    axes.scatter(errors, caught, s=16, color=RED, label=_WRONG, zorder=3)
    axes.set(xscale="log", xlim=(_FLOOR * 0.7, _CEILING * 1.5), ylim=(len(rows), -1))
    axes.set_yticks(heights, [row.name for row in rows], fontsize=8, color=INK)
    axes.tick_params(length=0)
    axes.grid(axis="x", color=GREY, alpha=0.3, lw=0.6)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("error ÷ limit")
    axes.set_title(f"Errors of right answers and mistakes, {how}", loc="left", color=INK)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    return figure
