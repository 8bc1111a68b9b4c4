"""The grade of a submission: the model that every report is a function of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from staff.files import write_whole
from staff.grader.intake.collect import LeftOut
from staff.grader.scratch.model import Policy, ScratchFinding
from staff.runner.jobs import SuiteRun
from tests.harness.diagnosis import Hints

FORMAT = 2


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about how to grade: by a batch, for each of its grades."""

    seed: str = ""
    """Of the fresh cases, which it makes again, and of what tests draw; empty on given cases."""
    device: str = "cpu"
    """Where inputs are put."""
    hints: Hints = "full"
    """How much the messages are to say."""
    policy: Policy = "report"
    """What follows where a submission isn't from scratch: at `enforce` its tasks lose points."""

    @property
    def settings(self) -> dict[str, Any]:
        """These alone."""
        return {name: getattr(self, name) for name in Settings.__struct_fields__}


class Grade(Settings, frozen=True, kw_only=True):
    """The grade of one submission."""

    format: int = FORMAT
    submission: str
    """Its name: that of its folder or archive."""
    run: SuiteRun
    digest: str = ""
    """Of what was graded: the same files give the same."""
    fixtures: str
    """Where the cases came from: `fresh`, or the name of a folder."""
    sandbox: str = ""
    """The backend that confined the submission."""
    protections: tuple[str, ...] = ()
    """What was in force, for a person to read."""
    left_out: tuple[LeftOut, ...] = ()
    """What was handed in and not used."""
    scratch: tuple[ScratchFinding, ...] = ()
    """What the submission uses of what it was to build itself."""

    @property
    def graded(self) -> bool:
        """False where the submission could not be graded, which is no zero."""
        return self.run.result is not None


def write_grade(grade: Grade, file: Path) -> None:
    """Write a grade as JSON, for a person to read and a program to load."""
    write_whole(file, msgspec.json.format(msgspec.json.encode(grade), indent=2) + b"\n")


def read_grade(file: Path) -> Grade:
    """Read what `write_grade` wrote.

    Raises:
        msgspec.MsgspecError: the file is not a grade.
    """
    return msgspec.json.decode(file.read_bytes(), type=Grade)
