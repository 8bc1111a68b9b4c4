"""Saved cases: inputs with the answers that are right, and how a test checks them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import torch

from tests.harness.clues import clues_of
from tests.harness.compare import Difference, compare, strange_places
from tests.harness.errors import Crashed, Finding, WrongAnswer
from tests.harness.fingerprints import FAR, Seen, digest_of, directions_of, places_of
from tests.harness.pictures import picture_of
from tests.harness.plain import Plain


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A case, ready to run."""

    name: str
    arguments: dict[str, Plain]
    answers: tuple[Plain, ...]
    """Tensors, or exact data; more than one where conventions differ."""
    dtype: torch.dtype
    limit: float


class Cases:
    """The saved cases of one test."""

    def __init__(self, cases: tuple[Case, ...]) -> None:
        self.cases = cases
        self.seen: dict[str, Seen] = {}
        """What came out of each case, once `check` has run it."""

    def check(self, adapter: Callable[..., Plain]) -> None:
        """Run the adapter on every case and hold the answers against the saved ones.

        Raises:
            Finding: at least one answer is wrong; the first wrong one is described.
        """
        wrong: list[tuple[Case, Finding]] = []
        clues: list[list[str]] = []
        for case in self.cases:
            try:
                got = adapter(**case.arguments)
            except (Crashed, WrongAnswer) as finding:
                self.seen[case.name] = Seen(
                    kind="raises", detail=finding.lines[0].partition(":")[0], error=FAR
                )
                wrong.append((case, finding))
                continue
            answer, found = _nearest(got, case)
            self.seen[case.name] = _seen(got, answer, found)
            if isinstance(found, Difference):
                drawn = found.kind in ("value", "nan") and not wrong
                picture = picture_of(case.name, got, answer, case.limit) if drawn else None
                wrong.append((case, WrongAnswer(found.text, picture=picture)))
                if found.kind == "value":
                    clues.append(clues_of(got, answer, case.arguments))
        if wrong:
            raise self._finding(wrong, clues)

    def _finding(self, wrong: list[tuple[Case, Finding]], clues: list[list[str]]) -> Finding:
        """Describe the first wrong case, and add what all wrong ones have in common."""
        case, finding = wrong[0]
        others = f" · {len(wrong)} of {len(self.cases)} cases fail" if len(self.cases) > 1 else ""
        lines = [*finding.lines, f"saved case: {case.name}{others}"]
        common = [clue for clue in clues[0] if all(clue in c for c in clues)] if clues else []
        clue = common[0] if common else None
        return type(finding)(*lines, clue=clue, picture=finding.picture)


def _nearest(got: Plain, case: Case) -> tuple[Plain, float | Difference]:
    """Of the answers that are right, the one that `got` comes nearest to."""
    found = [(answer, compare(got, answer, case.dtype, case.limit)) for answer in case.answers]
    return min(found, key=lambda pair: _distance(pair[1]))


def _seen(got: Plain, answer: Plain, found: float | Difference) -> Seen:
    if not isinstance(found, Difference):
        return Seen(error=found)
    if found.kind == "data":
        return Seen(kind="data", detail=digest_of(got), error=FAR)
    if found.kind in ("type", "shape", "dtype"):
        return Seen(kind=found.kind, detail=found.text, error=FAR)
    places = places_of(strange_places(got, answer)) if found.kind == "nan" else ""
    off = directions_of(got.double() - answer)
    return Seen(kind=found.kind, detail=places, off=off, error=min(FAR, found.error))


def _distance(found: float | Difference) -> tuple[bool, float]:
    """How far an answer is off; one that is right comes before every one that isn't."""
    return (True, found.error) if isinstance(found, Difference) else (False, found)
