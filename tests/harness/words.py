"""The wording of failures and diagnoses: lines of text for the terminal and for all reports."""

from __future__ import annotations

from collections.abc import Iterator

from tests.harness.results import CaseNote, Diagnosis, Failure, TaskResult, TestResult


def diagnosis_lines(diagnosis: Diagnosis, task: str) -> list[str]:
    """Write a diagnosis for a student, with the most important line first.

    Args:
        diagnosis: a common cause of failing tests.
        task: the id of the task whose tests fail.

    Returns:
        no line if hints hide everything.
    """
    if diagnosis.task != task:
        return list(_upstream(diagnosis))
    lines = []
    if len(diagnosis.sentences) == 1:
        lines += [f"This is what comes out when {diagnosis.sentences[0]}."]
    elif diagnosis.sentences:
        causes = "; or ".join(diagnosis.sentences)
        lines += [f"A clue: known mistakes look like this when {causes}."]
    return [*lines, f"Ask yourself: {diagnosis.nudge}"] if diagnosis.nudge else lines


def _upstream(diagnosis: Diagnosis) -> Iterator[str]:
    """Write a diagnosis whose cause is in a task that this one calls."""
    if diagnosis.mistake is None:
        yield f"`{diagnosis.task}`, which this task calls, fails too: mend that first."
    elif diagnosis.nudge:
        cause = f": {diagnosis.sentences[0]}" if diagnosis.sentences else ""
        yield f"Fails exactly as it would with your `{diagnosis.task}`{cause}."
        yield f"Mend that first: pytest --task={diagnosis.task}"


def test_lines(task: TaskResult, test: TestResult) -> list[str]:
    """Write one failing test for a student; its clue is left out if a diagnosis explains it."""
    if test.failure is None:
        return []
    return failure_lines(test.failure, clue=not task.explained(test))


test_lines.__test__ = False  # type: ignore[attr-defined]


def failure_lines(failure: Failure, *, clue: bool = True) -> list[str]:
    """Write a failure, with the most important line first; lines of code are indented."""
    lines = [f"a clue: {failure.clue}"] if clue and failure.clue else []
    lines += [failure.headline, *failure.details]
    lines += [f"  {frame}" for frame in failure.frames]
    if failure.case is not None:
        lines += [case_line(failure.case)]
    return [*lines, f"this test: {failure.promise}"] if failure.promise else lines


def case_line(case: CaseNote) -> str:
    """Write the name of the saved case that a failure describes, and the number that fail."""
    others = f" · {case.failing} of {case.total} cases fail" if case.total > 1 else ""
    return f"saved case: {case.name}{others}"
