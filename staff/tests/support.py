"""What tests of the harness and the grader share: submissions, runs of pytest, clean imports."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import torch

import tests
from staff.grader.grade import Grade
from staff.paths import ROOT, SOLUTION
from staff.runner.jobs import SuiteRun
from tests.harness.results import (
    Failure,
    State,
    SuiteResult,
    TaskResult,
    TestResult,
    points_text,
)
from tests.harness.rubric import Limits, Part, Rubric, Task, read_rubric

_TASKS = read_rubric().tasks
BONUS = sum(task.points for task in _TASKS if task.id in read_rubric().bonus)
"""All points that come on top."""
POINTS = sum(task.points for task in _TASKS) - BONUS
"""All points of the assignment, without the bonus."""
EARNED = f"Every point is earned: {points_text(POINTS)} of {points_text(POINTS)}."
"""What a student with all of them reads."""
thorough = hypothesis.settings(
    max_examples=100, database=None, deadline=None, derandomize=True, print_blob=False
)
"""Settings of every property test: the same examples at every run."""
_SUBMISSION = ("cs336_basics", "adapters")
_GRAVITY = (State.CRASHED, State.WRONG, State.NOT_STARTED, State.NOT_RUN)


@dataclass(frozen=True)
class Run:
    """What a run of pytest came to."""

    status: int
    text: str


def submission(
    folder: Path, changed: Mapping[str, str] | None = None, added: Mapping[str, str] | None = None
) -> Path:
    """Copy the solution into a new folder, then write or extend the files that are named."""
    shutil.copytree(SOLUTION, folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for name, text in (changed or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    for name, text in (added or {}).items():
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(f"\n\n{text}\n")
    return folder


def run_suite(*options: str, environment: Mapping[str, str] | None = None) -> Run:
    """Run pytest at the repository's root, as a student does."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**clean, "PYTHONIOENCODING": "utf-8", **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    return Run(done.returncode, done.stdout.decode("utf-8"))


def run_suites(
    runs: Mapping[str, Sequence[str]], environments: Mapping[str, Mapping[str, str]] | None = None
) -> dict[str, Run]:
    """Run pytest with several lists of options, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        jobs = {
            name: pool.submit(run_suite, *options, environment=(environments or {}).get(name))
            for name, options in runs.items()
        }
        return {name: job.result() for name, job in jobs.items()}


@contextmanager
def clean_imports() -> Iterator[None]:
    """Let a submission be imported as in a new process, and put everything back afterwards."""

    def ours(name: str) -> bool:
        return name.partition(".")[0] in _SUBMISSION or name == "tests.adapters"

    kept = {name: module for name, module in sys.modules.items() if ours(name)}
    known = set(sys.modules)
    path, finders, package = sys.path[:], sys.meta_path[:], list(tests.__path__)
    threads = torch.get_num_threads()
    for name in kept:
        del sys.modules[name]
    try:
        yield
    finally:
        for name in [n for n in sys.modules if ours(n) or (n[:6] == "tests." and n not in known)]:
            del sys.modules[name]
        sys.modules.update(kept)
        sys.path[:], sys.meta_path[:], tests.__path__[:] = path, finders, package
        torch.set_num_threads(threads)


def small_rubric(*, bonus: bool = False) -> Rubric:
    """A rubric of two tasks, `first` (3 points, 3 tests) and `second` (1 point), which needs it.

    With a bonus there are a part 2 on top, and `extra` in it (2 points, 2 tests).
    """

    def task(
        name: str, points: float, requires: tuple[str, ...], count: int, part: int = 1
    ) -> Task:
        return Task(
            id=name,
            title=name.title(),
            part=part,
            points=points,
            handout=f"2.{count}",
            requires=requires,
            adapters=(f"run_{name}",),
            symbols=(f"cs336_basics.{name}:{name.title()}",),
            tests=tuple(f"test_{name}_{i}" for i in range(count)),
        )

    tasks = [task("first", 3, (), 3), task("second", 1, ("first",), 1)]
    parts = [Part(1, "The part")]
    if bonus:
        tasks += [task("extra", 2, ("first",), 2, part=2)]
        parts += [Part(2, "On top", bonus=True)]
    return Rubric(title="Two", limits=Limits(60), parts=tuple(parts), tasks=tuple(tasks))


def failure(*lines: str, **about: Any) -> Failure:
    """A failure of these lines, the headline first, and of the other fields that are given."""
    headline, *details = lines
    return Failure(headline=headline, details=tuple(details), **about)


def task_result(task: Task, states: Sequence[State], **changes: Any) -> TaskResult:
    """Make the result of a task from the states of its tests, all counted, two lines a failure."""
    why = failure("why", "more")
    tests_of = tuple(
        TestResult(name=name, state=state, failure=None if state is State.PASSED else why)
        for name, state in zip(task.tests, states, strict=True)
    )
    passed = sum(state is State.PASSED for state in states)
    fields: dict[str, Any] = {
        "earned": task.points * passed / len(states),
        "possible": task.points,
        "state": next((s for s in _GRAVITY if s in states), State.PASSED),
        "tests": tests_of,
        **changes,
    }
    return TaskResult(id=task.id, title=task.title, part=task.part, handout=task.handout, **fields)


def suite_result(*tasks: TaskResult, layout: str = "ours") -> SuiteResult:
    """Sum tasks up."""
    return SuiteResult.of(layout, tasks)


def grade_of(*tasks: TaskResult, problem: str | None = None, name: str = "ada") -> Grade:
    """A grade of these tasks, or none because of the problem."""
    result = None if problem else suite_result(*tasks)
    run = SuiteRun(result=result, problem=problem, seconds=1.25)
    return Grade(submission=name, run=run, fixtures="fixtures")


def result_of(grade: Grade) -> SuiteResult:
    """The result of a submission that was graded."""
    assert grade.run.result is not None
    return grade.run.result
