"""Validation in the sandbox: every mistake and alternate is graded there like a submission.

Each also runs in process. Both results must be equal, and the judge must find nothing wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from staff.catalogue.patches import FOLDER, Mistake, Patch, load_mistakes, patched
from staff.catalogue.subjects import reach_of
from staff.files import quick_folder
from staff.grader.intake import opened
from staff.grader.run import Grading, grade_all
from staff.grader.sandbox import choose
from staff.grader.worker.zygote import zygote
from staff.paths import SOLUTION
from staff.runner.jobs import SuiteRun, run_jobs
from staff.validation import judge
from staff.validation.judge import Progress, Section
from tests.harness.fixtures import FIXTURES
from tests.harness.rubric import Rubric

PUBLIC = tuple(sorted(package.parent for package in FOLDER.glob("alternates/*/cs336_basics")))
"""Whole submissions in the public layout; they must earn every point that they are offered."""
_IN_PROCESS = " in process"
"""The ending of the names of runs that are not in the sandbox."""


def judge_patches(
    patches: Sequence[Patch],
    rubric: Rubric,
    scratch: Path,
    progress: Progress,
    *,
    whole: bool = False,
) -> list[Section]:
    """Grade the solution with each patch by itself, in the sandbox and in process.

    Args:
        patches: mistakes and alternates.
        rubric: the assignment.
        scratch: a folder for the patched copies.
        progress: is called with what is running, the number that is done, and the total.
        whole: run every test. Otherwise only the tests of tasks that the patch can reach and that
            belong to its part of the rubric.
    """
    grading, reach, jobs = _grading(rubric), reach_of(rubric), []
    with ExitStack() as stack:
        socket = stack.enter_context(zygote(grading.rules))
        for number, patch in enumerate(patches):
            folder = patched([patch], SOLUTION, scratch / patch.id)
            copy = stack.enter_context(opened(folder, quick_folder())).folder
            tasks = () if whole else reach[patch.task]
            for name, workers in ((patch.id, socket), (f"{patch.id}{_IN_PROCESS}", None)):
                job = grading.job(name, copy, number, workers)
                jobs.append(msgspec.structs.replace(job, tasks=tasks))
        runs: dict[str, SuiteRun] = {}
        for outcome in run_jobs(jobs, FIXTURES):
            runs[outcome.name] = outcome.run
            progress("runs, sandboxed and in process", len(runs), len(jobs))
    sentences = {m.id: (m.task, m.sentence) for m in load_mistakes()}
    wrong = [patch for patch in patches if isinstance(patch, Mistake)]
    right = [patch for patch in patches if not isinstance(patch, Mistake)]
    problems: list[tuple[str, str]] = []
    for patch in patches:
        sandboxed, in_process = runs[patch.id], runs[f"{patch.id}{_IN_PROCESS}"]
        found = (
            judge.of_mistake(patch, sandboxed, rubric, sentences)
            if isinstance(patch, Mistake)
            else judge.of_right(sandboxed)
        )
        if _summary(sandboxed) != _summary(in_process):
            found.append("the result in process differs from the result in the sandbox")
        problems += [(patch.id, problem) for problem in found]
    return [
        Section(
            name=name,
            promise=promise,
            total=len(some),
            problems=tuple((s, p) for s, p in problems if any(s == patch.id for patch in some)),
        )
        for name, promise, some in (
            ("mistakes in the sandbox", "lose points in their task", wrong),
            ("alternates in the sandbox", "keep every point", right),
        )
        if some
    ]


def judge_public(rubric: Rubric) -> Section:
    """Grade the submissions in the public layout."""
    grades = list(grade_all(PUBLIC, _grading(rubric)))
    return Section(
        name="submissions in the public layout",
        promise="earn every point that they are offered",
        total=len(grades),
        problems=tuple((g.submission, p) for g in grades for p in judge.of_right(g.run)),
    )


def _grading(rubric: Rubric) -> Grading:
    return Grading(cases=FIXTURES, rubric=rubric, backend=choose("auto"))


def _summary(run: SuiteRun) -> list[object]:
    """Sum up a result: the points, which tests fail, and the diagnoses.

    The summary leaves out the numbers in messages, which may differ between two runs: some
    submissions answer by chance, some tests report how much memory they measured, and the sandbox
    limits memory.
    """
    tasks = run.result.tasks if run.result else ()
    return [
        (
            *(task.id, task.earned, task.diagnoses),
            *((test.name, test.counted, test.state.failed) for test in task.tests),
        )
        for task in tasks
    ]
