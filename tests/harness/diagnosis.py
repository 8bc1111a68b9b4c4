"""Diagnosis: from what a task's tests saw to a sentence that helps.

A known mistake is named only when it is the only one that would have given every failing case
and none of the passing ones. While a task that this one calls fails too, and could show here, the
cause is looked for there: this task is told which of its mistakes it fails with, or only that it
comes first. Otherwise the numbers speak: a clue, or the plain comparison.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from tests.harness.fingerprints import Seen, fits
from tests.harness.fixtures import Signature
from tests.harness.results import Picture, SuiteResult, TaskResult, TestResult
from tests.harness.rubric import Rubric

Hints = Literal["off", "nudge", "full"]
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
_SAME_NUMBER = 0.02
_MOST = 3


@dataclass
class Evidence:
    """What the tests of one task saw."""

    cases: dict[tuple[str, str], Seen] = field(default_factory=dict)
    """Outcomes of saved cases, under the names of test and case."""
    texts: dict[str, str] = field(default_factory=dict)
    """Outcomes of tests without saved cases: the first line, or "" for one that passed."""

    def see(self, test: str, case: str, seen: Seen) -> None:
        """Take down an outcome; of several of one case the worst stays."""
        earlier = self.cases.get((test, case))
        if earlier is None or seen.error > earlier.error:
            self.cases[test, case] = seen


def suspects(evidence: Evidence, signatures: Collection[Signature]) -> list[Signature]:
    """The known mistakes that would have given exactly what was seen.

    Saved cases decide; the texts of the other tests decide between those that they leave over,
    and alone where no case fails.
    """
    right = Seen()
    fitting = [
        signature
        for signature in signatures
        if all(
            _fits_case(seen, signature.cases.get(place, right))
            for place, seen in evidence.cases.items()
        )
    ]
    by_text = [s for s in fitting if _fits_texts(evidence.texts, s.mistake.texts)]
    if any(seen.kind != "right" for seen in evidence.cases.values()):
        return by_text or fitting
    return by_text if any(evidence.texts.values()) else []


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
    return msgspec.structs.replace(result, tasks=tuple(explained.values()))


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
    known, lines = None, []
    if len(causes) == 1:
        known = next(iter(causes.values()))
        lines = _named_lines(task.id, known.task, known.sentence, known.nudge, hints)
    elif broken:
        lines = [f"`{broken[0].id}`, which this task calls, fails too: mend that first"]
    elif 1 < len(causes) <= _MOST and hints == "full":
        said = "; or ".join(mistake.sentence for mistake in causes.values())
        lines = [f"a clue: known mistakes look like this when {said}"]
    blamed = known.task if known else (broken[0].id if broken else None)
    tests = tuple(_test(test, lines, hints, said=bool(lines)) for test in task.tests)
    return msgspec.structs.replace(
        task,
        tests=tests,
        known=known.id if known else None,
        blames=blamed if blamed != task.id else None,
        told=tuple(lines),
    )


def _named_lines(own: str, task: str, sentence: str, nudge: str, hints: Hints) -> list[str]:
    if hints == "off":
        return []
    if task != own:
        cause = f": {sentence}" if hints == "full" else ""
        return [
            f"fails exactly as it would with your `{task}`{cause}",
            f"mend that first (pytest --task={task})",
        ]
    told = [f"This is what comes out when {sentence}."] if hints == "full" else []
    return [*told, f"Ask yourself: {nudge}"]


def _test(test: TestResult, lines: list[str], hints: Hints, *, said: bool) -> TestResult:
    if not test.state.failed:
        return test
    if not said and test.clue and hints == "full":
        lines = [f"a clue: {test.clue}"]
    picture = _shown_at(hints, test.picture)
    return msgspec.structs.replace(test, lines=(*lines, *test.lines), picture=picture)


def _shown_at(hints: Hints, picture: Picture | None) -> Picture | None:
    """The whole picture, or the places without a number, or nothing."""
    if picture is None or hints == "full":
        return picture
    return None if hints == "off" else msgspec.structs.replace(picture, got=None, expected=None)


def _fits_case(seen: Seen, stored: Seen) -> bool:
    return seen.kind == "right" if stored.kind == "right" else fits(seen, stored)


def _fits_texts(seen: Mapping[str, str], stored: Mapping[str, str]) -> bool:
    return all(same_text(text, stored.get(test, "")) for test, text in seen.items())


def same_text(one: str, other: str) -> bool:
    """Whether two lines say the same, with numbers that agree to two digits."""
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return False
    pairs = zip(_numbers(one), _numbers(other), strict=True)
    return all(abs(a - b) <= _SAME_NUMBER * max(abs(a), abs(b)) for a, b in pairs)


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in _NUMBER.findall(text)]
