"""Grade a batch of submissions: draw the cases, grade each submission, write its reports."""

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
    """The functions that report the progress of a batch to a person."""

    say: Callable[[str], None]
    """Prints one line of text."""
    progress: Callable[[str, int, int], None]
    """Shows the current activity, how many submissions are done, and how many there are."""


def grade_batch(
    submissions: Sequence[Path],
    out: Path,
    settings: Settings,
    sandbox: str,
    fixtures: Path | None,
    listener: Listener,
) -> list[Grade]:
    """Grade submissions, write the reports of each into `out`, and return the grades in order.

    Args:
        submissions: folders, zips or tars.
        out: the folder that the reports are written to.
        settings: how to grade; its seed is that of the fresh cases.
        sandbox: the backend, or `auto`.
        fixtures: the folder of the cases to grade on; None for fresh cases.
        listener: reports the progress.

    Raises:
        HarnessError: a submission does not exist; or the cases, the sandbox or the device are not
            available.
    """
    missing = [path for path in submissions if not path.exists()]
    if missing:
        raise HarnessError(f"{missing[0]} does not exist; name folders, zips or tars that do")
    rubric = read_rubric()
    for task in rubric.tasks:
        Fixtures(fixtures or FIXTURES).task(task.id)
    backend = choose(sandbox)
    demand(settings.device)
    named = settings.settings | ({"seed": ""} if fixtures else {})
    cases = str(fixtures.resolve()) if fixtures else ""
    batch, goes_on = begin(out, Batch(**named, cases=cases, sandbox=backend.name))
    if goes_on:
        listener.say(f"continuing the batch that was stopped in {out}/")
    order, grades = unique_names(submissions), dict[str, Grade]()
    with workplace() as temporary:
        how = Grading(
            cases=fixtures or _draw(temporary / "cases", batch.seed, listener),
            saved=None if fixtures else FIXTURES,
            rubric=rubric,
            backend=backend,
            **batch.settings,
        )
        gc.freeze()  # loaded objects stay in use, so the collector need not scan them
        for done in grade_all(submissions, how, lambda *found: batch.kept(out, *found)):
            write_reports(done, rubric, out / done.submission)
            grades[done.submission] = done
            listener.progress("grading", len(grades), len(order))
    finish(out)
    return [grades[name] for name in order]


def _draw(cases: Path, seed: str, listener: Listener) -> Path:
    listener.progress("drawing fresh cases", 0, 0)
    cases.mkdir(0o700)  # it holds the answers, and every user may enter its parent folder
    files, unchanged = fresh_files(FIXTURES, seed)
    for case in unchanged:
        listener.say(
            f"{case}: in every fresh case the solution came too close to the limit; "
            "the saved case is used"
        )
    write_files(files, cases)
    return cases
