"""Grade submissions: each in a sandbox of its own, as many at a time as there are cores."""

from __future__ import annotations

import contextlib
import errno
import gc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from staff.grader.batch import FILE, digest_of
from staff.grader.grade import Grade, Settings
from staff.grader.intake import Intake, name_of, opened
from staff.grader.intake.names import sameness
from staff.grader.messages import in_words_of
from staff.grader.sandbox import Backend, Confinement, Limits
from staff.grader.scratch.findings import enforced, findings
from staff.grader.scratch.model import Call, ScratchFinding
from staff.grader.worker.remote import Workers
from staff.grader.worker.zygote import zygote
from staff.grader.workplace import workplace
from staff.runner.jobs import Job, Outcome, SuiteRun, run_jobs
from tests.harness.errors import SubmissionError
from tests.harness.rubric import Rubric, Scratch
from tests.harness.submission import first_line

_GRACE = 60.0
"""Seconds that the trusted side of a run may take on top of the submission's."""


class Grading(Settings, frozen=True, kw_only=True):
    """How a batch is graded, and with what."""

    rubric: Rubric
    cases: Path
    """The folder of cases that decide."""
    backend: Backend
    """What confines the submissions."""
    saved: Path | None = None
    """The folder of cases whose messages are told; none where `cases` tells them itself."""

    @property
    def rules(self) -> Scratch | None:
        """What the guard beside a submission is to note."""
        return None if self.policy == "off" else self.rubric.scratch

    def grade(
        self,
        name: str,
        run: SuiteRun,
        intake: Intake | None = None,
        digest: str = "",
        calls: Sequence[Call] = (),
    ) -> Grade:
        """The grade of a run, with what there is to know about how it came to be."""
        found: tuple[ScratchFinding, ...] = ()
        if intake is not None and self.policy != "off":
            try:
                found = findings(intake.folder, self.rubric, calls)
            except Exception as error:  # noqa: BLE001 - no submission may stop the others
                run = SuiteRun(problem=_problem(error))
        if self.policy == "enforce" and run.result is not None:
            run = msgspec.structs.replace(run, result=enforced(run.result, found))
        return Grade(
            submission=name,
            run=run,
            digest=digest,
            fixtures="fresh" if self.seed else self.cases.name,
            sandbox=self.backend.name,
            protections=self.backend.protections,
            left_out=intake.left_out if intake else (),
            scratch=found,
            **self.settings,
        )

    def job(self, name: str, folder: Path, number: int, line: int | None) -> Job:
        """What the warm side is to do for one submission; `line` leads to the workers, if any."""
        limits = self.rubric.limits
        seconds = 2 * limits.suite_seconds + _GRACE
        plan = Confinement(
            backend=self.backend.name,
            submission=str(folder),
            number=number,
            limits=Limits(wall_seconds=seconds),
        )
        return Job(
            name=name,
            folder=str(folder),
            bridge=None
            if line is None
            else Workers(line=line, plan=plan, suite_seconds=limits.suite_seconds).spec(),
            annotate=True,
            saved=str(self.saved or ""),
            seed=self.seed,
            device=self.device,
            hints=self.hints,
            seconds=seconds,
        )


def grade_all(
    paths: Sequence[Path],
    how: Grading,
    kept: Callable[[str, str], Grade | None] = lambda _name, _digest: None,
) -> Iterator[Grade]:
    """Grade submissions, and yield each grade as it comes.

    Args:
        paths: folders or archives.
        how: how to grade them.
        kept: gives the grade that a submission has already, from its name and its digest.
    """
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(workplace())
        taken: dict[str, Intake] = {}
        digests: dict[str, str] = {}
        for path, name in zip(paths, unique_names(paths), strict=True):
            try:
                intake = stack.enter_context(opened(path, place))
            except Exception as error:  # noqa: BLE001 - no submission may stop the others
                yield how.grade(name, SuiteRun(problem=_problem(error)))
                continue
            digests[name] = digest_of(intake)
            if (earlier := kept(name, digests[name])) is not None:
                yield earlier
            else:
                taken[name] = intake
        if not taken:
            return
        gc.freeze()  # what is loaded by now stays, and needn't be walked for garbage ever again
        line = None if how.backend.name == "mock" else stack.enter_context(zygote(how.rules, place))
        jobs = [
            how.job(name, intake.folder, number, line)
            for number, (name, intake) in enumerate(taken.items())
        ]
        for outcome in run_jobs(jobs, how.cases, {"TMPDIR": str(place)}):
            name = outcome.name
            calls = msgspec.json.decode(outcome.noted, type=tuple[Call, ...])
            yield how.grade(name, with_messages(outcome), taken[name], digests[name], calls)


def with_messages(outcome: Outcome) -> SuiteRun:
    """What a run came to, in the words of the saved cases where it was run on them too."""
    run = outcome.run
    if run.result is None:
        return run
    return msgspec.structs.replace(run, result=in_words_of(run.result, outcome.on_saved))


def unique_names(paths: Sequence[Path]) -> list[str]:
    """Name the submissions; of two that some file system takes for one the second gets a number."""
    names, taken = [], {sameness(FILE)}
    for path in paths:
        name, number = name_of(path), 2
        while sameness(name) in taken:
            name, number = f"{name_of(path)}-{number}", number + 1
        names.append(name)
        taken.add(sameness(name))
    return names


def _problem(error: Exception) -> str:
    """Why one submission can't be graded.

    Raises:
        OSError: a disk is full, which concerns all of them.
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise error
    if isinstance(error, SubmissionError):
        return str(error)
    return f"the grader can't deal with it ({type(error).__name__}: {first_line(error)})"
