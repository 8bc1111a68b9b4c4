"""The two families of exceptions of the suite.

`HarnessError` (the suite can't go on; one line for whoever runs it)
├── `RubricError`       assignment.toml is not what it should be
├── `FixtureError`      a saved file is missing, damaged or of another format
├── `DeviceError`       the device that was asked for is not here
└── `SubmissionError`   the submission can't be found or imported

`Finding` (what a test found out about a submission; data that reports render)
├── `NotStarted`        a body is still the stub's
├── `NotOffered`        a promise the public layout doesn't make, and this submission doesn't keep
├── `Crashed`           the submission raised
└── `WrongAnswer`       it answered, and the answer is wrong
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tests.harness.results import Picture, State


def printable(line: str) -> str:
    """Escape what no report can hold: lone surrogates, and control characters of a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


class HarnessError(Exception):
    """The suite can't go on: one line that says what is wrong and what to do."""


class RubricError(HarnessError):
    """`assignment.toml` is not what it should be."""


class FixtureError(HarnessError):
    """A saved file is missing, damaged, or of another format."""


class DeviceError(HarnessError):
    """The device that was asked for is not here."""


class SubmissionError(HarnessError):
    """The submission can't be found or imported."""


@dataclass(frozen=True)
class Frame:
    """One line of the submission that was running when it raised."""

    file: str
    """Relative to the submission's root, with forward slashes."""
    line: int
    function: str
    source: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}: {self.source}"


class Finding(Exception):  # noqa: N818 - a finding is a result, not an error of the suite
    """What a test found out about a submission: a state, and lines with the important one first."""

    state: ClassVar[State]

    def __init__(
        self, *lines: str, clue: str | None = None, picture: Picture | None = None
    ) -> None:
        super().__init__("\n".join(lines))
        self.lines = tuple(printable(line) for line in lines)
        self.clue = clue
        """What the numbers say, for when no known mistake fits."""
        self.picture = picture
        """Where the answer differs from a saved one."""


class NotStarted(Finding):
    """A body that the test needs is still the stub's."""

    state = State.NOT_STARTED


class NotOffered(Finding):
    """The submission lacks something that its layout doesn't promise."""

    state = State.NOT_OFFERED


class Crashed(Finding):
    """The submission raised an exception."""

    state = State.CRASHED


class WrongAnswer(Finding):
    """The submission answered, and the answer is not right."""

    state = State.WRONG
