"""Noise: the saved cases must mean the same on a processor that rounds otherwise.

Every answer of the solution and of each mistake is seen once more for each of several seeds, with
every value off by a random share of up to `fingerprints.NOISE`. The solution must stay right, and
no fingerprint in the files of saved cases may change.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from staff.catalogue.patches import Mistake
from staff.catalogue.subjects import Subject, lay_out
from staff.files import quick_folder
from staff.fixtures.signatures import repeatable, unsettled
from staff.runner.jobs import Job, Outcome, run_jobs
from staff.validation.judge import Progress, Section
from tests.harness.fixtures import Fixtures

SEEDS = 20


def judge_noise(cases: Path, progress: Progress, seeds: int = SEEDS, sample: int = 1) -> Section:
    """Disturb every answer with each seed, and hold what is seen against the saved fingerprints.

    Args:
        cases: the folder of saved cases.
        progress: is told how many are done, and of how many.
        seeds: how many seeds.
        sample: take one mistake in so many.
    """
    fixtures = Fixtures(cases)
    with TemporaryDirectory(prefix="noise-", dir=quick_folder()) as scratch:
        laid_out = lay_out(Path(scratch), ("solution", "mistake"))
        subjects = {
            subject.name: subject
            for subject in laid_out
            if not subject.patch or zlib.crc32(subject.name.encode()) % sample == 0
        }
        jobs = [
            Job(name=s.name, folder=str(s.folder), tasks=s.reach, noise=seeds)
            for s in subjects.values()
        ]
        problems: list[tuple[str, str]] = []
        for number, outcome in enumerate(run_jobs(jobs, cases), start=1):
            subject = subjects[outcome.name]
            problems += [(subject.name, found) for found in _changes(subject, outcome, fixtures)]
            progress("subjects under noise", number, len(jobs))
    return Section(
        name=f"noise, {seeds} seeds",
        promise="look the same",
        total=len(subjects),
        problems=tuple(sorted(problems)),
    )


def _changes(subject: Subject, outcome: Outcome, fixtures: Fixtures) -> Iterator[str]:
    """What noise changes: each test and case once, whatever the seed."""
    if outcome.run.result is None:
        yield f"could not be graded: {outcome.run.problem}"
        return
    mistake = subject.patch
    if isinstance(mistake, Mistake) and not repeatable(outcome):
        return  # it draws random numbers, and has no fingerprint
    found: dict[str, None] = {}
    for seen in (outcome.seen, *outcome.shaken):
        for task, tests in seen.items():
            if isinstance(mistake, Mistake):
                changed = unsettled(mistake, tests, fixtures.signatures(task))
                found |= dict.fromkeys(f"{task}: {test}, {case}" for test, case in changed)
            else:
                found |= dict.fromkeys(
                    f"{task}: {test}, {case} is wrong"
                    for test, cases in tests.items()
                    for case, one in cases.items()
                    if one.kind != "right"
                )
    yield from found
