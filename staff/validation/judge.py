"""The judge: it decides whether the outcome of a known submission is what it must be.

A mistake must lose points in its own task, and in no task whose code it can't change. A right
submission must keep every point that it is offered. No task may report a mistake that was not made.
The same judge serves every kind of run: in process, in the sandbox, in pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from staff.catalogue.patches import Mistake
from staff.runner.jobs import SuiteRun
from tests.harness.results import State, TaskResult
from tests.harness.rubric import Rubric

Progress = Callable[[str, int, int], None]
"""A function of what is being judged, the number that is done, and the total (0 if unknown)."""


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one kind of subject: how many there are, and what is wrong with them."""

    name: str
    promise: str
    """What every subject must do; it completes the sentence "N of N …"."""
    total: int
    problems: tuple[tuple[str, str], ...] = ()
    """Pairs of a subject and what is wrong with it."""
    figures: tuple[str, ...] = ()
    """Other measured numbers, one sentence each."""
    least: float = 1.0
    """The share of the subjects that must be right."""

    @property
    def right(self) -> int:
        """The number of subjects without a problem."""
        return self.total - len({subject for subject, _ in self.problems})

    @property
    def holds(self) -> bool:
        """Whether enough subjects are right."""
        return self.right >= self.least * self.total

    def __str__(self) -> str:
        return f"{self.name}: {self.right:,} of {self.total:,} {self.promise}"


def of_right(run: SuiteRun) -> list[str]:
    """List what is wrong with the outcome of a right submission: it must keep every point."""
    if run.result is None:
        return [f"could not be graded: {run.problem}"]
    lost = [task.id for task in run.result.tasks if _loses(task)]
    return [f"loses points in {task}" for task in lost]


def of_mistake(
    mistake: Mistake,
    run: SuiteRun,
    rubric: Rubric,
    sentences: Mapping[str, tuple[str, str]],
) -> list[str]:
    """List what is wrong with the outcome of a submission that contains one mistake.

    Args:
        mistake: the mistake.
        run: the result of the suite.
        rubric: the assignment.
        sentences: task and sentence of every mistake, under its id. Two mistakes that share both
            count as one.
    """
    if run.result is None:
        return [f"could not be graded: {run.problem}"]
    tasks = {task.id: task for task in run.result.tasks}
    own = tasks.get(mistake.task)
    if own is None:
        return [f"{mistake.task} was not graded"]
    problems = [f"keeps every point of {mistake.task}"] if own.complete else []
    reached = rubric.reached_from(mistake.task)
    spoiled = [task.id for task in tasks.values() if task.id not in reached and _loses(task)]
    problems += [f"loses points in {task}, which it can't reach" for task in spoiled]
    return problems + wrong_names(tasks.values(), [mistake.id], sentences)


def wrong_names(
    tasks: Iterable[TaskResult], made: Collection[str], sentences: Mapping[str, tuple[str, str]]
) -> list[str]:
    """List the tasks that report a mistake which is none of those that were made."""
    right = {sentences[mistake] for mistake in made}
    return [
        f"{task.id} reports another mistake: {task.known}"
        for task in tasks
        if task.known and sentences[task.known] not in right
    ]


def feedback_on(task: TaskResult) -> str:
    """Return how much a failing task explains: `named`, `clue`, or only `numbers`."""
    if task.known:
        return "named"
    likely = any(diagnosis.sentences for diagnosis in task.diagnoses)
    clues = [t.failure.clue for t in task.failing if t.failure and not task.explained(t)]
    return "clue" if likely or any(clues) else "numbers"


def _loses(task: TaskResult) -> bool:
    return not task.complete and task.state is not State.NOT_RUN
