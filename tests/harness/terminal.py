"""What a student reads when the suite is done: what went wrong, the table, the next step."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tests.harness.results import Points, State, SuiteResult, TaskResult, TestResult, points_text
from tests.harness.rubric import Rubric, Task

WIDTH = 100
BLOCKS_PER_TASK = 3
SYMBOLS = {
    State.PASSED: "✓",
    State.WRONG: "✗",
    State.CRASHED: "✗",
    State.NOT_STARTED: "○",
    State.NOT_OFFERED: "–",
    State.NOT_RUN: "·",
}
COLOURS = {State.PASSED: "green", State.WRONG: "red", State.CRASHED: "red"}
_ASCII = str.maketrans(
    {
        "✓": "+",
        "✗": "x",
        "○": "o",
        "·": "-",
        "–": "-",
        "—": "-",
        "−": "-",
        "§": "section ",
        "×": "x",
        "…": "...",
    }
)

Line = tuple[str, str | None]
"""A line of text and its colour."""


def as_ascii(text: str) -> str:
    """Write a line for a terminal that knows ASCII alone."""
    return text.translate(_ASCII).encode("ascii", "replace").decode()


def failures(result: SuiteResult, rubric: Rubric, *, everything: bool) -> Iterator[Line]:
    """Explain each test that failed; unless `everything`, three a task."""
    for task in result.tasks:
        failed = [test for test in task.tests if test.state.failed]
        shown = failed if everything else failed[:BLOCKS_PER_TASK]
        for test in shown:
            yield from _block(rubric.by_id[task.id], test, result.layout)
        if len(failed) > len(shown):
            yield (
                f"… and {len(failed) - len(shown)} more of {task.id}: pytest --task={task.id}",
                None,
            )
            yield "", None


def table(result: SuiteResult, rubric: Rubric) -> Iterator[Line]:
    """Show the points of every task, part by part."""
    for part in rubric.parts:
        tasks = [task for task in result.tasks if task.part == part.number]
        if not tasks:
            continue
        yield f"  {part.heading:<44} {_ratio(Points.of(tasks))}", None
        for task in tasks:
            name = f"  {SYMBOLS[task.state]} {task.id}"
            yield (
                f"{name:<46} {_ratio(task)}   {state_text(task)}",
                COLOURS.get(task.state),
            )
        yield "", None


def state_text(task: TaskResult) -> str:
    """Say in a few words how a task stands."""
    tests = task.counted or task.tests
    failed = [test for test in tests if test.state.failed]
    unrun = sum(test.state is State.NOT_RUN for test in tests)
    waiting = [test for test in tests if test.state is State.NOT_STARTED]
    if failed:
        return f"{len(failed)} of {len(tests)} tests fail"
    if unrun:
        return f"{len(tests) - unrun} of {len(tests)} tests run"
    if waiting:
        line = waiting[0].lines[0] if waiting[0].lines else ""
        return "not started" if line.startswith("not started") else line
    return "not offered" if task.state is State.NOT_OFFERED else ""


def next_step(result: SuiteResult, rubric: Rubric) -> str:
    """Say what is complete, or name the first task that isn't done, and what to run.

    Where every point is earned, a second line offers the bonus.
    """
    task, bonus = next_task(result), result.bonus
    lines = []
    if (task is None or task.bonus) and (result.possible or not bonus.possible):
        lines += [f"Every point is earned: {_of(result)}."]
    if task is None and bonus.possible:
        lines += [f"Every bonus point is earned: {_of(bonus)}."]
    if task is not None:
        what = what_to_do(task, rubric, result.layout)
        where = f"{task.id} · handout §{task.handout} · {what}, then  pytest --task={task.id}"
        lines += [f"{'For a bonus' if task.bonus else 'Next'}: {where}"]
    return "\n".join(lines)


def next_task(result: SuiteResult) -> TaskResult | None:
    """The first task that isn't done; one of a bonus only where all others are."""
    waiting = [task for task in result.tasks if not task.complete]
    return min(waiting, key=lambda task: task.bonus, default=None)


def what_to_do(task: TaskResult, rubric: Rubric, layout: str) -> str:
    """Say what a task that isn't done waits for: "write cs336_basics/linear.py"."""
    file = rubric.by_id[task.id].files[0] if layout == "ours" else "it"
    if task.state is State.NOT_STARTED:
        return _first_waiting(task) or f"write {file}"
    return "run its tests" if task.state is State.NOT_RUN else f"mend {file}"


def _first_waiting(task: TaskResult) -> str | None:
    """What the first test of a task that isn't started says, when it knows more than the file."""
    line = next((t.lines[0] for t in task.tests if t.state is State.NOT_STARTED and t.lines), "")
    return None if line.startswith("not started") else line or None


def _block(task: Task, test: TestResult, layout: str) -> Iterator[Line]:
    aside = "" if test.counted else "  (shown, not counted)"
    yield f"{task.id} · {test.name}{aside}", "red"
    for line in test.lines:
        indent = " " * (2 + len(line) - len(line.lstrip()))
        for piece in textwrap.wrap(line.strip(), WIDTH - len(indent) - 2) or [""]:
            yield indent + piece, None
    files = f"your code: {', '.join(task.files)} · " if layout == "ours" else ""
    yield f"  {files}handout §{task.handout}", "cyan"
    yield "", None


def _ratio(it: Points | TaskResult) -> str:
    return f"{points_text(it.earned):>5} / {points_text(it.possible):<2}"


def _of(it: Points | SuiteResult) -> str:
    return f"{points_text(it.earned)} of {points_text(it.possible)}"
