"""Two mistakes at once: each task must still be told something true, and no wrong name."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from staff.catalogue.edits import PatchError
from staff.catalogue.patches import Mistake, load_mistakes, patched
from staff.files import quick_folder
from staff.paths import SOLUTION
from staff.runner.jobs import Job, Outcome, run_jobs
from staff.validation import judge
from staff.validation.judge import Progress, Section

SEED = 336


class PairVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What two mistakes in one submission were told."""

    first: str
    second: str
    named: tuple[str, ...]
    """Mistakes that were named, in any task."""
    problems: tuple[str, ...]


def audit_pairs(count: int, cases: Path, progress: Progress, seed: int = SEED) -> list[PairVerdict]:
    """Put random pairs of mistakes into the solution and run the whole suite on each.

    Args:
        count: how many pairs; two that edit the same lines are passed over.
        cases: the folder of saved cases.
        progress: told how many are done, and of how many.
        seed: of the choice of pairs.
    """
    mistakes = load_mistakes()
    by_id = {mistake.id: mistake for mistake in mistakes}
    sentences = {m.id: (m.task, m.sentence) for m in mistakes}
    with TemporaryDirectory(prefix="pairs-", dir=quick_folder()) as scratch:
        jobs: dict[str, tuple[str, str]] = {}
        draw = random.Random(seed)
        while len(jobs) < count:
            first, second = draw.sample(mistakes, 2)
            name = f"{len(jobs)}"
            folder = Path(scratch) / f"{first.id}+{second.id}"
            try:
                patched([first, second], SOLUTION, folder)
            except PatchError:
                continue
            jobs[name] = (first.id, second.id)
        wanted = [
            Job(name=name, folder=str(Path(scratch) / f"{one}+{two}"))
            for name, (one, two) in jobs.items()
        ]
        verdicts = []
        for outcome in run_jobs(wanted, cases):
            first_id, second_id = jobs[outcome.name]
            verdicts.append(_verdict(by_id[first_id], by_id[second_id], outcome, sentences))
            progress("pairs of mistakes", len(verdicts), count)
    return verdicts


def _verdict(
    first: Mistake,
    second: Mistake,
    outcome: Outcome,
    sentences: Mapping[str, tuple[str, str]],
) -> PairVerdict:
    tasks = outcome.run.result.tasks if outcome.run.result else ()
    complete = {task.id for task in tasks if task.complete}
    made = (first, second)
    problems = judge.wrong_names(tasks, [m.id for m in made], sentences)
    for task in tasks:
        if task.blames in complete and all(task.blames != m.task for m in made):
            problems.append(f"{task.id} blames {task.blames}, which is right")
        if any(test.failure is None for test in task.failing):
            problems.append(f"{task.id} says nothing")
    named = tuple(task.known for task in tasks if task.known)
    return PairVerdict(first=first.id, second=second.id, named=named, problems=tuple(problems))


def section(verdicts: list[PairVerdict]) -> Section:
    """The verdicts, summed up."""
    named = sum(bool(verdict.named) for verdict in verdicts)
    return Section(
        name="pairs of mistakes",
        promise="are told nothing wrong",
        total=len(verdicts),
        problems=tuple((f"{v.first} with {v.second}", p) for v in verdicts for p in v.problems),
        figures=(f"{named} of {len(verdicts)} pairs have a name",),
    )
