"""Limits for reports: printable text of bounded size, and only the tasks that students may see."""

from __future__ import annotations

from msgspec.structs import replace

from staff.grader.grade import Grade
from tests.harness.errors import printable
from tests.harness.results import Failure, Frame, SuiteResult, TestResult
from tests.harness.rubric import Rubric
from tests.harness.words import failure_lines

NAME_BYTES = 200
"""The most bytes of a submission's name."""
MESSAGE_BYTES = 4_000
"""The most bytes of the message of one test."""
REPORT_BYTES = 400_000
"""The most bytes of all messages of one submission. Points and states are never cut."""
PICTURES = 40
"""The most pictures of one submission."""
_CUT = " … (cut)"
_FULL = "this message is left out, since the report is full"


def bounded(grade: Grade) -> Grade:
    """Make every text of a grade printable, cut long texts, and leave out excess pictures."""
    problem = grade.run.problem
    run = replace(
        grade.run,
        problem=None if problem is None else _clean(problem, MESSAGE_BYTES),
        result=_bounded_result(grade.run.result) if grade.run.result else None,
    )
    return replace(grade, submission=_clean(grade.submission, NAME_BYTES), run=run)


def shown_to_student(grade: Grade, rubric: Rubric) -> Grade:
    """Return the grade without the tasks that a student may not see, and without their points."""
    result = grade.run.result
    if result is None:
        return grade
    tasks = tuple(t for t in result.tasks if rubric.by_id[t.id].visibility == "visible")
    return replace(grade, run=replace(grade.run, result=SuiteResult.of(result.layout, tasks)))


def not_shown(result: SuiteResult, rubric: Rubric) -> str:
    """Return a sentence that counts the tasks that a result leaves out; "" if it has them all."""
    missing = len(rubric.tasks) - len(result.tasks)
    if not missing:
        return ""
    return f"{missing} {'task is' if missing == 1 else 'tasks are'} not shown in this report."


def clipped(text: str, most: int) -> str:
    """Cut a text to at most this many bytes of UTF-8, with a mark at the cut."""
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
    """Return the frame with its texts cut; None if the budget has no bytes left for its texts."""
    left.take(f"  :{frame.line} in : ")  # the message writes this around the three texts
    file, function, source = (left.take(it) for it in (frame.file, frame.function, frame.source))
    if file is None or function is None or source is None:
        return None
    return Frame(file=file, line=frame.line, function=function, source=source)


def _size(test: TestResult) -> int:
    """Return the bytes of the message of one test."""
    failure = test.failure
    return sum(len(line.encode()) + 1 for line in failure_lines(failure)) if failure else 0


class _Budget:
    """The byte budget of one message. Texts that exceed it are cut, and later ones are omitted."""

    def __init__(self, most: int) -> None:
        self._left = most - len(_CUT.encode()) - 1

    def take(self, text: str) -> str | None:
        """Make a text printable and cut it to the remaining budget; return None if none remains."""
        if self._left <= 0:
            return None
        # The text may be huge, so it is cut before it is made printable as well as afterwards.
        content = printable(text[: MESSAGE_BYTES + 1]).encode()
        short = content[: self._left].decode("utf-8", "ignore")
        cut = len(content) > self._left
        self._left -= len(content) + 1
        return short + _CUT if cut else short


def _clean(text: str, most: int) -> str:
    return clipped(printable(text[: most + 1]), most)
