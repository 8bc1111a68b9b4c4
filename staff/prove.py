"""The long proofs, whole: `make prove` runs every mistake and alternate through the grader.

It also kills training runs at fifty random moments, and resumes them.

The result is written to `docs/proof.md` with its date. A sample of the same runs in the staff
tests.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import torch
from rich.console import Console
from rich.progress import track

from staff.catalogue.patches import (
    Alternate,
    Mistake,
    Patch,
    load_alternates,
    load_mistakes,
    patched,
)
from staff.catalogue.subjects import reach_of
from staff.files import quick_folder
from staff.grader.grade import SuiteRun
from staff.grader.intake import opened
from staff.grader.run import Grading, grade_all
from staff.grader.sandbox import choose
from staff.grader.warm import run_warm
from staff.grader.zygote import zygote
from staff.paths import ROOT, SOLUTION
from staff.proofs.frames import fuzz
from staff.proofs.killing import killed_moments
from tests.harness.fixtures import FIXTURES
from tests.harness.results import Points, State
from tests.harness.rubric import Rubric, read_rubric

REPORT = ROOT / "docs" / "proof.md"
PUBLIC = tuple(
    sorted(p.parent for p in (ROOT / "staff/catalogue/alternates").glob("*/cs336_basics"))
)
"""Whole submissions in the public layout, which must earn every point they are offered."""
_FREE = " in process"
FRAMES = 100_000
"""Hostile frames that the protocol must survive."""


@dataclass(frozen=True)
class Verdict:
    """Whether a submission earned what it should."""

    name: str
    kind: str
    earned: str
    problem: str | None
    """What is wrong with that; None where it is right."""


def _how(rubric: Rubric, sandbox: str) -> Grading:
    return Grading(cases=FIXTURES, rubric=rubric, backend=choose(sandbox))


def judge(
    patches: Sequence[Patch], rubric: Rubric, scratch: Path, *, whole: bool = False
) -> list[Verdict]:
    """Grade the solution with each patch by itself, and hold the points against the promise.

    Each is graded twice, in the sandbox and in the grader's own process: what they come to must
    be equal.

    Args:
        patches: mistakes and alternates.
        rubric: the assignment.
        scratch: a folder for the patched copies.
        whole: run every test. Otherwise those of the tasks of its part that the patch can reach.
    """
    how, reach, jobs = _how(rubric, "auto"), reach_of(rubric), []
    with ExitStack() as stack:
        line = stack.enter_context(zygote(how.rules))
        for number, patch in enumerate(patches):
            folder = patched([patch], SOLUTION, scratch / patch.id)
            copy = stack.enter_context(opened(folder, quick_folder())).folder
            tasks = () if whole else reach[patch.task]
            for name, workers in ((patch.id, line), (f"{patch.id}{_FREE}", None)):
                job = how.job(name, copy, number, workers)
                jobs.append(msgspec.structs.replace(job, tasks=tasks))
        outcomes = run_warm(jobs, FIXTURES)
        console = Console(stderr=True)
        shown = track(outcomes, "proving", total=len(jobs), console=console)
        runs = {outcome.name: outcome.run for outcome in shown}
    verdicts = [_verdict(p, runs[p.id], runs[f"{p.id}{_FREE}"]) for p in patches]
    return sorted(verdicts, key=lambda verdict: verdict.name)


def judge_public(rubric: Rubric) -> list[Verdict]:
    """Grade the submissions in the public layout."""
    grades = grade_all(PUBLIC, _how(rubric, "auto"))
    return [Verdict(g.submission, "public", _earned(g.run), _short_of_all(g.run)) for g in grades]


def judge_kills(moments: int = 50) -> list[Verdict]:
    """Kill training runs at random moments; resumed, each must end as if it had not been."""
    verdicts = []
    for i, moment in enumerate(killed_moments(moments), 1):
        kills = ", ".join(f"{when:.2f} s" for when in moment.kills)
        problem = None if moment.equal else "ends unlike the undisturbed run"
        steps = f"{', '.join(map(str, moment.steps))} steps saved"
        verdicts.append(Verdict(f"run {i}, killed after {kills}", "killed run", steps, problem))
    return verdicts


def judge_protocol(count: int = FRAMES) -> str:
    """Send hostile frames, and say what came of them.

    Raises:
        Exception: one came through, stopped the receiver, or took long or much memory.
    """
    seen = fuzz(count)
    errors = seen.total() - seen["plain data"]
    return f"{count} hostile frames: {errors} errors, {seen['plain data']} of plain data, no more"


def _verdict(patch: Patch, confined: SuiteRun, free: SuiteRun) -> Verdict:
    if isinstance(patch, Alternate):
        kind, problem = "alternate", _short_of_all(confined)
    else:
        kind, problem = "mistake", _keeps_points(patch, confined)
    if problem is None and _told(confined) != _told(free):
        problem = "another result in process than in the sandbox"
    return Verdict(patch.id, kind, _earned(confined), problem)


def _told(run: SuiteRun) -> list[object]:
    """What a result comes to: the points, which tests fail, and what is known of the cause.

    Not the numbers of single tests: some submissions answer by chance, some tests tell the memory
    that they measured, and where there is too little of it depends on the sandbox.
    """
    tasks = run.result.tasks if run.result else ()
    return [
        (
            *(task.id, task.earned, task.known, task.blames, task.told),
            *((test.name, test.counted, test.state.failed) for test in task.tests),
        )
        for task in tasks
    ]


def _short_of_all(run: SuiteRun) -> str | None:
    if run.result is None:
        return f"could not be graded: {run.problem}"
    lost = [t.id for t in run.result.tasks if not t.complete and t.state is not State.NOT_RUN]
    return f"loses points in {', '.join(lost)}" if lost else None


def _keeps_points(mistake: Mistake, run: SuiteRun) -> str | None:
    result = run.result
    if result is None:
        return f"could not be graded: {run.problem}"
    own = next(task for task in result.tasks if task.id == mistake.task)
    return f"keeps every point of {own.id}" if own.complete else None


def _earned(run: SuiteRun) -> str:
    result = run.result
    if result is None:
        return "—"
    run_of = Points.of(task for task in result.tasks if task.state is not State.NOT_RUN)
    return f"{run_of.earned:.2f} / {run_of.possible:g}"


def report(verdicts: Sequence[Verdict], protocol: str) -> str:
    """Write the verdicts, and the line about the protocol, as Markdown."""
    day = datetime.datetime.now(datetime.UTC).date()
    lines = [
        "# Proof",
        "",
        f"{day}, Python {platform.python_version()}, torch {torch.__version__}, "
        f"{platform.machine()}. Made by `make prove`.",
        "",
    ]
    for kind, promise in (
        ("mistake", "lose points in their task"),
        ("alternate", "keep every point"),
        ("public", "earn every point they are offered"),
        ("killed run", "end as if nothing had happened, bit for bit"),
    ):
        mine = [verdict for verdict in verdicts if verdict.kind == kind]
        right = sum(verdict.problem is None for verdict in mine)
        lines.append(f"- {kind}: {right} of {len(mine)} {promise}")
    lines += [
        f"- protocol: {protocol}",
        "",
        "Points are those of the tasks whose tests were run: those that a patch can reach.",
        "",
        "| submission | kind | points | |",
        "|---|---|---|---|",
    ]
    lines += [f"| {v.name} | {v.kind} | {v.earned} | {v.problem or '✓'} |" for v in verdicts]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Prove everything; exit 1 where something falls short."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--whole", action="store_true", help="run every test on every patch, which takes hours"
    )
    chosen = parser.parse_args()
    rubric = read_rubric()
    with TemporaryDirectory(prefix="proof-", dir=quick_folder()) as scratch:
        patches: list[Patch] = [*load_mistakes(), *load_alternates()]
        verdicts = judge(patches, rubric, Path(scratch), whole=chosen.whole)
    waiting = Console(stderr=True)
    with waiting.status("grading the submissions in the public layout"):
        verdicts += judge_public(rubric)
    with waiting.status("killing training runs, and resuming them"):
        verdicts += judge_kills()
    with waiting.status(f"sending {FRAMES:,} hostile frames"):
        protocol = judge_protocol()
    REPORT.write_text(report(verdicts, protocol), "utf-8")
    console = Console(highlight=False)
    short = [verdict for verdict in verdicts if verdict.problem]
    for verdict in short:
        console.print(f"{verdict.kind} {verdict.name}: {verdict.problem}", markup=False)
    console.print(f"{len(verdicts) - len(short)} of {len(verdicts)} as they should be · {REPORT}")
    sys.exit(1 if short else 0)


if __name__ == "__main__":
    main()
