"""Grade submissions: each in a sandbox of its own, as many at a time as there are cores."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from staff.grader.grade import Grade, SuiteRun
from staff.grader.intake import name_of, opened
from staff.grader.remote import Workers
from staff.grader.sandbox import Backend, Confinement, Limits
from staff.grader.warm import Job, run_warm
from staff.grader.zygote import zygote
from tests.harness.errors import SubmissionError
from tests.harness.rubric import Limits as SuiteLimits

_GRACE = 60.0
"""Seconds that the trusted side of a run may take on top of the submission's."""


def grade_all(
    paths: Sequence[Path],
    cases: Path,
    limits: SuiteLimits,
    backend: Backend,
    saved: Path | None = None,
    seed: str = "",
) -> Iterator[Grade]:
    """Grade submissions, and yield each grade as it comes.

    Args:
        paths: folders or archives.
        cases: the folder of cases that decide.
        limits: time for one submission.
        backend: what confines the submissions.
        saved: the folder of cases whose messages are told; none where `cases` tells them itself.
        seed: of the cases, for the record.
    """
    names = unique_names(paths)
    with contextlib.ExitStack() as stack:
        jobs = []
        for number, (path, name) in enumerate(zip(paths, names, strict=True)):
            try:
                folder = stack.enter_context(opened(path)).resolve()
            except SubmissionError as error:
                yield _grade(name, SuiteRun(problem=str(error)), cases, backend, seed)
                continue
            jobs.append((name, folder, number))
        line = None if backend.name == "mock" or not jobs else stack.enter_context(zygote())
        work = [
            Job(
                name=name,
                folder=str(folder),
                workers=_workers(line, folder, number, backend, limits)
                if line is not None
                else None,
                saved=str(saved or ""),
                seed=seed,
                seconds=2 * limits.suite_seconds + _GRACE,
            )
            for name, folder, number in jobs
        ]
        for outcome in run_warm(work, cases) if work else ():
            yield _grade(outcome.name, outcome.run, cases, backend, seed)


def _workers(
    line: int, folder: Path, number: int, backend: Backend, limits: SuiteLimits
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
