"""What a report may hold: text that every format can carry, no more than fits, nothing hidden."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from staff.grader.grade import Grade
from tests.harness.errors import printable
from tests.harness.results import SuiteResult, TestResult
from tests.harness.rubric import Rubric

NAME_BYTES = 200
MESSAGE_BYTES = 4_000
"""Of one test."""
REPORT_BYTES = 400_000
"""Of the messages of one submission together; points and states are never cut."""
PICTURES = 40
"""Of one submission."""
_CUT = " … (cut)"
_FULL = "left out: this report is full"


def bounded(grade: Grade) -> Grade:
    """Make every text printable, and cut what is too long."""
    problem = grade.run.problem
    run = replace(
        grade.run,
        problem=None if problem is None else _clean(problem, MESSAGE_BYTES),
        result=_bounded_result(grade.run.result) if grade.run.result else None,
    )
    return replace(grade, submission=_clean(grade.submission, NAME_BYTES), run=run)


def shown_to_student(grade: Grade, rubric: Rubric) -> Grade:
    """Leave out the tasks that a student may not see, and their points."""
    result = grade.run.result
    if result is None:
        return grade
    tasks = tuple(t for t in result.tasks if rubric.by_id[t.id].visibility == "visible")
    return replace(grade, run=replace(grade.run, result=SuiteResult.of(result.layout, tasks)))


def not_shown(result: SuiteResult, rubric: Rubric) -> str:
    """Say how many tasks of the rubric a result leaves out; "" where it has them all."""
    missing = len(rubric.tasks) - len(result.tasks)
    if not missing:
        return ""
    return f"{missing} {'task is' if missing == 1 else 'tasks are'} not shown in this report."


def clipped(text: str, most: int) -> str:
    """Cut a text to so many bytes of UTF-8, and say so."""
    content = text.encode("utf-8", "replace")
    if len(content) <= most:
        return text
    return content[: most - len(_CUT.encode())].decode("utf-8", "ignore") + _CUT


def _bounded_result(result: SuiteResult) -> SuiteResult:
    room, pictures, tasks = REPORT_BYTES, PICTURES, []
    for task in result.tasks:
        tests = []
        for test in task.tests:
            small = _bounded_test(test, room, keep_picture=pictures > 0)
            room -= sum(len(line.encode()) + 1 for line in small.lines)
            pictures -= small.picture is not None
            tests.append(small)
        told = tuple(_cleaned(task.told))
        tasks.append(replace(task, tests=tuple(tests), told=told))
    return replace(result, tasks=tuple(tasks))


def _bounded_test(test: TestResult, room: int, *, keep_picture: bool) -> TestResult:
    lines = tuple(_cleaned(test.lines))
    if sum(len(line.encode()) for line in lines) > room:
        lines = (_FULL,)
    return replace(
        test,
        lines=lines,
        clue=None if test.clue is None else _clean(test.clue, MESSAGE_BYTES),
        picture=test.picture if keep_picture else None,
    )


def _cleaned(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a message, printable, until there is no more room."""
    room = MESSAGE_BYTES - len(_CUT.encode())
    for line in lines:
        # Cut before the work as well as after it: the text may be huge.
        content = printable(line[: MESSAGE_BYTES + 1]).encode()
        if len(content) > room:
            yield content[:room].decode("utf-8", "ignore") + _CUT
            return
        room -= len(content) + 1
        yield content.decode()


def _clean(text: str, most: int) -> str:
    return clipped(printable(text[: most + 1]), most)
