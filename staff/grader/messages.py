"""The messages of a grade: fresh cases decide the points, and saved cases supply the messages.

A student can reproduce a message about the saved cases. A message about a fresh case is shown only
if the saved ones are right.
"""

from __future__ import annotations

from msgspec.structs import replace

from tests.harness.results import Failure, SuiteResult, TaskResult, TestResult

ONLY_FRESH = "the answers are right on the saved cases and wrong on fresh cases of the same kind"
"""The message of a test that fails on fresh cases alone."""


def in_words_of(fresh: SuiteResult, saved: SuiteResult | None) -> SuiteResult:
    """Return the result on fresh cases with the messages of the result on saved cases.

    A test that fails on fresh cases alone gets the message `ONLY_FRESH`.

    Args:
        fresh: the result that decides the points.
        saved: the result on the saved cases of the tasks that fail; None if none of them was run.
    """
    words = {task.id: task for task in saved.tasks} if saved else {}
    tasks = tuple(_task(t, words[t.id]) if t.id in words else t for t in fresh.tasks)
    return replace(fresh, tasks=tasks)


def _task(fresh: TaskResult, saved: TaskResult) -> TaskResult:
    if not fresh.state.failed:
        return fresh
    tests = {test.name: test for test in saved.tests}
    shown = tuple(_test(t, tests.get(t.name)) if t.state.failed else t for t in fresh.tests)
    return replace(fresh, tests=shown, diagnoses=saved.diagnoses)


def _test(fresh: TestResult, saved: TestResult | None) -> TestResult:
    if saved is not None and saved.state.failed:
        return replace(fresh, failure=saved.failure)
    if fresh.failure is None:
        return replace(fresh, failure=Failure(headline=ONLY_FRESH))
    details = (fresh.failure.headline, *fresh.failure.details)
    return replace(fresh, failure=replace(fresh.failure, headline=ONLY_FRESH, details=details))
