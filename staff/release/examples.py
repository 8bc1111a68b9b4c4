"""The example submissions: nothing done, a first week's work, and everything right."""

from __future__ import annotations

import shutil
from pathlib import Path

from staff.catalogue.patches import load_mistakes, patched
from staff.paths import SOLUTION
from staff.release.stubs import cut, write
from tests.harness.rubric import read_rubric

BEGUN = ("linear", "embedding", "rmsnorm", "silu", "swiglu", "rope", "softmax", "attention")
"""What the first week got to."""
SLIPS = (
    "rmsnorm-sum-over-axis-1",
    "swiglu-d-ff-from-8-3",
    "rope-tables-saved",
    "softmax-maximum-over-the-last-axis",
)
"""What it got wrong: mistakes of the catalogue."""


def write_examples(folder: Path) -> list[Path]:
    """Write the three submissions into `folder`, afresh, and name their folders."""
    rubric = read_rubric()
    stubs, week, whole = (folder / name for name in ("stubs", "first-week", "solution"))
    for old in (stubs, week, whole):
        shutil.rmtree(old, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    write(cut(SOLUTION, rubric), stubs)
    mistakes = {mistake.id: mistake for mistake in load_mistakes()}
    patched([mistakes[name] for name in SLIPS], SOLUTION, week)
    unfinished = [task.id for task in rubric.tasks if task.id not in BEGUN]
    write(cut(week, rubric, unfinished), week)
    patched([], SOLUTION, whole)
    return [stubs, week, whole]
