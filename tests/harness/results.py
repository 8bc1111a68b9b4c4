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


class Frame(msgspec.Struct, frozen=True):
    """One line of the submission that was running when it raised."""

    file: str
    """Relative to the submission's root, with forward slashes."""
    line: int
    function: str
    source: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}: {self.source}"


class CaseNote(msgspec.Struct, frozen=True, kw_only=True):
    """The saved case that a failure describes, and how many others fail with it."""

    name: str
    failing: int
    """The number of the test's saved cases that fail."""
    total: int
    """The number of the test's saved cases."""


Waiting = Literal["body", "glue", "task"]
"""What a test waits for that isn't started: the task's own code, its adapter, or another task."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a test found out: the data that terminal and reports turn into text."""

    headline: str
    """The most important thing, in one line."""
    details: tuple[str, ...] = ()
    """What else there is to say, a line each: the numbers below a sentence, for example."""
    frames: tuple[Frame, ...] = ()
    """The student's own lines that were running, the innermost last."""
    case: CaseNote | None = None
    promise: str = ""
    """What the test looks at, in one sentence."""
    clue: str | None = None
    """What the numbers of a wrong answer say, whatever the cause."""
    picture: Picture | None = None
    """Where a wrong answer differs."""
    waiting: Waiting | None = None
    """For a test that isn't started: what it waits for."""


class TestResult(msgspec.Struct, frozen=True, kw_only=True):
    """One test: how it ended, what it found out, and whether it counts."""

    __test__ = False

    name: str
    """Name of the test function."""
    state: State
    counted: bool = True
    """False for a promise of ours on a submission in the public layout."""
    failure: Failure | None = None
    """What it found out; None for a test that passed or wasn't run."""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What failing tests of a task have in common."""

    tests: tuple[str, ...]
    """The tests that it explains."""
    task: str
    """The task in which the cause lies: this one, or one that it calls."""
    mistake: str | None = None
    """Id of the catalogue's mistake, if exactly one explains what was seen."""
    sentences: tuple[str, ...] = ()
    """Each completes "This is what comes out when …"; several where known mistakes look alike."""
    nudge: str = ""
    """A question that leads to the cause."""


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """One task: its tests, what they earn, and what explains those that fail."""

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
    diagnoses: tuple[Diagnosis, ...] = ()

    @property
    def counted(self) -> tuple[TestResult, ...]:
        """The tests among which the points are shared."""
        return tuple(test for test in self.tests if test.counted)

    @property
    def failing(self) -> tuple[TestResult, ...]:
        """The tests, counted or not, that got an answer which was not right."""
        return tuple(test for test in self.tests if test.state.failed)

    @property
    def fails(self) -> bool:
        """Whether any of its tests, counted or not, got an answer that was not right."""
        return bool(self.failing)

    @property
    def complete(self) -> bool:
        """Whether every point that can be earned is earned."""
        return self.earned == self.possible

    @property
    def known(self) -> str | None:
        """Id of the mistake that was identified, if one was."""
        return next((d.mistake for d in self.diagnoses if d.mistake), None)

    @property
    def blames(self) -> str | None:
        """The task to mend first, where the cause lies in one that this task calls."""
        return next((d.task for d in self.diagnoses if d.task != self.id), None)

    def explained(self, test: TestResult) -> bool:
        """Whether a diagnosis explains a test."""
        return any(test.name in diagnosis.tests for diagnosis in self.diagnoses)


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
