"""Subjects: all submissions that the suite is proven on, laid out as folders."""

from __future__ import annotations

import compileall
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from staff.catalogue.patches import FOLDER, Patch, load_alternates, load_mistakes, patched
from staff.paths import SOLUTION
from tests.harness.rubric import Rubric, Task, read_rubric

Kind = Literal["solution", "mistake", "alternate", "public"]


@dataclass(frozen=True)
class Subject:
    """A submission with a known result: all points, or fewer points."""

    name: str
    kind: Kind
    folder: Path
    patch: Patch | None = None
    reach: tuple[str, ...] = ()
    """The tasks whose outputs the patch can change, in its own part of the rubric.

    It is empty for a subject without a patch. A task that requires tasks of another part is left
    out, because it only learns that one of them fails.
    """

    @property
    def right(self) -> bool:
        """Whether the submission must earn every point."""
        return self.kind != "mistake"

    @property
    def calibrates(self) -> bool:
        """Whether limits are measured on it; about a quarter of the alternates only has to pass."""
        held_out = self.kind != "solution" and zlib.crc32(self.name.encode()) % 4 == 0
        return self.right and not held_out


def lay_out(scratch: Path, kinds: Sequence[Kind], tasks: Collection[str] = ()) -> list[Subject]:
    """Lay out all subjects of the given kinds; patched copies go below `scratch`.

    Args:
        scratch: the folder for patched copies.
        kinds: the kinds of subjects to lay out.
        tasks: lay out only patches that reach one of these tasks; if empty, all patches.

    Raises:
        PatchError: a patch no longer fits the solution.
    """
    rubric = read_rubric()
    base = patched([], SOLUTION, scratch / "solution")
    compileall.compile_dir(base, quiet=2)
    reach = reach_of(rubric)
    found = [Subject("solution", "solution", SOLUTION)]
    catalogue: dict[Kind, Sequence[Patch]] = {
        "mistake": load_mistakes(),
        "alternate": load_alternates(),
    }
    for kind, patches in catalogue.items():
        for patch in patches if kind in kinds else ():
            if not tasks or set(tasks) & set(reach[patch.task]):
                folder = patched([patch], base, scratch / patch.id, link=True)
                found.append(Subject(patch.id, kind, folder, patch, reach[patch.task]))
    for package in sorted((FOLDER / "alternates").glob("*/cs336_basics")):
        found.append(Subject(package.parent.name, "public", package.parent))
    return [subject for subject in found if subject.kind in kinds]


def reach_of(rubric: Rubric) -> dict[str, tuple[str, ...]]:
    """Return, for each task, the tasks of its part whose outputs a patch on it can change."""
    return {task.id: _reach(rubric, task.id) for task in rubric.tasks}


def _reach(rubric: Rubric, task_id: str) -> tuple[str, ...]:
    part = rubric.task(task_id).part

    def near(task: Task) -> bool:
        across = any(rubric.task(name).part != task.part for name in task.requires)
        return task.id == task_id or (task.part == part and not across)

    return tuple(t for t in rubric.reached_from(task_id) if near(rubric.task(t)))
