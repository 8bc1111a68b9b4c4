"""Through the sandbox: every mistake and alternate as a grader runs it, beside the same in process.

What the two come to must be equal, and as the judge has it.
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
"""Whole submissions in the public layout, which must earn every point that they are offered."""
_FREE = " in process"


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
        progress: is told how many are done, and of how many.
        whole: run every test. Otherwise those of the tasks of its part that the patch can reach.
    """
    how, reach, jobs = _how(rubric), reach_of(rubric), []
    with ExitStack() as stack:
        line = stack.enter_context(zygote(how.rules))
        for number, patch in enumerate(patches):
            folder = patched([patch], SOLUTION, scratch / patch.id)
            copy = stack.enter_context(opened(folder, quick_folder())).folder
            tasks = () if whole else reach[patch.task]
            for name, workers in ((patch.id, line), (f"{patch.id}{_FREE}", None)):
                job = how.job(name, copy, number, workers)
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
        run, free = runs[patch.id], runs[f"{patch.id}{_FREE}"]
        found = (
            judge.of_mistake(patch, run, rubric, sentences)
            if isinstance(patch, Mistake)
            else judge.of_right(run)
        )
        if _summed_up(run) != _summed_up(free):
            found.append("another result in process than in the sandbox")
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
    grades = list(grade_all(PUBLIC, _how(rubric)))
    return Section(
        name="submissions in the public layout",
        promise="earn every point that they are offered",
        total=len(grades),
        problems=tuple((g.submission, p) for g in grades for p in judge.of_right(g.run)),
    )


def _how(rubric: Rubric) -> Grading:
    return Grading(cases=FIXTURES, rubric=rubric, backend=choose("auto"))


def _summed_up(run: SuiteRun) -> list[object]:
    """What a result comes to: the points, which tests fail, and what is known of the cause.

    Not the numbers of single tests: some submissions answer by chance, some tests tell the memory
    that they measured, and where there is too little of it depends on the sandbox.
    """
    tasks = run.result.tasks if run.result else ()
    return [
        (
            *(task.id, task.earned, task.diagnoses),
            *((test.name, test.counted, test.state.failed) for test in task.tests),
        )
        for task in tasks
    ]
