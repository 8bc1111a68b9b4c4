"""What was read and what was called, put together: one finding a place, with its tasks.

A task is concerned where the use stands in the code of one of its symbols, or of its adapter. In a
helper the guard tells: of the tasks that came by there the first one, since the later ones call
it. Failing that, the file's tasks are concerned, or those whose work the name would do.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from staff.grader.scratch.model import Call, ScratchFinding
from staff.grader.scratch.static import Use, uses
from tests.harness.errors import printable
from tests.harness.results import SuiteResult
from tests.harness.rubric import Rubric, Task, covers


def findings(
    folder: Path, rubric: Rubric, calls: Sequence[Call] = ()
) -> tuple[ScratchFinding, ...]:
    """Find what a submission uses of what it was to build itself.

    Args:
        folder: the submission, as intake gives it.
        rubric: what is forbidden, and which symbols belong to which task.
        calls: what the guard noted while the suite ran.
    """
    rules = rubric.scratch
    read = uses(folder, rules)
    by_key = {use.key: use for use in read}
    symbols = {(use.file, use.line): use.symbol for use in read}
    for call in calls:
        key = (call.file, call.line, call.name)
        symbol = symbols.get(key[:2], "")
        by_key[key] = Use(*key, call.how, symbol)
    found = []
    for key in sorted(by_key):
        use = by_key[key]
        came_by = {c.task for c in calls if (c.file, c.line, c.name) == key and c.task}
        tasks = () if use.how == "dodge" else _tasks(use, rubric, came_by)
        found.append(
            ScratchFinding(
                file=printable(use.file),
                line=use.line,
                name=printable(use.name),
                how=use.how,
                tasks=tasks,
            )
        )
    return tuple(found)


def enforced(result: SuiteResult, found: Sequence[ScratchFinding]) -> SuiteResult:
    """Take the points of every task that a finding concerns."""
    concerned = {task for finding in found for task in finding.tasks}
    return SuiteResult.of(
        result.layout,
        (
            msgspec.structs.replace(task, earned=0.0) if task.id in concerned else task
            for task in result.tasks
        ),
    )


def _tasks(use: Use, rubric: Rubric, came_by: Collection[str]) -> tuple[str, ...]:
    at_home = [task for task in rubric.tasks if use.file in task.files]
    exact = [task for task in rubric.tasks if _is_home(task, use)]
    first = [task for task in rubric.tasks if task.id in came_by][:1]
    work = [
        task
        for task in rubric.tasks
        for pattern, ids in rubric.scratch.tasks.items()
        if task.id in ids and covers(pattern, use.name)
    ]
    chosen = exact or first or at_home or work
    return tuple(dict.fromkeys(task.id for task in chosen))


def _is_home(task: Task, use: Use) -> bool:
    """Whether a use stands in a symbol of the task, or in its adapter."""
    module = use.file.removesuffix(".py").replace("/", ".")
    if use.file in ("adapters.py", "tests/adapters.py"):
        return use.symbol in task.adapters
    return bool(use.symbol) and f"{module}:{use.symbol}" in task.symbols
