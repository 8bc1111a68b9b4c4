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

from collections.abc import Callable
from typing import Any, ClassVar

from tests.harness.fingerprints import FAR, Seen
from tests.harness.results import Failure, State


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


class Finding(Exception):  # noqa: N818 - a finding is a result, not an error of the suite
    """What a test found out about a submission: a state, and a failure as data.

    Args:
        headline: the most important thing, in one line.
        details: what else there is to say, a line each.
        seen: what came out, to be held against known mistakes.
        shaken: the same with the answer disturbed by a seeded noise, where noise can change it.
        about: the other fields of `Failure`.
    """

    state: ClassVar[State]

    def __init__(
        self,
        headline: str,
        *details: str,
        seen: Seen | None = None,
        shaken: Callable[[str], Seen] | None = None,
        **about: Any,
    ) -> None:
        super().__init__("\n".join((headline, *details)))
        headline, *rest = (printable(line) for line in (headline, *details))
        self.failure = Failure(headline=headline, details=tuple(rest), **about)
        self.seen = seen or Seen(kind="says", why=headline, error=FAR)
        self.shaken = shaken or (lambda _: self.seen)


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
