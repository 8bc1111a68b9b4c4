"""Draws the one picture of `docs/architecture.md`: `python -m staff.figures.architecture`.

The picture shows the two journeys of the product, box by box. The left column follows an answer
until it earns a point. The right column follows an input until it becomes a saved case.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from labs.drawing import BLUE, GOLD, GREEN, GREY, INK, TINTS, write

FILE = Path(__file__).parents[2] / "docs" / "figures" / "architecture.svg"

Owner = Literal["student", "suite", "staff"]
COLOURS: dict[Owner, str] = {"student": GOLD, "suite": BLUE, "staff": GREEN}
"""The colour of a box, which shows who writes the file or folder."""


class Box(NamedTuple):
    """A folder or a file, and what happens there."""

    path: str
    """The path from the repository's root; `<stem>` stands for the stem of a task."""
    says: str
    owner: Owner


ANSWER: Sequence[Box] = (
    Box("cs336_basics/<stem>.py", "the student's function answers", "student"),
    Box("adapters.py", "hands the answer on", "student"),
    Box("tests/harness/bridge.py", "only plain data crosses", "suite"),
    Box("tests/test_<stem>.py", "asks, and calls cases.check", "suite"),
    Box("tests/harness/compare.py", "error against the limit", "suite"),
    Box("tests/harness/scoring.py", "passed tests become points", "suite"),
    Box("tests/harness/diagnosis.py", "failures get a cause", "suite"),
    Box("staff/reports/", "table, page, results.json …", "staff"),
)
"""The boxes of the left column, from top to bottom."""
CASE: Sequence[Box] = (
    Box("staff/fixtures/inputs/<stem>.py", "draws the inputs", "staff"),
    Box("staff/fixtures/oracle/<stem>.py", "computes the expected tensors", "staff"),
    Box("staff/solution/", "must agree with it to 1e-12", "staff"),
    Box("staff/catalogue/alternates/", "right answers set the limit", "staff"),
    Box("staff/catalogue/mistakes/", "wrong answers leave fingerprints", "staff"),
    Box("tests/fixtures/", "answers, limits, fingerprints", "suite"),
)
"""The boxes of the right column, from top to bottom."""

_WIDTH, _HEIGHT, _STEP = 46.0, 8.6, 13.0
_LEFT, _RIGHT = 0.0, 54.0
_FIRST = 3.0
_SMALL, _LARGE = 9.5, 11.0


def architecture() -> Figure:
    """Draw the two journeys side by side, with a legend below the right one."""
    figure = Figure(figsize=(6.1, 7.3))
    axes = figure.add_axes((0, 0, 1, 1))
    _sandbox(axes)
    for left, title, boxes in (
        (_LEFT, "An answer becomes a point", ANSWER),
        (_RIGHT, "An input becomes a saved case", CASE),
    ):
        middle = left + _WIDTH / 2
        axes.text(middle, 0, title, fontsize=_LARGE, fontweight="bold", ha="center", va="center")
        for row, box in enumerate(boxes):
            _draw(axes, left, _top(row), box)
            if row:
                _arrow(axes, (middle, _top(row - 1) + _HEIGHT), (middle, _top(row)))
    _arrow(axes, (_RIGHT, _top(5) + 2), (_LEFT + _WIDTH, _top(4) + 5), curve=-0.2)
    _arrow(axes, (_RIGHT, _top(5) + 6), (_LEFT + _WIDTH, _top(6) + 4), curve=0.2)
    _legend(axes, _top(6) + 1)
    axes.set(xlim=(-2.5, 101), ylim=(_top(8) - 2, -3))
    axes.set_axis_off()
    return figure


def _top(row: int) -> float:
    return _FIRST + row * _STEP


def _draw(axes: Axes, left: float, top: float, box: Box) -> None:
    colour = COLOURS[box.owner]
    shape = FancyBboxPatch(
        (left, top),
        _WIDTH,
        _HEIGHT,
        boxstyle="round,pad=0,rounding_size=1.2",
        facecolor=TINTS[colour],
        edgecolor=colour,
        linewidth=1.2,
    )
    axes.add_patch(shape)
    middle = left + _WIDTH / 2
    mono = "DejaVu Sans Mono"
    axes.text(middle, top + 2.7, box.path, family=mono, fontsize=_SMALL, ha="center", va="center")
    axes.text(middle, top + 6.1, box.says, fontsize=_SMALL, ha="center", va="center")


def _arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], curve: float = 0.0
) -> None:
    arrow = FancyArrowPatch(
        start,
        end,
        arrowstyle="-|>",
        connectionstyle=f"arc3,rad={curve}",
        mutation_scale=12,
        shrinkA=0,
        shrinkB=0,
        color=INK,
        linewidth=1.3,
    )
    axes.add_patch(arrow)


def _sandbox(axes: Axes) -> None:
    """Draw a frame around the boxes that run in a sandbox when a submission is graded."""
    height = _top(1) + _HEIGHT - _top(0) + 2.8
    frame = FancyBboxPatch(
        (_LEFT - 1.6, _top(0) - 1.4),
        _WIDTH + 3.2,
        height,
        boxstyle="round,pad=0,rounding_size=1.2",
        facecolor="none",
        edgecolor=GREY,
        linestyle=(0, (4, 3)),
        linewidth=1.2,
    )
    axes.add_patch(frame)


def _legend(axes: Axes, top: float) -> None:
    """Explain the colours and the dashed frame."""
    meanings = {
        COLOURS["student"]: "the student writes it",
        COLOURS["suite"]: "the suite: fixed, never imports staff",
        COLOURS["staff"]: "staff: never released",
    }
    for row, (colour, meaning) in enumerate(meanings.items()):
        y = top + 4 * row
        square = FancyBboxPatch(
            (_RIGHT, y - 1.2),
            3.4,
            2.4,
            boxstyle="round,pad=0,rounding_size=0.5",
            facecolor=TINTS[colour],
            edgecolor=colour,
        )
        axes.add_patch(square)
        axes.text(_RIGHT + 5, y, meaning, fontsize=_SMALL, va="center")
    y = top + 4 * len(meanings)
    axes.plot([_RIGHT, _RIGHT + 3.4], [y, y], color=GREY, linestyle=(0, (4, 3)), linewidth=1.2)
    axes.text(_RIGHT + 5, y, "in a sandbox, when graded", fontsize=_SMALL, va="center")


if __name__ == "__main__":
    write(architecture, FILE)
    sys.stdout.write(f"{FILE}\n")
