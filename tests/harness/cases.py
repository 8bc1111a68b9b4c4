"""Saved cases: inputs with the answers that are right, and how a test checks them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import torch
from msgspec.structs import replace
from torch import Tensor

from tests.harness.clues import clues_of
from tests.harness.compare import Difference, compare, seen_of
from tests.harness.errors import Crashed, Finding, WrongAnswer
from tests.harness.fingerprints import Seen, shaken
from tests.harness.pictures import picture_of
from tests.harness.plain import Plain
from tests.harness.results import CaseNote


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A case, ready to run."""

    name: str
    arguments: dict[str, Plain]
    answers: tuple[Plain, ...]
    """Tensors, or exact data; more than one where conventions differ."""
    dtype: torch.dtype
    limit: float


class Cases:
    """The saved cases of one test.

    Args:
        cases: the cases.
        noise: how often each answer is seen once more, disturbed by another seed of noise.
    """

    def __init__(self, cases: tuple[Case, ...], noise: int = 0) -> None:
        self.cases = cases
        self.seen: dict[str, Seen] = {}
        """What came out of each case, once `check` has run it."""
        self.shaken: list[dict[str, Seen]] = [{} for _ in range(noise)]
        """The same for each seed of noise."""

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
                self._see(case, finding.seen)
                wrong.append((case, finding))
                continue
            answer, found = _nearest(got, case)
            self._see(case, seen_of(got, answer, found, case.limit), got)
            if isinstance(found, Difference):
                drawn = found.kind in ("value", "nan") and not wrong
                picture = picture_of(case.name, got, answer, case.limit) if drawn else None
                wrong.append((case, WrongAnswer(found.text, picture=picture)))
                if found.kind == "value":
                    clues.append(clues_of(got, answer, case.arguments))
        if wrong:
            raise self._finding(wrong, clues)

    def _see(self, case: Case, seen: Seen, got: Plain = None) -> None:
        self.seen[case.name] = seen
        for number, other in enumerate(self.shaken):
            other[case.name] = seen
            if isinstance(got, Tensor) and got.is_floating_point():
                disturbed = shaken(got, f"{number}/{case.name}")
                answer, found = _nearest(disturbed, case)
                other[case.name] = seen_of(disturbed, answer, found, case.limit)

    def _finding(self, wrong: list[tuple[Case, Finding]], clues: list[list[str]]) -> Finding:
        """Describe the first wrong case, and add what all wrong ones have in common."""
        case, finding = wrong[0]
        common = [clue for clue in clues[0] if all(clue in c for c in clues)] if clues else []
        finding.failure = replace(
            finding.failure,
            case=CaseNote(name=case.name, failing=len(wrong), total=len(self.cases)),
            clue=common[0] if common else None,
        )
        return finding


def _nearest(got: Plain, case: Case) -> tuple[Plain, float | Difference]:
    """Of the answers that are right, the one that `got` comes nearest to."""
    found = [(answer, compare(got, answer, case.dtype, case.limit)) for answer in case.answers]
    return min(found, key=lambda pair: _distance(pair[1]))


def _distance(found: float | Difference) -> tuple[bool, float]:
    """How far an answer is off; one that is right comes before every one that isn't."""
    return (True, found.error) if isinstance(found, Difference) else (False, found)
