"""Combine the names that were read and the calls that were noted: one finding for each use.

A finding concerns a task if the use is in the code of one of the task's symbols, or of its adapter.
If the use is in a helper, the finding concerns the first task whose tests ran that line, since the
code of later tasks often calls that of earlier ones. If the guard noted no call, the finding
concerns the tasks of the file. If the file belongs to no task, it concerns the tasks for which the
forbidden function is a ready-made solution.
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
    """Find the ready-made code that a submission uses.

    Args:
        folder: the copy of the submission that intake has made.
        rubric: lists what is forbidden, and which symbols belong to which task.
        calls: the calls that the guard noted while the suite ran.
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
        ran = {c.task for c in calls if (c.file, c.line, c.name) == key and c.task}
        tasks = () if use.how == "dodge" else _tasks(use, rubric, ran)
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
    """Return the result without the points of the tasks that a finding concerns."""
    concerned = {task for finding in found for task in finding.tasks}
    return SuiteResult.of(
        result.layout,
        (
            msgspec.structs.replace(task, earned=0.0) if task.id in concerned else task
            for task in result.tasks
        ),
    )


def _tasks(use: Use, rubric: Rubric, ran: Collection[str]) -> tuple[str, ...]:
    of_symbol = [task for task in rubric.tasks if _is_in_symbol(task, use)]
    first = [task for task in rubric.tasks if task.id in ran][:1]
    of_file = [task for task in rubric.tasks if use.file in task.files]
    of_name = [
        task
        for task in rubric.tasks
        for pattern, ids in rubric.scratch.tasks.items()
        if task.id in ids and covers(pattern, use.name)
    ]
    chosen = of_symbol or first or of_file or of_name
    return tuple(dict.fromkeys(task.id for task in chosen))


def _is_in_symbol(task: Task, use: Use) -> bool:
    """Whether a use is in the code of a symbol of the task, or of its adapter."""
    module = use.file.removesuffix(".py").replace("/", ".")
    if use.file in ("adapters.py", "tests/adapters.py"):
        return use.symbol in task.adapters
    return bool(use.symbol) and f"{module}:{use.symbol}" in task.symbols
