"""Messages: points come from cases that nobody has seen, what is said of them from the saved ones.

A student has the saved cases and can repeat what is said about them. Of a fresh case something is
said only where the saved ones are right.
"""

from __future__ import annotations

from msgspec.structs import replace

from tests.harness.results import Failure, SuiteResult, TaskResult, TestResult

ONLY_FRESH = "right on the saved cases, and wrong on fresh ones of the same kind"


def in_words_of(fresh: SuiteResult, saved: SuiteResult | None) -> SuiteResult:
    """Keep the points of one result, and let its failing tests say what they say in the other.

    A test that fails on fresh cases alone says so.
    """
    words = {task.id: task for task in saved.tasks} if saved else {}
    tasks = tuple(_task(t, words[t.id]) if t.id in words else t for t in fresh.tasks)
    return replace(fresh, tasks=tasks)


def _task(fresh: TaskResult, saved: TaskResult) -> TaskResult:
    if not fresh.state.failed:
        return fresh
    tests = {test.name: test for test in saved.tests}
    told = tuple(_test(t, tests.get(t.name)) if t.state.failed else t for t in fresh.tests)
    return replace(fresh, tests=told, diagnoses=saved.diagnoses)


def _test(fresh: TestResult, saved: TestResult | None) -> TestResult:
    if saved is not None and saved.state.failed:
        return replace(fresh, failure=saved.failure)
    if fresh.failure is None:
        return replace(fresh, failure=Failure(headline=ONLY_FRESH))
    details = (fresh.failure.headline, *fresh.failure.details)
    return replace(fresh, failure=replace(fresh.failure, headline=ONLY_FRESH, details=details))
