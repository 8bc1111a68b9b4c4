"""The audit: the suite runs on every subject, and each outcome is compared with what it must be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from staff.catalogue.patches import Mistake, load_mistakes
from staff.catalogue.subjects import Subject, lay_out
from staff.files import quick_folder
from staff.fixtures.calibrate import (
    MARGIN,
    THREADS,
    CaseKey,
    Errors,
    limit_of,
    on_lesser_units,
    on_this_processor,
    saved_limits,
    worst_errors,
)
from staff.fixtures.signatures import margin_of
from staff.runner.jobs import Job, Outcome, run_jobs
from staff.validation import judge
from staff.validation.judge import Progress
from tests.harness.fingerprints import FAR
from tests.harness.rubric import Rubric

NAMED_SHARE = 0.95
"""The suite must name at least this share of the mistakes."""
SAMPLED = 256
"""One subject in `SAMPLED` also runs the tests of tasks whose code it can't change."""
HALF = 0.5
"""The error of an alternate must be below this share of a limit that was computed without it."""


class MistakeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one mistake."""

    id: str
    task: str
    shows: str
    caught_by: tuple[str, ...]
    """The tests of its own task that fail."""
    margin: float | None
    """Its largest error in units of a case's limit; None if no case measures an error."""
    feedback: str
    """What the student sees: `named`, `clue`, or `numbers` if only the comparison is shown."""
    named_wrongly: bool
    """Whether a task reports a mistake that was not made."""
    problems: tuple[str, ...]


class AlternateVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one right submission."""

    id: str
    worst: float
    """Its worst error in units of a limit that was computed without it."""
    loses: bool
    """Whether it loses points or could not be graded."""
    problems: tuple[str, ...]


class CaseMargins(msgspec.Struct, frozen=True, kw_only=True):
    """How one case separates right answers from wrong ones, in units of the dtype's tolerance."""

    task: str
    test: str
    case: str
    right: float
    """The worst error of a right submission."""
    limit: float
    wrong: float | None
    """The smallest error among the mistakes that this case catches by their values."""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The results of an audit."""

    mistakes: tuple[MistakeVerdict, ...]
    alternates: tuple[AlternateVerdict, ...]
    cases: tuple[CaseMargins, ...]
    problems: tuple[str, ...]
    """Problems of the audit as a whole."""


def audit(
    rubric: Rubric,
    cases: Path,
    progress: Progress,
    *,
    whole: bool = False,
    tasks: Collection[str] = (),
) -> Audit:
    """Run the suite on every subject, and judge each outcome.

    Args:
        rubric: the assignment.
        cases: the folder of saved cases.
        progress: is called with what is running, the number that is done, and the total.
        whole: run all tests on every subject. Otherwise only one subject in `SAMPLED` runs the
            tests of tasks whose code it can't change.
        tasks: the tasks whose patches are run; if empty, all tasks.
    """
    with TemporaryDirectory(prefix="audit-", dir=quick_folder()) as scratch:
        subjects = lay_out(Path(scratch), ("solution", "mistake", "alternate", "public"), tasks)
        jobs = [
            Job(
                name=s.name,
                folder=str(s.folder),
                threads=THREADS if s.right else THREADS[:1],
                tasks=tuple(tasks) if whole or i % SAMPLED == 0 else s.reach or tuple(tasks),
            )
            for i, s in enumerate(subjects)
        ]
        right = [s for s in subjects if s.right]
        jobs += on_lesser_units(on_this_processor(right, cases, tasks))
        outcomes: dict[str, Outcome] = {}
        again: defaultdict[str, list[Outcome]] = defaultdict(list)
        for number, outcome in enumerate(run_jobs(jobs, cases), start=1):
            if outcome.capability:
                again[outcome.name].append(outcome)
            else:
                outcomes[outcome.name] = outcome
            progress("submissions", number, len(jobs))
    errors = worst_errors(o for s in right for o in (outcomes[s.name], *again[s.name]))
    limits = saved_limits(cases, tasks or [task.id for task in rubric.tasks])
    mistakes = [s for s in subjects if not s.right]
    sentences = {m.id: (m.task, m.sentence) for m in load_mistakes()}
    verdicts = tuple(_mistake(s, outcomes[s.name], limits, sentences, rubric) for s in mistakes)
    alternates = tuple(_alternate(s, outcomes[s.name], again[s.name], right, errors) for s in right)
    margins = tuple(_margins(key, outcomes, mistakes, errors, limits) for key in limits)
    named = sum(verdict.feedback == "named" for verdict in verdicts)
    few = named < NAMED_SHARE * len(verdicts)
    needed = f"at least {NAMED_SHARE:.0%} must be"
    problems = (f"only {named} of {len(verdicts)} mistakes are named; {needed}",) if few else ()
    return Audit(mistakes=verdicts, alternates=alternates, cases=margins, problems=problems)


def _mistake(
    subject: Subject,
    outcome: Outcome,
    limits: Mapping[CaseKey, float],
    sentences: Mapping[str, tuple[str, str]],
    rubric: Rubric,
) -> MistakeVerdict:
    mistake = subject.patch
    assert isinstance(mistake, Mistake)
    tasks = outcome.run.result.tasks if outcome.run.result else ()
    own = next((task for task in tasks if task.id == mistake.task), None)
    margin = margin_of(outcome, mistake.task, limits)
    problems = judge.of_mistake(mistake, outcome.run, rubric, sentences)
    if own and mistake.shows == "value" and margin < MARGIN:
        problems.append(f"its largest error is {margin:.3g} × the limit; {MARGIN} × is needed")
    return MistakeVerdict(
        id=mistake.id,
        task=mistake.task,
        shows=mistake.shows,
        caught_by=tuple(test.name for test in own.failing) if own else (),
        margin=margin if 0 < margin < FAR else None,
        feedback=judge.feedback_on(own) if own else "numbers",
        named_wrongly=bool(judge.wrong_names(tasks, [mistake.id], sentences)),
        problems=tuple(problems),
    )


def _alternate(
    subject: Subject,
    outcome: Outcome,
    again: Sequence[Outcome],
    right: Sequence[Subject],
    errors: Errors,
) -> AlternateVerdict:
    lost = [problem for one in (outcome, *again) for problem in judge.of_right(one.run)]
    problems = list(dict.fromkeys(lost))
    calibrating = {s.name for s in right if s.calibrates and s.name != subject.name}
    worst = 0.0
    for by_name in errors.values():
        limit = limit_of(e for name, e in by_name.items() if name in calibrating)
        worst = max(worst, by_name.get(subject.name, 0.0) / limit)
    if worst > HALF and subject.kind != "solution":
        problems.append(
            f"its error is {worst:.2f} × a limit that was computed without it; "
            f"at most {HALF} × is allowed"
        )
    return AlternateVerdict(
        id=subject.name, worst=worst, loses=bool(lost), problems=tuple(problems)
    )


def _margins(
    key: CaseKey,
    outcomes: Mapping[str, Outcome],
    mistakes: Sequence[Subject],
    errors: Errors,
    limits: Mapping[CaseKey, float],
) -> CaseMargins:
    task, test, case = key
    wrong = []
    for subject in mistakes:
        seen = outcomes[subject.name].seen.get(task, {}).get(test, {}).get(case)
        own = subject.patch is not None and subject.patch.task == task
        if own and seen is not None and seen.kind == "value":
            wrong.append(seen.error)
    return CaseMargins(
        task=task,
        test=test,
        case=case,
        right=max(errors.get(key, {}).values(), default=0.0),
        limit=limits[key],
        wrong=min(wrong, default=None),
    )
