"""Grade submissions: each in a sandbox of its own, as many at a time as there are cores."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from staff.grader.grade import Grade, SuiteRun
from staff.grader.intake import name_of, opened
from staff.grader.remote import Workers
from staff.grader.sandbox import Backend, Confinement, Limits
from staff.grader.warm import Job, run_warm
from staff.grader.zygote import zygote
from tests.harness.diagnosis import Hints
from tests.harness.errors import SubmissionError
from tests.harness.rubric import Limits as SuiteLimits

_GRACE = 60.0
"""Seconds that the trusted side of a run may take on top of the submission's."""


@dataclass(frozen=True, kw_only=True)
class Grading:
    """How a batch is graded."""

    cases: Path
    """The folder of cases that decide."""
    limits: SuiteLimits
    backend: Backend
    """What confines the submissions."""
    saved: Path | None = None
    """The folder of cases whose messages are told; none where `cases` tells them itself."""
    seed: str = ""
    """Of fresh cases and of what the tests draw; empty on saved cases."""
    hints: Hints = "full"
    """How much a failure says."""

    def grade(self, name: str, run: SuiteRun) -> Grade:
        """The grade of a run, with what there is to know about how it came to be."""
        return Grade(
            submission=name,
            run=run,
            fixtures="fresh" if self.seed else self.cases.name,
            seed=self.seed,
            sandbox=self.backend.name,
            protections=self.backend.protections,
            hints=self.hints,
        )

    def job(self, name: str, folder: Path, number: int, line: str) -> Job:
        """What the warm side is to do for one submission; `line` leads to the workers, if any."""
        seconds = 2 * self.limits.suite_seconds + _GRACE
        plan = Confinement(
            backend=self.backend.name,
            submission=str(folder),
            number=number,
            limits=Limits(wall_seconds=seconds),
        )
        workers = Workers(line=line, plan=plan, suite_seconds=self.limits.suite_seconds)
        return Job(
            name=name,
            folder=str(folder),
            workers=workers if line else None,
            saved=str(self.saved or ""),
            seed=self.seed,
            hints=self.hints,
            seconds=seconds,
        )


def grade_all(paths: Sequence[Path], how: Grading) -> Iterator[Grade]:
    """Grade submissions, folders or archives, and yield each grade as it comes."""
    with contextlib.ExitStack() as stack:
        folders: dict[str, Path] = {}
        for path, name in zip(paths, unique_names(paths), strict=True):
            try:
                folders[name] = stack.enter_context(opened(path)).resolve()
            except SubmissionError as error:
                yield how.grade(name, SuiteRun(problem=str(error)))
        if not folders:
            return
        line = "" if how.backend.name == "mock" else stack.enter_context(zygote())
        jobs = [how.job(*item, i, line) for i, item in enumerate(folders.items())]
        for outcome in run_warm(jobs, how.cases):
            yield how.grade(outcome.name, outcome.run)


def unique_names(paths: Sequence[Path]) -> list[str]:
    """Name the submissions; of two with one name the second gets a number."""
    names: list[str] = []
    for path in paths:
        name, number = name_of(path), 2
        while name in names:
            name, number = f"{name_of(path)}-{number}", number + 1
        names.append(name)
    return names
