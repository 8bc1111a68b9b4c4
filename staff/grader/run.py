"""Grade submissions, each in its own sandbox and as many at a time as there are cores."""

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
"""Seconds that the trusted side of a run may take in addition to the submission's time."""


class Grading(Settings, frozen=True, kw_only=True):
    """How a batch is graded, and with which rubric, cases and backend."""

    rubric: Rubric
    cases: Path
    """The folder of the cases that decide the points."""
    backend: Backend
    """The backend that confines the submissions."""
    saved: Path | None = None
    """The folder of the cases that supply the messages; None if `cases` supplies them itself."""

    @property
    def rules(self) -> Scratch | None:
        """The rules for the guard that runs beside a submission; None if no guard runs."""
        return None if self.policy == "off" else self.rubric.scratch

    def grade(
        self,
        name: str,
        run: SuiteRun,
        intake: Intake | None = None,
        digest: str = "",
        calls: Sequence[Call] = (),
    ) -> Grade:
        """Make the grade of a run.

        Args:
            name: the name of the submission.
            run: the run.
            intake: the copy of the submission; None if it could not be opened.
            digest: the digest of the copy.
            calls: the calls that the guard noted during the run.

        Raises:
            OSError: the disk is full.
        """
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

    def job(self, name: str, folder: Path, number: int, zygote_socket: int | None) -> Job:
        """Make the job that runs the suite on one submission.

        Args:
            name: the name of the submission.
            folder: the copy of the submission.
            number: a number that no other submission of the batch has.
            zygote_socket: the file descriptor of the zygote's socket; with None, the submission
                is imported in the process of the tests.
        """
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
            if zygote_socket is None
            else Workers(
                zygote_socket=zygote_socket, plan=plan, suite_seconds=limits.suite_seconds
            ).spec(),
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
    """Grade submissions, and yield each grade as soon as it is known.

    Args:
        paths: folders or archives.
        how: how to grade them.
        kept: takes the name and the digest of a submission, and returns the grade that it
            already has, or None.
    """
    with contextlib.ExitStack() as stack:
        temporary = stack.enter_context(workplace())
        taken: dict[str, Intake] = {}
        digests: dict[str, str] = {}
        for path, name in zip(paths, unique_names(paths), strict=True):
            try:
                intake = stack.enter_context(opened(path, temporary))
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
        gc.freeze()  # what is loaded by now stays loaded, so the collector can skip it
        zygote_socket = None
        if how.backend.name != "mock":
            zygote_socket = stack.enter_context(zygote(how.rules, temporary))
        jobs = [
            how.job(name, intake.folder, number, zygote_socket)
            for number, (name, intake) in enumerate(taken.items())
        ]
        for outcome in run_jobs(jobs, how.cases, {"TMPDIR": str(temporary)}):
            name = outcome.name
            calls = msgspec.json.decode(outcome.noted, type=tuple[Call, ...])
            yield how.grade(name, with_messages(outcome), taken[name], digests[name], calls)


def with_messages(outcome: Outcome) -> SuiteRun:
    """Return the run of an outcome, with messages from the saved cases if it was run on them."""
    run = outcome.run
    if run.result is None:
        return run
    return msgspec.structs.replace(run, result=in_words_of(run.result, outcome.on_saved))


def unique_names(paths: Sequence[Path]) -> list[str]:
    """Name the submissions; a name that some file system takes for an earlier one gets a number."""
    names, taken = [], {sameness(FILE)}
    for path in paths:
        name, number = name_of(path), 2
        while sameness(name) in taken:
            name, number = f"{name_of(path)}-{number}", number + 1
        names.append(name)
        taken.add(sameness(name))
    return names


def _problem(error: Exception) -> str:
    """Return the reason why one submission can't be graded.

    Raises:
        OSError: the disk is full, which concerns every submission.
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise error
    if isinstance(error, SubmissionError):
        return str(error)
    what = f"{type(error).__name__}: {first_line(error)}"
    return f"the grader failed on this submission ({what}); report this error of the grader"
