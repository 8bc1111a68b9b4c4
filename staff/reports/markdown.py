"""The report as Markdown, for the summary page of a CI run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from staff.grader.grade import Grade
from staff.reports.shown import not_shown
from tests.harness import terminal, words
from tests.harness.results import Points, SuiteResult, TaskResult, percent_text, points_text
from tests.harness.rubric import Part, Rubric

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$])")


def markdown(grade: Grade, rubric: Rubric) -> str:
    """Return the points, the next step, a table of the tasks, and a few failing tests of each task.

    Text from a submission is escaped, or put into a code fence that it can't close.
    """
    name, result = _plain(grade.submission), grade.run.result
    if result is None:
        fence = "\n".join(_fenced([grade.run.problem or ""]))
        return f"## {name}: could not be graded\n\nThis is not a zero.\n\n{fence}\n"
    share = percent_text(result.earned, result.possible)
    bonus = f", bonus {_points(result.bonus)}" if result.bonus.possible else ""
    lines = [f"## {name}: {_points(result)} points ({share}){bonus}", ""]
    lines += [_plain(terminal.next_step(result, rubric)), ""]
    for part in rubric.parts:
        lines += _part(part, result)
    for task in result.tasks:
        if task.fails:
            lines += _failures(task)
    return "\n".join([*lines, not_shown(result, rubric)]).rstrip() + "\n"


def _part(part: Part, result: SuiteResult) -> Iterator[str]:
    tasks = [task for task in result.tasks if task.part == part.number]
    if not tasks:
        return
    yield f"| | {_plain(part.heading)} | points | |"
    yield "|---|---|---:|---|"
    for task in tasks:
        state = _plain(terminal.state_text(task))
        yield f"| {terminal.SYMBOLS[task.state]} | {_plain(task.id)} | {_points(task)} | {state} |"
    yield ""


def _failures(task: TaskResult) -> Iterator[str]:
    shown = task.failing[: terminal.BLOCKS_PER_TASK]
    yield f"### {_plain(task.id)} · handout §{task.handout}"
    yield ""
    for diagnosis in task.diagnoses:
        for line in words.diagnosis_lines(diagnosis, task.id):
            yield from (f"> {_plain(line)}", "")
    for test in shown:
        yield f"`{test.name}`" + ("" if test.counted else " (shown, not counted)")
        yield ""
        yield from _fenced(words.test_lines(task, test))
        yield ""
    if len(task.failing) > len(shown):
        yield f"… and {len(task.failing) - len(shown)} more"
        yield ""


def _points(it: SuiteResult | TaskResult | Points) -> str:
    return f"{points_text(it.earned)} / {points_text(it.possible)}"


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _fenced(lines: list[str] | tuple[str, ...]) -> list[str]:
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *lines, fence]
