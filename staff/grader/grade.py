"""The grade of a submission, as data. Every report is computed from it."""

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
    """The settings of a batch; each of its grades records them."""

    seed: str = ""
    """The seed of the fresh cases and of the inputs that tests draw; empty if cases are given."""
    device: str = "cpu"
    """The device that inputs are put on."""
    hints: Hints = "full"
    """How much the messages reveal."""
    policy: Policy = "report"
    """What a finding of ready-made code leads to: `report` shows it, `enforce` also takes the
    points of its tasks, `off` doesn't look for any."""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as keyword arguments, without the fields of a subclass."""
        return {name: getattr(self, name) for name in Settings.__struct_fields__}


class Grade(Settings, frozen=True, kw_only=True):
    """The grade of one submission."""

    format: int = FORMAT
    submission: str
    """The name of the submission: that of its folder or archive."""
    run: SuiteRun
    """The run of the suite that decides the points."""
    digest: str = ""
    """A digest of the graded files: equal files have equal digests."""
    fixtures: str
    """Where the cases came from: `fresh`, or the name of their folder."""
    sandbox: str = ""
    """The name of the backend that confined the submission."""
    protections: tuple[str, ...] = ()
    """The protections that were in force, as texts for a person."""
    left_out: tuple[LeftOut, ...] = ()
    """The files and folders that were handed in and not used."""
    scratch: tuple[ScratchFinding, ...] = ()
    """The source lines that use ready-made code for what the student had to build."""

    @property
    def graded(self) -> bool:
        """Whether the submission could be graded. If not, it has no points, not even zero."""
        return self.run.result is not None


def write_grade(grade: Grade, file: Path) -> None:
    """Write a grade as indented JSON."""
    write_whole(file, msgspec.json.format(msgspec.json.encode(grade), indent=2) + b"\n")


def read_grade(file: Path) -> Grade:
    """Read a grade that `write_grade` wrote.

    Raises:
        msgspec.MsgspecError: the file is not a grade.
    """
    return msgspec.json.decode(file.read_bytes(), type=Grade)
