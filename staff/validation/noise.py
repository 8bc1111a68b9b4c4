"""Noise: the saved cases must give the same results on a processor that rounds differently.

Every answer of the solution and of each mistake is judged again for each of several seeds, after
random noise was added: each value changes by a share of up to `fingerprints.NOISE`. The solution
must still be right, and no fingerprint in the files of saved cases may change.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from staff.catalogue.patches import Mistake
from staff.catalogue.subjects import Subject, lay_out
from staff.files import quick_folder
from staff.fixtures.signatures import repeatable, unsettled
from staff.runner.jobs import Job, Outcome, run_jobs
from staff.validation.judge import Progress, Section
from tests.harness.fixtures import Fixtures

SEEDS = 20
"""The usual number of seeds."""


def judge_noise(cases: Path, progress: Progress, seeds: int = SEEDS, sample: int = 1) -> Section:
    """Add noise to every answer, and compare the results with the saved fingerprints.

    Args:
        cases: the folder of saved cases.
        progress: is called with what is running, the number that is done, and the total.
        seeds: the number of seeds.
        sample: take only one mistake in `sample`.
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
        outcomes: dict[str, Outcome] = {}
        changes: dict[str, list[str]] = {}
        for number, outcome in enumerate(run_jobs(jobs, cases), start=1):
            found = list(_changes(subjects[outcome.name], outcome, fixtures))
            if found:
                outcomes[outcome.name], changes[outcome.name] = outcome, found
            progress("subjects under noise", number, len(jobs))
        # Random answers change in every run, even without noise. They have no fingerprint.
        doubtful = [
            replace(job, noise=0)
            for job in jobs
            if job.name in changes and subjects[job.name].patch
        ]
        for again in run_jobs(doubtful, cases):
            if not repeatable(outcomes[again.name], again):
                del changes[again.name]
    return Section(
        name=f"noise, {seeds} seeds",
        promise="give the same results",
        total=len(subjects),
        problems=tuple(sorted((name, one) for name, found in changes.items() for one in found)),
    )


def _changes(subject: Subject, outcome: Outcome, fixtures: Fixtures) -> Iterator[str]:
    """Yield each test and case whose result changes with noise, once for all seeds."""
    if outcome.run.result is None:
        yield f"could not be graded: {outcome.run.problem}"
        return
    mistake = subject.patch
    changes: dict[str, None] = {}
    for observed in (outcome.seen, *outcome.shaken):
        for task, tests in observed.items():
            if isinstance(mistake, Mistake):
                changed = unsettled(mistake, tests, fixtures.signatures(task))
                changes |= dict.fromkeys(
                    f"{task}: {test}, {case} has another fingerprint" for test, case in changed
                )
            else:
                changes |= dict.fromkeys(
                    f"{task}: {test}, {case} is wrong"
                    for test, cases in tests.items()
                    for case, seen in cases.items()
                    if seen.kind != "right"
                )
    yield from changes
