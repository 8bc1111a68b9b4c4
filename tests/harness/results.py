"""The result of a run as typed data, from which every table and report is made."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum
from typing import Annotated, Literal, Self

import msgspec

PICTURE_SIDE = 32
"""The largest number of rows, and of columns, in a picture."""


class State(Enum):
    """The state of a test or task at the end of a run."""

    PASSED = "passed"
    WRONG = "wrong"
    CRASHED = "crashed"
    NOT_STARTED = "not started"
    NOT_OFFERED = "not offered"
    NOT_RUN = "not run"

    @property
    def failed(self) -> bool:
        """Whether the submission gave a wrong answer or raised an exception."""
        return self in (State.WRONG, State.CRASHED)


Number = float | Literal["NaN", "inf", "-inf"]
"""A number in a form that JSON can hold."""
Row = Annotated[tuple[Number, ...], msgspec.Meta(max_length=PICTURE_SIDE)]
Rows = Annotated[tuple[Row, ...], msgspec.Meta(max_length=PICTURE_SIDE)]
Marks = Annotated[tuple[bool, ...], msgspec.Meta(max_length=PICTURE_SIDE)]


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A slice of a wrong answer and of the right answer, for a report to draw."""

    case: str
    """The name of the saved case."""
    where: str
    """The slice in Python's notation, such as `[0, :, 4:36]`."""
    axes: tuple[int, ...]
    """The axes that are drawn: rows and columns, or only columns."""
    start: tuple[int, ...]
    """The first index of the slice on each of these axes."""
    wrong: Annotated[tuple[Marks, ...], msgspec.Meta(max_length=PICTURE_SIDE)]
    """For each value of the slice, whether its error exceeds the limit."""
    worst: tuple[int, int]
    """The row and the column, within the slice, of the value that the message names."""
    got: Rows | None = None
    """The values of the wrong answer; None if hints hide them."""
    expected: Rows | None = None
    """The values of the right answer; None if hints hide them."""


class Frame(msgspec.Struct, frozen=True):
    """One line of the submission's code in a traceback."""

    file: str
    """The path relative to the submission's root, with forward slashes."""
    line: int
    """The line number."""
    function: str
    source: str
    """The text of the line."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}: {self.source}"


class CaseNote(msgspec.Struct, frozen=True, kw_only=True):
    """The saved case that a failure describes, and the number of the test's cases that fail."""

    name: str
    failing: int
    """The number of saved cases of the test that fail."""
    total: int
    """The number of saved cases of the test."""


Waiting = Literal["body", "glue", "task"]
"""The missing code of a test that is not started: the task's own, its adapter, or another task."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reason why a test does not pass, as data that the terminal and reports turn into text."""

    headline: str
    """The most important fact, in one line."""
    details: tuple[str, ...] = ()
    """Further facts, one a line; for example, the largest difference."""
    frames: tuple[Frame, ...] = ()
    """The student's own lines in the traceback, the innermost last."""
    case: CaseNote | None = None
    promise: str = ""
    """The promise that the test checks, in one sentence; a student reads it."""
    clue: str | None = None
    """An observation about a wrong answer that is true whatever the cause is."""
    picture: Picture | None = None
    """The values around the worst one of a wrong answer."""
    waiting: Waiting | None = None
    """The missing code, for a test that is not started."""


class TestResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one test."""

    __test__ = False

    name: str
    """The name of the test function."""
    state: State
    counted: bool = True
    """Whether the test earns points.

    It does not for a submission in the public layout if the public handout does not promise what
    it checks.
    """
    failure: Failure | None = None
    """The reason why the test does not pass; None if it passed or did not run."""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A common cause of failing tests of one task."""

    tests: tuple[str, ...]
    """The names of the tests that the cause explains."""
    task: str
    """The id of the task whose code has the cause: this task, or one that it calls."""
    mistake: str | None = None
    """The id of the mistake in the catalogue, if exactly one explains the failures."""
    sentences: tuple[str, ...] = ()
    """Sentences that complete "This is what comes out when …", one for each possible mistake."""
    nudge: str = ""
    """A question that leads the student to the cause."""


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one task: its tests, its points, and the diagnoses of its failures."""

    id: str
    title: str
    part: int
    handout: str
    earned: float
    possible: float
    """The points that this submission can earn: 0 if no test of the task counts."""
    bonus: bool = False
    """Whether these are bonus points."""
    state: State
    """The worst state among the tests that count, or among all tests if none counts."""
    tests: tuple[TestResult, ...]
    diagnoses: tuple[Diagnosis, ...] = ()

    @property
    def counted(self) -> tuple[TestResult, ...]:
        """The tests that count; they share the points of the task."""
        return tuple(test for test in self.tests if test.counted)

    @property
    def failing(self) -> tuple[TestResult, ...]:
        """The tests, counted or not, that got a wrong answer or an exception."""
        return tuple(test for test in self.tests if test.state.failed)

    @property
    def fails(self) -> bool:
        """Whether any test, counted or not, got a wrong answer or an exception."""
        return bool(self.failing)

    @property
    def complete(self) -> bool:
        """Whether the task earned every point that it can earn."""
        return self.earned == self.possible

    @property
    def known(self) -> str | None:
        """The id of the identified mistake; None if there is none."""
        return next((d.mistake for d in self.diagnoses if d.mistake), None)

    @property
    def blames(self) -> str | None:
        """The id of the called task that must be mended first; None if there is none."""
        return next((d.task for d in self.diagnoses if d.task != self.id), None)

    def explained(self, test: TestResult) -> bool:
        """Return whether a diagnosis explains the test."""
        return any(test.name in diagnosis.tests for diagnosis in self.diagnoses)


class Points(msgspec.Struct, frozen=True, kw_only=True):
    """The points of several tasks."""

    earned: float = 0.0
    possible: float = 0.0

    @classmethod
    def of(cls, tasks: Iterable[TaskResult]) -> Self:
        """Add up the points of tasks."""
        pairs = [(task.earned, task.possible) for task in tasks]
        return cls(earned=sum(e for e, _ in pairs), possible=sum(p for _, p in pairs))


class SuiteResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a whole run of the suite on one submission."""

    layout: str
    """`ours`, or `public` for a submission in the layout of the public CS336 assignment."""
    earned: float
    """The points earned, without the bonus."""
    possible: float
    """The points that can be earned, without the bonus."""
    bonus: Points = Points()
    """The bonus points."""
    tasks: tuple[TaskResult, ...]

    @classmethod
    def of(cls, layout: str, tasks: Iterable[TaskResult]) -> Self:
        """Add up the points of tasks, with the bonus points apart."""
        tasks = tuple(tasks)
        core = Points.of(task for task in tasks if not task.bonus)
        bonus = Points.of(task for task in tasks if task.bonus)
        return cls(
            layout=layout, earned=core.earned, possible=core.possible, bonus=bonus, tasks=tasks
        )


def points_text(points: float) -> str:
    """Format points with at most two decimals and no trailing zeros: 3, 1.5, 2.67."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def percent_text(earned: float, possible: float) -> str:
    """Format the share of points earned as a percentage.

    It is rounded down, so that 100 % means every point.
    """
    return f"{math.floor(100 * earned / possible + 1e-9) if possible else 0} %"
