"""Grade submissions: each in a sandbox of its own, as many at a time as there are cores."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from staff.grader.grade import Grade, SuiteRun
from staff.grader.intake import Intake, name_of, opened
from staff.grader.remote import Workers
from staff.grader.sandbox import Backend, Confinement, Limits
from staff.grader.scratch.findings import enforced, findings
from staff.grader.scratch.model import Policy, ScratchFinding
from staff.grader.warm import Job, run_warm
from staff.grader.zygote import zygote
from tests.harness.errors import SubmissionError
from tests.harness.rubric import Limits as SuiteLimits
from tests.harness.rubric import Rubric

_GRACE = 60.0
"""Seconds that the trusted side of a run may take on top of the submission's."""


def grade_all(
    paths: Sequence[Path],
    cases: Path,
    rubric: Rubric,
    backend: Backend,
    saved: Path | None = None,
    seed: str = "",
    scratch: Policy = "report",
) -> Iterator[Grade]:
    """Grade submissions, and yield each grade as it comes.

    Args:
        paths: folders or archives.
        cases: the folder of cases that decide.
        rubric: the limits of one submission, and what is to be from scratch.
        backend: what confines the submissions.
        saved: the folder of cases whose messages are told; none where `cases` tells them itself.
        seed: of the cases, for the record.
        scratch: what follows where a submission isn't from scratch.
    """
    names = unique_names(paths)
    with contextlib.ExitStack() as stack:
        jobs: list[tuple[str, Intake, int]] = []
        for number, (path, name) in enumerate(zip(paths, names, strict=True)):
            try:
                intake = stack.enter_context(opened(path))
            except SubmissionError as error:
                yield _grade(name, SuiteRun(problem=str(error)), cases, backend, seed)
                continue
            jobs.append((name, intake, number))
        line = "" if backend.name == "mock" or not jobs else stack.enter_context(zygote())
        work = [
            Job(
                name=name,
                folder=str(intake.folder),
                workers=_workers(line, intake.folder, number, backend, rubric.limits)
                if line
                else None,
                saved=str(saved or ""),
                seed=seed,
                seconds=2 * rubric.limits.suite_seconds + _GRACE,
            )
            for name, intake, number in jobs
        ]
        taken = {name: intake for name, intake, _ in jobs}
        for outcome in run_warm(work, cases) if work else ():
            intake = taken[outcome.name]
            run, found = not_from_scratch(outcome.run, intake, rubric, scratch)
            yield msgspec.structs.replace(
                _grade(outcome.name, run, cases, backend, seed),
                left_out=intake.left_out,
                scratch=found,
                policy=scratch,
            )


def not_from_scratch(
    run: SuiteRun, intake: Intake, rubric: Rubric, policy: Policy
) -> tuple[SuiteRun, tuple[ScratchFinding, ...]]:
    """Find what isn't from scratch, and draw the consequence."""
    if policy == "off":
        return run, ()
    found = findings(intake.folder, rubric, run.calls)
    if policy == "enforce" and run.result is not None:
        run = msgspec.structs.replace(run, result=enforced(run.result, found))
    return run, found


def _workers(
    line: str, folder: Path, number: int, backend: Backend, limits: SuiteLimits
) -> Workers:
    plan = Confinement(
        backend=backend.name,
        submission=str(folder),
        number=number,
        limits=Limits(wall_seconds=2 * limits.suite_seconds + _GRACE),
    )
    return Workers(line=line, plan=plan, suite_seconds=limits.suite_seconds)


def _grade(name: str, run: SuiteRun, cases: Path, backend: Backend, seed: str) -> Grade:
    return Grade(
        submission=name,
        run=run,
        fixtures="fresh" if seed else cases.name,
        seed=seed,
        sandbox=backend.name,
        protections=backend.protections,
    )


def unique_names(paths: Sequence[Path]) -> list[str]:
    """Name the submissions; of two with one name the second gets a number."""
    names: list[str] = []
    for path in paths:
        name, number = name_of(path), 2
        while name in names:
            name, number = f"{name_of(path)}-{number}", number + 1
        names.append(name)
    return names
