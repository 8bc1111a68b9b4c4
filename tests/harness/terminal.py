"""The text at the end of a run: the failures, the table of points and the next step."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from tests.harness import words
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
    """Write a line for a terminal that supports only ASCII."""
    return text.translate(_ASCII).encode("ascii", "replace").decode()


def failures(result: SuiteResult, rubric: Rubric, *, everything: bool) -> Iterator[Line]:
    """Describe the failures of each task: each diagnosis, and below it the tests it explains.

    Args:
        result: the result of the run.
        rubric: the rubric.
        everything: whether to show all failing tests. Otherwise, a task shows one test below each
            diagnosis, and at most three tests that no diagnosis explains.
    """
    for task in result.tasks:
        if not task.fails:
            continue
        shown = list(_shown(task, everything=everything))
        for diagnosis in task.diagnoses:
            lines = words.diagnosis_lines(diagnosis, task.id)
            if lines:
                yield f"{task.id} · {_count(len(diagnosis.tests))}", "red"
                yield from _wrapped(lines)
                yield "", None
            yield from _blocks(task, [t for t in shown if t.name in diagnosis.tests])
        yield from _blocks(task, [t for t in shown if not task.explained(t)])
        more = len(task.failing) - len(shown)
        if more:
            yield f"  … and {more} more: pytest --task={task.id}", None
        yield _where(rubric.by_id[task.id], result.layout), "cyan"
        yield "", None


def _shown(task: TaskResult, *, everything: bool) -> Iterator[TestResult]:
    """Choose the failing tests that are shown; see `failures`."""
    if everything:
        yield from task.failing
        return
    printed = [d for d in task.diagnoses if words.diagnosis_lines(d, task.id)]
    first = {d.tests[0] for d in printed}
    others = [t for t in task.failing if not any(t.name in d.tests for d in printed)]
    wanted = {test.name for test in others[:BLOCKS_PER_TASK]}
    yield from (test for test in task.failing if test.name in first | wanted)


def _count(tests: int) -> str:
    return "1 test fails" if tests == 1 else f"{tests} tests fail"


def table(result: SuiteResult, rubric: Rubric) -> Iterator[Line]:
    """Print the points of every task, part by part."""
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
    """Describe the state of a task in a few words."""
    tests = task.counted or task.tests
    failed = [test for test in tests if test.state.failed]
    unrun = sum(test.state is State.NOT_RUN for test in tests)
    waiting = [test for test in tests if test.state is State.NOT_STARTED]
    if failed:
        return f"{len(failed)} of {len(tests)} tests fail"
    if unrun:
        return f"{len(tests) - unrun} of {len(tests)} tests run"
    if waiting:
        failure = waiting[0].failure
        own = failure is None or failure.waiting == "body"
        return "not started" if failure is None or own else failure.headline
    return "not offered" if task.state is State.NOT_OFFERED else ""


def next_step(result: SuiteResult, rubric: Rubric) -> str:
    """Name the first task that is not complete, and the command that runs its tests.

    If every point is earned, the text says so, and a second line names a bonus task.
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
    """Return the first task that is not complete; bonus tasks come after all others."""
    waiting = [task for task in result.tasks if not task.complete]
    return min(waiting, key=lambda task: task.bonus, default=None)


def what_to_do(task: TaskResult, rubric: Rubric, layout: str) -> str:
    """Describe what to do for a task that is not complete, e.g. "write cs336_basics/linear.py"."""
    file = rubric.by_id[task.id].files[0] if layout == "ours" else "it"
    if task.state is State.NOT_STARTED:
        failures = (t.failure for t in task.tests if t.state is State.NOT_STARTED and t.failure)
        first = next(failures, None)
        return f"write {file}" if first is None or first.waiting == "body" else first.headline
    return "run its tests" if task.state is State.NOT_RUN else f"mend {file}"


def _blocks(task: TaskResult, tests: Iterable[TestResult]) -> Iterator[Line]:
    for test in tests:
        aside = "" if test.counted else "  (shown, not counted)"
        yield f"{task.id} · {test.name}{aside}", "red"
        yield from _wrapped(words.test_lines(task, test))
        yield "", None


def _wrapped(lines: Iterable[str]) -> Iterator[Line]:
    for line in lines:
        indent = " " * (2 + len(line) - len(line.lstrip()))
        for piece in textwrap.wrap(line.strip(), WIDTH - len(indent) - 2) or [""]:
            yield indent + piece, None


def _where(task: Task, layout: str) -> str:
    """Name the files of a task and its section of the handout."""
    files = f"your code: {', '.join(task.files)} · " if layout == "ours" else ""
    return f"  {files}handout §{task.handout}"


def _ratio(it: Points | TaskResult) -> str:
    return f"{points_text(it.earned):>5} / {points_text(it.possible):<2}"


def _of(it: Points | SuiteResult) -> str:
    return f"{points_text(it.earned)} of {points_text(it.possible)}"
