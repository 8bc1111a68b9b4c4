"""The example submissions: untouched stubs, the work of a first week, and the whole solution."""

from __future__ import annotations

import shutil
from pathlib import Path

from staff.catalogue.patches import load_mistakes, patched
from staff.paths import SOLUTION
from staff.release.stubs import cut, write
from tests.harness.rubric import read_rubric

BEGUN = ("linear", "embedding", "rmsnorm", "silu", "swiglu", "rope", "softmax", "attention")
"""The tasks that the first week's work has started."""
SLIPS = (
    "rmsnorm-sum-over-axis-1",
    "swiglu-d-ff-from-8-3",
    "rope-tables-saved",
    "softmax-maximum-over-the-last-axis",
)
"""The mistakes of the catalogue that the first week's work contains."""


def write_examples(folder: Path) -> list[Path]:
    """Write the three submissions into `folder`, replacing old ones; return their folders."""
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
