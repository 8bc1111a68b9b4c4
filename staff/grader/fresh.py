"""Fresh inputs: points come from cases that nobody has seen, messages from the saved ones."""

from __future__ import annotations

import msgspec

from tests.harness.results import SuiteResult, TaskResult, TestResult

ONLY_SAVED = "right on the saved cases, and wrong on fresh ones of the same kind"


def in_words_of(fresh: SuiteResult, saved: SuiteResult) -> SuiteResult:
    """Keep the points of one result, and let its failing tests say what they say in the other.

    A student can repeat what is said about the saved cases. A test that fails on fresh cases
    alone says so.
    """
    words = {task.id: task for task in saved.tasks}
    tasks = tuple(_task(t, words[t.id]) if t.state.failed else t for t in fresh.tasks)
    return msgspec.structs.replace(fresh, tasks=tasks)


def _task(fresh: TaskResult, saved: TaskResult) -> TaskResult:
    tests = {test.name: test for test in saved.tests}
    told = tuple(_test(t, tests.get(t.name)) if t.state.failed else t for t in fresh.tests)
    return msgspec.structs.replace(
        fresh, tests=told, known=saved.known, blames=saved.blames, told=saved.told
    )


def _test(fresh: TestResult, saved: TestResult | None) -> TestResult:
    if saved is not None and saved.state.failed:
        return msgspec.structs.replace(
            fresh, lines=saved.lines, clue=saved.clue, picture=saved.picture
        )
    return msgspec.structs.replace(fresh, lines=(ONLY_SAVED, *fresh.lines))
