"""Diagnosis: from what a task's tests saw to a sentence that helps.

A known mistake is named only when it is the only one that would have given every failing case
and none of the passing ones. While a task that this one calls fails too, and could show here, the
cause is looked for there: this task is told which of its mistakes it fails with, or only that it
comes first. Otherwise the numbers speak: a clue, or the plain comparison.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from tests.harness.fingerprints import Seen, fits
from tests.harness.fixtures import Signature
from tests.harness.results import Diagnosis, Failure, SuiteResult, TaskResult, TestResult
from tests.harness.rubric import Rubric

Hints = Literal["off", "nudge", "full"]
_MOST = 3
"""So many mistakes that look alike are listed at most."""


class Evidence:
    """What the tests of one task saw."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str], Seen] = {}
        """Under the names of test and saved case; "" stands for a test that has none."""

    def see(self, test: str, case: str, seen: Seen) -> None:
        """Take down an outcome; of several of one case the worst stays."""
        earlier = self.seen.get((test, case))
        if earlier is None or seen.error > earlier.error:
            self.seen[test, case] = seen


def suspects(evidence: Evidence, signatures: Collection[Signature]) -> list[Signature]:
    """The known mistakes that would have given exactly what was seen.

    Saved cases decide; the other tests decide between the mistakes that are left over, and decide
    alone where no case fails.
    """
    cases = {key: seen for key, seen in evidence.seen.items() if key[1]}
    others = {key: seen for key, seen in evidence.seen.items() if not key[1]}
    fitting = [s for s in signatures if _explains(s, cases)]
    by_all = [s for s in fitting if _explains(s, others)]
    if any(seen.loud for seen in cases.values()):
        return by_all or fitting
    return by_all if any(seen.loud for seen in others.values()) else []


def _explains(signature: Signature, seen: Mapping[tuple[str, str], Seen]) -> bool:
    right = Seen()
    return all(fits(one, signature.seen.get(key, right)) for key, one in seen.items())


def explain(
    result: SuiteResult,
    evidence: Mapping[str, Evidence],
    signatures: Mapping[str, Collection[Signature]],
    rubric: Rubric,
    hints: Hints,
) -> SuiteResult:
    """Add to every failing task what is known about its cause."""
    explained: dict[str, TaskResult] = {}
    for task in result.tasks:
        if not task.fails:
            explained[task.id] = task
            continue
        known = signatures.get(task.id, ())
        called = [explained[t] for t in rubric.required_by(task.id) if t in explained]
        broken = [t for t in called if _could_show(t, known)]
        # What a student may not see yet must not be told through another task's message.
        visible = [t for t in broken if rubric.by_id[t.id].visibility == "visible"]
        found = suspects(evidence.get(task.id, Evidence()), _possible(task, broken, visible, known))
        explained[task.id] = _explained(task, _narrowed(found, visible), visible, hints)
    return replace(result, tasks=tuple(explained.values()))


def _could_show(called: TaskResult, known: Collection[Signature]) -> bool:
    """Whether what fails in a task that this one calls may be what fails here.

    It can't be where its mistake is known, and mistakes of that task are known to show here, and
    this one is not among them.
    """
    if not called.fails:
        return False
    source = called.blames or called.id
    told_of = any(s.mistake.task == source for s in known)
    return not (called.known and told_of and all(s.mistake.id != called.known for s in known))


def _possible(
    task: TaskResult,
    broken: Sequence[TaskResult],
    visible: Sequence[TaskResult],
    known: Collection[Signature],
) -> list[Signature]:
    """The mistakes that may be named: this task's own only where nothing that it calls fails."""
    if not broken:
        return [s for s in known if s.mistake.task == task.id]
    named = {t.known for t in visible if t.known}
    unnamed = {t.id for t in visible if not t.known}
    return [s for s in known if s.mistake.id in named or s.mistake.task in unnamed]


def _narrowed(found: list[Signature], upstream: Sequence[TaskResult]) -> list[Signature]:
    """A mistake that is already named in a task that this one calls explains this one too."""
    named = {task.known for task in upstream if task.known}
    return [s for s in found if s.mistake.id in named] or found


def _explained(
    task: TaskResult, found: list[Signature], broken: Sequence[TaskResult], hints: Hints
) -> TaskResult:
    causes = {(s.mistake.task, s.mistake.sentence): s.mistake for s in found}
    tests = tuple(test.name for test in task.failing)
    diagnoses: tuple[Diagnosis, ...] = ()
    if len(causes) == 1:
        known = next(iter(causes.values()))
        named = Diagnosis(
            tests=tests,
            task=known.task,
            mistake=known.id,
            sentences=(known.sentence,) if hints == "full" else (),
            nudge=known.nudge if hints != "off" else "",
        )
        diagnoses = (named,)
    elif broken:
        diagnoses = (Diagnosis(tests=tests, task=broken[0].id),)
    elif 1 < len(causes) <= _MOST and hints == "full":
        sentences = tuple(mistake.sentence for mistake in causes.values())
        diagnoses = (Diagnosis(tests=tests, task=task.id, sentences=sentences),)
    said = tuple(_hinted(test, hints) for test in task.tests)
    return replace(task, tests=said, diagnoses=diagnoses)


def _hinted(test: TestResult, hints: Hints) -> TestResult:
    """A test without what hints keep back: its clue, and the numbers of its picture."""
    failure = test.failure
    if failure is None or hints == "full":
        return test
    picture = failure.picture
    if picture is not None:
        picture = None if hints == "off" else replace(picture, got=None, expected=None)
    shown: Failure = replace(failure, clue=None, picture=picture)
    return replace(test, failure=shown)
