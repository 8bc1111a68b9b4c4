"""Two mistakes at once: each task must still be told something true, and no wrong name."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from staff.catalogue.edits import PatchError
from staff.catalogue.patches import Mistake, load_mistakes, patched
from staff.files import quick_folder
from staff.grader.warm import Job, Outcome, run_warm
from staff.paths import SOLUTION

SEED = 336


class PairVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What two mistakes in one submission were told."""

    first: str
    second: str
    named: tuple[str, ...]
    """Mistakes that were named, in any task."""
    problems: tuple[str, ...]


def audit_pairs(
    count: int, cases: Path, progress: Callable[[str, int, int], None], seed: int = SEED
) -> list[PairVerdict]:
    """Put random pairs of mistakes into the solution and run the whole suite on each.

    Args:
        count: how many pairs; two that edit the same lines are passed over.
        cases: the folder of saved cases.
        progress: told how many are done, and of how many.
        seed: of the choice of pairs.
    """
    mistakes = load_mistakes()
    by_id = {mistake.id: mistake for mistake in mistakes}
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
        for outcome in run_warm(wanted, cases):
            first_id, second_id = jobs[outcome.name]
            verdicts.append(_verdict(by_id[first_id], by_id[second_id], outcome, by_id))
            progress("pairs of mistakes", len(verdicts), count)
    return verdicts


def _verdict(
    first: Mistake, second: Mistake, outcome: Outcome, by_id: dict[str, Mistake]
) -> PairVerdict:
    result = outcome.run.result
    mine = {(m.task, m.sentence) for m in (first, second)}
    problems, named = [], []
    for task in result.tasks if result else ():
        failed = [test for test in task.tests if test.state.failed]
        if task.known:
            named.append(task.known)
            known = by_id[task.known]
            if (known.task, known.sentence) not in mine:
                problems.append(f"{task.id} names {task.known}")
        if task.blames and not any(task.blames == m.task for m in (first, second)):
            blamed = next(t for t in result.tasks if t.id == task.blames) if result else None
            if blamed is None or blamed.complete:
                problems.append(f"{task.id} blames {task.blames}, which is right")
        if any(not test.lines for test in failed):
            problems.append(f"{task.id} says nothing")
    return PairVerdict(
        first=first.id, second=second.id, named=tuple(named), problems=tuple(problems)
    )
