"""Words: failures and diagnoses as lines of text, for terminals and reports alike."""

from __future__ import annotations

from collections.abc import Iterator

from tests.harness.results import CaseNote, Diagnosis, Failure, TaskResult, TestResult


def diagnosis_lines(diagnosis: Diagnosis, task: str) -> list[str]:
    """What a student reads of a diagnosis, the important line first; none where hints are off.

    Args:
        diagnosis: what failing tests have in common.
        task: the id of the task whose tests fail.
    """
    if diagnosis.task != task:
        return list(_upstream(diagnosis))
    lines = []
    if len(diagnosis.sentences) == 1:
        lines += [f"This is what comes out when {diagnosis.sentences[0]}."]
    elif diagnosis.sentences:
        said = "; or ".join(diagnosis.sentences)
        lines += [f"A clue: known mistakes look like this when {said}."]
    return [*lines, f"Ask yourself: {diagnosis.nudge}"] if diagnosis.nudge else lines


def _upstream(diagnosis: Diagnosis) -> Iterator[str]:
    """What is said where the cause lies in another task."""
    if diagnosis.mistake is None:
        yield f"`{diagnosis.task}`, which this task calls, fails too: mend that first."
    elif diagnosis.nudge:
        cause = f": {diagnosis.sentences[0]}" if diagnosis.sentences else ""
        yield f"Fails exactly as it would with your `{diagnosis.task}`{cause}."
        yield f"Mend that first: pytest --task={diagnosis.task}"


def test_lines(task: TaskResult, test: TestResult) -> list[str]:
    """What a student reads of one failing test, without what is said of several."""
    if test.failure is None:
        return []
    return failure_lines(test.failure, clue=not task.explained(test))


test_lines.__test__ = False  # type: ignore[attr-defined]


def failure_lines(failure: Failure, *, clue: bool = True) -> list[str]:
    """A failure as text, the important line first; lines of code stand two spaces in."""
    lines = [f"a clue: {failure.clue}"] if clue and failure.clue else []
    lines += [failure.headline, *failure.details]
    lines += [f"  {frame}" for frame in failure.frames]
    if failure.case is not None:
        lines += [case_line(failure.case)]
    return [*lines, f"this test: {failure.promise}"] if failure.promise else lines


def case_line(case: CaseNote) -> str:
    """Which saved case a failure describes, and how many fail."""
    others = f" · {case.failing} of {case.total} cases fail" if case.total > 1 else ""
    return f"saved case: {case.name}{others}"
