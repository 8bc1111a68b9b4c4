"""The scoreboard: it collects the result of each test of the rubric and computes the points."""

from __future__ import annotations

from collections.abc import Collection

from tests.harness.results import State, SuiteResult, TaskResult, TestResult
from tests.harness.rubric import Rubric, Task

_GRAVITY = (State.CRASHED, State.WRONG, State.NOT_STARTED, State.NOT_RUN, State.NOT_OFFERED)


class Scoreboard:
    """Collects the results of tests and computes the points of tasks.

    A test that the rubric lists and that has no result gets the state "not run".

    Args:
        rubric: the rubric.
        tasks: the ids of the tasks to score; all tasks if it is empty.
    """

    def __init__(self, rubric: Rubric, tasks: Collection[str] = ()) -> None:
        self.tasks = [task for task in rubric.tasks if not tasks or task.id in tasks]
        self._bonus = rubric.bonus
        self._results: dict[tuple[str, str], TestResult] = {}

    def record(self, task_id: str, result: TestResult) -> None:
        """Record the result of a test; if there are several, the first failure is kept."""
        earlier = self._results.get((task_id, result.name))
        if earlier is None or earlier.state is State.PASSED:
            self._results[task_id, result.name] = result

    def result(self, layout: str) -> SuiteResult:
        """Compute the result of the run, for a submission in the given layout."""
        return SuiteResult.of(layout, (self._task(task) for task in self.tasks))

    def _task(self, task: Task) -> TaskResult:
        tests = tuple(
            self._results.get((task.id, name), TestResult(name=name, state=State.NOT_RUN))
            for name in task.tests
        )
        counted = [test for test in tests if test.counted]
        states = {test.state for test in counted or tests}
        passed = sum(test.state is State.PASSED for test in counted)
        return TaskResult(
            id=task.id,
            title=task.title,
            part=task.part,
            handout=task.handout,
            earned=task.points * passed / len(counted) if counted else 0.0,
            possible=task.points if counted else 0.0,
            bonus=task.id in self._bonus,
            state=next((state for state in _GRAVITY if state in states), State.PASSED),
            tests=tests,
        )
