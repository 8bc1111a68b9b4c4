"""The judge: what every submission that we know must earn, and what must be said of it.

A mistake loses points in its task and in no task that it can't reach. A right submission keeps
every point that it is offered. No mistake is given another's name. Whatever runs the submissions
(in process, through the sandbox, in pairs), this is what the outcome is held against.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from staff.catalogue.patches import Mistake
from staff.runner.jobs import SuiteRun
from tests.harness.results import State, TaskResult
from tests.harness.rubric import Rubric

Progress = Callable[[str, int, int], None]
"""Is told what is being judged, how many are done, and of how many."""


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of subject, and how many of them are as they should be."""

    name: str
    promise: str
    """Completes "N of N …"."""
    total: int
    problems: tuple[tuple[str, str], ...] = ()
    """A subject, and what is wrong with it."""
    figures: tuple[str, ...] = ()
    """What else was measured, a line each."""
    least: float = 1.0
    """The share of the subjects that must be right."""

    @property
    def right(self) -> int:
        """How many subjects have no problem."""
        return self.total - len({subject for subject, _ in self.problems})

    @property
    def holds(self) -> bool:
        """Whether so many subjects are right as must be."""
        return self.right >= self.least * self.total

    def __str__(self) -> str:
        return f"{self.name}: {self.right:,} of {self.total:,} {self.promise}"


def of_right(run: SuiteRun) -> list[str]:
    """What is wrong with the outcome of a right submission; nothing where it keeps every point."""
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
    """What is wrong with the outcome of a submission that holds one mistake.

    Args:
        mistake: the mistake.
        run: what the suite came to.
        rubric: the assignment.
        sentences: task and sentence of every mistake; two that share both are one.
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
    """The names that were given and are none of the mistakes that were made."""
    mine = {sentences[mistake] for mistake in made}
    return [
        f"{task.id} names it {task.known}"
        for task in tasks
        if task.known and sentences[task.known] not in mine
    ]


def told(task: TaskResult) -> str:
    """How much a failing task is told: `named`, `clue`, or `numbers` alone."""
    if task.known:
        return "named"
    likely = any(diagnosis.sentences for diagnosis in task.diagnoses)
    clues = [t.failure.clue for t in task.failing if t.failure and not task.explained(t)]
    return "clue" if likely or any(clues) else "numbers"


def _loses(task: TaskResult) -> bool:
    return not task.complete and task.state is not State.NOT_RUN
