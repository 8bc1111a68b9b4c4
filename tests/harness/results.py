"""The result of a run, as one typed model: every table and report is a function of it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import msgspec


class State(Enum):
    """How a test ended."""

    PASSED = "passed"
    WRONG = "wrong"
    CRASHED = "crashed"
    NOT_STARTED = "not started"
    NOT_OFFERED = "not offered"
    NOT_RUN = "not run"


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


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """One task: its tests and what they earn."""

    id: str
    title: str
    part: int
    points: float
    handout: str
    tests: tuple[TestResult, ...]

    @property
    def counted(self) -> tuple[TestResult, ...]:
        """The tests among which the points are shared."""
        return tuple(test for test in self.tests if test.counted)

    @property
    def possible(self) -> float:
        """Points that can be earned: none where no test counts."""
        return self.points if self.counted else 0.0

    @property
    def earned(self) -> float:
        """Points earned: shared equally among the tests that count."""
        if not self.counted:
            return 0.0
        passed = sum(test.state is State.PASSED for test in self.counted)
        return self.points * passed / len(self.counted)

    @property
    def complete(self) -> bool:
        """Whether every point that can be earned is earned."""
        return all(test.state is State.PASSED for test in self.counted)

    @property
    def state(self) -> State:
        """The task's state: that of its gravest counted test, in the order a student meets them."""
        states = {test.state for test in self.counted or self.tests}
        order = (State.CRASHED, State.WRONG, State.NOT_STARTED, State.NOT_RUN, State.NOT_OFFERED)
        return next((state for state in order if state in states), State.PASSED)


class SuiteResult(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run of the suite on one submission."""

    layout: str
    """`ours`, or `public` for a submission in the layout of the public CS336 assignment."""
    tasks: tuple[TaskResult, ...]

    @property
    def earned(self) -> float:
        """Points earned in all tasks."""
        return sum(task.earned for task in self.tasks)

    @property
    def possible(self) -> float:
        """Points that this submission can earn."""
        return sum(task.possible for task in self.tasks)


def points_text(points: float) -> str:
    """Write points with at most two decimals and no idle zeros: 3, 1.5, 2.67."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def percent_text(parts: Iterable[TaskResult]) -> str:
    """Write the share of points earned, rounded down, so that 100 % means every point."""
    tasks = list(parts)
    possible = sum(task.possible for task in tasks)
    earned = sum(task.earned for task in tasks)
    return f"{int(100 * earned / possible + 1e-9) if possible else 0} %"
