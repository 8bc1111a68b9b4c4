"""The result of a run, as one typed model: every table and report is a function of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum
from typing import Annotated, Literal, Self

import msgspec

PICTURE_SIDE = 32
"""The most rows, and the most columns, of a picture."""


class State(Enum):
    """How a test ended."""

    PASSED = "passed"
    WRONG = "wrong"
    CRASHED = "crashed"
    NOT_STARTED = "not started"
    NOT_OFFERED = "not offered"
    NOT_RUN = "not run"

    @property
    def failed(self) -> bool:
        """Whether an answer was given, and was not right."""
        return self in (State.WRONG, State.CRASHED)


Number = float | Literal["NaN", "inf", "-inf"]
"""A number that JSON can hold."""
Row = Annotated[tuple[Number, ...], msgspec.Meta(max_length=PICTURE_SIDE)]
Rows = Annotated[tuple[Row, ...], msgspec.Meta(max_length=PICTURE_SIDE)]
Marks = Annotated[tuple[bool, ...], msgspec.Meta(max_length=PICTURE_SIDE)]


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A slice of a wrong answer beside what was expected: numbers for a report to draw."""

    case: str
    """Name of the saved case."""
    where: str
    """The slice as Python writes it, such as `[0, :, 4:36]`."""
    axes: tuple[int, ...]
    """The axes that are drawn: rows and columns, or columns alone."""
    start: tuple[int, ...]
    """The first index of each of them."""
    wrong: Annotated[tuple[Marks, ...], msgspec.Meta(max_length=PICTURE_SIDE)]
    """Which values lie outside what is allowed."""
    worst: tuple[int, int]
    """Row and column, within the slice, of the value that the message names."""
    got: Rows | None = None
    """The numbers; None where hints keep them back."""
    expected: Rows | None = None


class TestResult(msgspec.Struct, frozen=True, kw_only=True):
    """One test: how it ended, what it says to the student, and whether it counts."""

    __test__ = False

    name: str
    """Name of the test function."""
    state: State
    counted: bool = True
    """False for a promise of ours on a submission in the public layout."""
    lines: tuple[str, ...] = ()
    """The explanation, the important line first; empty for a test that passed."""
    clue: str | None = None
    """What the numbers of a wrong answer say, whatever the cause."""
    picture: Picture | None = None
    """Where a wrong answer differs."""


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """One task: its tests and what they earn."""

    id: str
    title: str
    part: int
    handout: str
    earned: float
    possible: float
    """Points that this submission could earn: none where no test counts."""
    bonus: bool = False
    """Whether they come on top."""
    state: State
    """That of the gravest test that counts."""
    tests: tuple[TestResult, ...]
    known: str | None = None
    """Id of the catalogue's mistake that explains what was seen, if exactly one does."""
    blames: str | None = None
    """The task to mend first, where the cause lies in one that this task calls."""
    told: tuple[str, ...] = ()
    """What is known about the cause: the lines with which those of every failing test begin."""

    @property
    def counted(self) -> tuple[TestResult, ...]:
        """The tests among which the points are shared."""
        return tuple(test for test in self.tests if test.counted)

    @property
    def fails(self) -> bool:
        """Whether any of its tests, counted or not, got an answer that was not right."""
        return any(test.state.failed for test in self.tests)

    @property
    def complete(self) -> bool:
        """Whether every point that can be earned is earned."""
        return self.earned == self.possible

    def own_lines(self, test: TestResult) -> tuple[str, ...]:
        """What one test says, without what is told of the whole task."""
        shared = len(self.told)
        return test.lines[shared:] if test.lines[:shared] == self.told else test.lines


class Points(msgspec.Struct, frozen=True, kw_only=True):
    """Points of several tasks."""

    earned: float = 0.0
    possible: float = 0.0

    @classmethod
    def of(cls, tasks: Iterable[TaskResult]) -> Self:
        """Sum tasks up."""
        pairs = [(task.earned, task.possible) for task in tasks]
        return cls(earned=sum(e for e, _ in pairs), possible=sum(p for _, p in pairs))


class SuiteResult(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run of the suite on one submission."""

    layout: str
    """`ours`, or `public` for a submission in the layout of the public CS336 assignment."""
    earned: float
    """Without the bonus, as is `possible`."""
    possible: float
    bonus: Points = Points()
    """What comes on top: no share of `earned` in `possible` changes because of it."""
    tasks: tuple[TaskResult, ...]

    @classmethod
    def of(cls, layout: str, tasks: Iterable[TaskResult]) -> Self:
        """Sum tasks up, those of a bonus apart."""
        tasks = tuple(tasks)
        core = Points.of(task for task in tasks if not task.bonus)
        bonus = Points.of(task for task in tasks if task.bonus)
        return cls(
            layout=layout, earned=core.earned, possible=core.possible, bonus=bonus, tasks=tasks
        )


def points_text(points: float) -> str:
    """Write points with at most two decimals and no idle zeros: 3, 1.5, 2.67."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def percent_text(earned: float, possible: float) -> str:
    """Write the share of points earned, rounded down, so that 100 % means every point."""
    return f"{math.floor(100 * earned / possible + 1e-9) if possible else 0} %"
