"""Diagnosis: find the known mistake that explains the failures of a task.

A mistake is named only if it explains every outcome of the task's tests, the failures and the
passes, and no other known mistake does. If a task that this one calls fails too, and its failure
can show in this task, then only the mistakes of that called task are considered. If none of them
fits, the diagnosis asks the student to mend the called task first. A failure without a diagnosis
shows a clue or the plain comparison.
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
"""The largest number of mistakes that are listed when several explain the same outcomes."""


class Evidence:
    """The outcomes of the tests of one task."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str], Seen] = {}
        """The outcomes by test name and case name; the case name is "" if the test has no case."""

    def see(self, test: str, case: str, seen: Seen) -> None:
        """Record an outcome; if the case has one already, keep the one with the larger error."""
        earlier = self.seen.get((test, case))
        if earlier is None or seen.error > earlier.error:
            self.seen[test, case] = seen


def suspects(evidence: Evidence, signatures: Collection[Signature]) -> list[Signature]:
    """Return the known mistakes that explain the outcomes of a task's tests.

    A mistake must explain every saved case. The outcomes of the tests without saved cases then
    choose among these mistakes. If no saved case fails, a mistake must explain all outcomes.
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
    """Add a diagnosis to every failing task for which there is one.

    Args:
        result: the result of the run, without diagnoses.
        evidence: the outcomes of each task's tests, by task id.
        signatures: the known mistakes that show in each failing task, by task id.
        rubric: the rubric.
        hints: how much the diagnoses and clues may reveal.
    """
    explained: dict[str, TaskResult] = {}
    for task in result.tasks:
        if not task.fails:
            explained[task.id] = task
            continue
        known = signatures.get(task.id, ())
        called = [explained[t] for t in rubric.required_by(task.id) if t in explained]
        broken = [t for t in called if _could_show(t, known)]
        # The message of one task must not reveal the result of another task that is still hidden.
        visible = [t for t in broken if rubric.by_id[t.id].visibility == "visible"]
        found = suspects(evidence.get(task.id, Evidence()), _possible(task, broken, visible, known))
        explained[task.id] = _explained(task, _narrowed(found, visible), visible, hints)
    return replace(result, tasks=tuple(explained.values()))


def _could_show(called: TaskResult, known: Collection[Signature]) -> bool:
    """Return whether the failure of a called task may cause the failure of this task.

    The answer is False if the called task's mistake is identified and is not among the stored
    signatures, although other mistakes of the same task are.

    Args:
        called: the result of a task that this one calls.
        known: the signatures that are stored for this task.
    """
    if not called.fails:
        return False
    source = called.blames or called.id
    stored = any(s.mistake.task == source for s in known)
    return not (called.known and stored and all(s.mistake.id != called.known for s in known))


def _possible(
    task: TaskResult,
    broken: Sequence[TaskResult],
    visible: Sequence[TaskResult],
    known: Collection[Signature],
) -> list[Signature]:
    """Return the mistakes that may be named.

    They are the task's own if no called task fails. Otherwise they are the mistakes of the called
    tasks: only the identified one of a task whose mistake is identified, and all of any other.
    """
    if not broken:
        return [s for s in known if s.mistake.task == task.id]
    named = {t.known for t in visible if t.known}
    unnamed = {t.id for t in visible if not t.known}
    return [s for s in known if s.mistake.id in named or s.mistake.task in unnamed]


def _narrowed(found: list[Signature], upstream: Sequence[TaskResult]) -> list[Signature]:
    """Keep only the mistakes that are identified in a called task, if there are any."""
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
    shown = tuple(_hinted(test, hints) for test in task.tests)
    return replace(task, tests=shown, diagnoses=diagnoses)


def _hinted(test: TestResult, hints: Hints) -> TestResult:
    """Remove from a test's failure what `hints` does not allow: the clue and the picture."""
    failure = test.failure
    if failure is None or hints == "full":
        return test
    picture = failure.picture
    if picture is not None:
        picture = None if hints == "off" else replace(picture, got=None, expected=None)
    shown: Failure = replace(failure, clue=None, picture=picture)
    return replace(test, failure=shown)
