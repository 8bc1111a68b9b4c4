"""A batch from submissions to reports: draw cases, grade each submission, write what is known."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from staff.fixtures.draft import write_files
from staff.fixtures.fresh import fresh_files
from staff.grader.batch import Batch, begin, finish
from staff.grader.grade import Grade, Settings
from staff.grader.run import Grading, grade_all, unique_names
from staff.grader.sandbox import choose
from staff.grader.workplace import workplace
from staff.reports import write_reports
from tests.harness.devices import demand
from tests.harness.errors import HarnessError
from tests.harness.fixtures import FIXTURES, Fixtures
from tests.harness.rubric import read_rubric


class Listener(msgspec.Struct, frozen=True):
    """Who is told how a batch goes."""

    say: Callable[[str], None]
    """Is told something that is worth a line."""
    progress: Callable[[str, int, int], None]
    """Is told what is being done, how many are done, and of how many."""


def grade_batch(
    submissions: Sequence[Path],
    out: Path,
    settings: Settings,
    sandbox: str,
    fixtures: Path | None,
    listener: Listener,
) -> list[Grade]:
    """Grade submissions, write the reports of each into `out`, and give the grades in order.

    Args:
        submissions: folders, zips or tars.
        out: where the reports go.
        settings: how to grade; its seed is that of the fresh cases.
        sandbox: the backend, or `auto`.
        fixtures: the folder of cases to grade on; None for fresh ones.
        listener: is told how it goes.

    Raises:
        HarnessError: a submission isn't there, the cases, the sandbox or the device can't be had.
    """
    missing = [path for path in submissions if not path.exists()]
    if missing:
        raise HarnessError(f"there is no {missing[0]}; name folders, zips or tars that exist")
    rubric = read_rubric()
    for task in rubric.tasks:
        Fixtures(fixtures or FIXTURES).task(task.id)
    backend = choose(sandbox)
    demand(settings.device)
    named = settings.settings | ({"seed": ""} if fixtures else {})
    cases = str(fixtures.resolve()) if fixtures else ""
    batch, goes_on = begin(out, Batch(**named, cases=cases, sandbox=backend.name))
    if goes_on:
        listener.say(f"going on with the batch that was stopped in {out}/")
    order, grades = unique_names(submissions), dict[str, Grade]()
    with workplace() as place:
        how = Grading(
            cases=fixtures or _draw(place / "cases", batch.seed, listener),
            saved=None if fixtures else FIXTURES,
            rubric=rubric,
            backend=backend,
            **batch.settings,
        )
        gc.freeze()  # what is loaded stays, and is no garbage to look for beside each submission
        for done in grade_all(submissions, how, lambda *found: batch.kept(out, *found)):
            write_reports(done, rubric, out / done.submission)
            grades[done.submission] = done
            listener.progress("grading", len(grades), len(order))
    finish(out)
    return [grades[name] for name in order]


def _draw(cases: Path, seed: str, listener: Listener) -> Path:
    listener.progress("drawing fresh cases", 0, 0)
    cases.mkdir(0o700)  # the answers: for nobody else, whoever may enter the folder above
    files, stayed = fresh_files(FIXTURES, seed)
    for case in stayed:
        listener.say(f"no fresh case had room, the saved one stands: {case}")
    write_files(files, cases)
    return cases
