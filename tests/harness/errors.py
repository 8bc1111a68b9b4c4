"""The exceptions of the suite: two families.

`HarnessError`: the suite can't continue; the text is one line for the person who runs it
├── `RubricError`       assignment.toml is not a valid rubric
├── `FixtureError`      a fixture file is missing, damaged or of another format
├── `DeviceError`       the requested device is not available
└── `SubmissionError`   the submission can't be found or imported

`Finding`: the reason why a test does not pass, as data that reports turn into text
├── `NotStarted`        the test needs code that is not written yet
├── `NotOffered`        the submission lacks something that its layout does not promise
├── `Crashed`           the submission raised an exception
└── `WrongAnswer`       the answer of the submission is wrong
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tests.harness.fingerprints import FAR, Seen
from tests.harness.results import Failure, State


def printable(line: str) -> str:
    """Escape the characters that can't be printed, such as control codes and lone surrogates."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


class HarnessError(Exception):
    """The suite can't continue; the text says in one line what is wrong and what to do."""


class RubricError(HarnessError):
    """The file `assignment.toml` is not a valid rubric."""


class FixtureError(HarnessError):
    """A fixture file is missing, damaged or of another format."""


class DeviceError(HarnessError):
    """The requested device is not available."""


class SubmissionError(HarnessError):
    """The submission can't be found or imported."""


class Finding(Exception):  # noqa: N818 - a finding is a result, not an error of the suite
    """The reason why a test does not pass: a state, and a failure as data.

    Args:
        headline: the most important fact, in one line.
        details: further facts, one a line.
        seen: the outcome, which is compared with those of known mistakes.
        shaken: returns the outcome with noise in the answer, for a seed; None if noise can't
            change the outcome.
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
    """The test needs code that is not written yet."""

    state = State.NOT_STARTED


class NotOffered(Finding):
    """The submission lacks something that its layout does not promise."""

    state = State.NOT_OFFERED


class Crashed(Finding):
    """The submission raised an exception."""

    state = State.CRASHED


class WrongAnswer(Finding):
    """The answer of the submission is wrong."""

    state = State.WRONG
