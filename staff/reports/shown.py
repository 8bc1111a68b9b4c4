"""What a report may hold: text that every format can carry, no more than fits, nothing hidden."""

from __future__ import annotations

from msgspec.structs import replace

from staff.grader.grade import Grade
from tests.harness.errors import printable
from tests.harness.results import Failure, Frame, SuiteResult, TestResult
from tests.harness.rubric import Rubric
from tests.harness.words import failure_lines

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
    left, pictures, tasks = REPORT_BYTES, PICTURES, []
    for task in result.tasks:
        tests = []
        for test in task.tests:
            small = _bounded_test(test, left, keep_picture=pictures > 0)
            left -= _size(small)
            pictures -= bool(small.failure and small.failure.picture)
            tests.append(small)
        tasks.append(replace(task, tests=tuple(tests)))
    return replace(result, tasks=tuple(tasks))


def _bounded_test(test: TestResult, most: int, *, keep_picture: bool) -> TestResult:
    if test.failure is None:
        return test
    left = _Budget(MESSAGE_BYTES)
    failure = replace(
        test.failure,
        headline=left.take(test.failure.headline) or "",
        details=tuple(filter(None, map(left.take, test.failure.details))),
        frames=tuple(filter(None, (_bounded_frame(it, left) for it in test.failure.frames))),
        clue=left.take(test.failure.clue) if test.failure.clue else None,
        picture=test.failure.picture if keep_picture else None,
    )
    small = replace(test, failure=failure)
    return small if _size(small) <= most else replace(test, failure=Failure(headline=_FULL))


def _bounded_frame(frame: Frame, left: _Budget) -> Frame | None:
    """A frame, its source cut; None where there are no bytes left to say where it is."""
    left.take(f"  :{frame.line} in : ")  # what is written around the three texts
    file, function, source = (left.take(it) for it in (frame.file, frame.function, frame.source))
    if file is None or function is None or source is None:
        return None
    return Frame(file=file, line=frame.line, function=function, source=source)


def _size(test: TestResult) -> int:
    """Bytes of what one test says."""
    failure = test.failure
    return sum(len(line.encode()) + 1 for line in failure_lines(failure)) if failure else 0


class _Budget:
    """The bytes of one message; texts are cut, and those that come too late are left out."""

    def __init__(self, most: int) -> None:
        self._left = most - len(_CUT.encode()) - 1

    def take(self, text: str) -> str | None:
        """A text, printable, as far as there are bytes left for it; None where there are none."""
        if self._left <= 0:
            return None
        # Cut before the work as well as after it: the text may be huge.
        content = printable(text[: MESSAGE_BYTES + 1]).encode()
        short = content[: self._left].decode("utf-8", "ignore")
        cut = len(content) > self._left
        self._left -= len(content) + 1
        return short + _CUT if cut else short


def _clean(text: str, most: int) -> str:
    return clipped(printable(text[: most + 1]), most)
