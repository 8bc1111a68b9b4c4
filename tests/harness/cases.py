"""Saved cases: inputs together with the right answers, and the check of a submission on them."""

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
    """A saved case, unpacked."""

    name: str
    arguments: dict[str, Plain]
    """Keyword arguments of the adapter or probe."""
    answers: tuple[Plain, ...]
    """The right answers, as tensors or exact data; more than one if conventions differ."""
    dtype: torch.dtype
    """The dtype that an answer must have."""
    limit: float
    """The largest error allowed, in units of the dtype's tolerance."""


class Cases:
    """The saved cases of one test.

    Args:
        cases: the cases.
        noise: the number of noise seeds; for each seed, every answer is compared again with noise.
    """

    def __init__(self, cases: tuple[Case, ...], noise: int = 0) -> None:
        self.cases = cases
        self.seen: dict[str, Seen] = {}
        """The outcome of each case that `check` has run."""
        self.shaken: list[dict[str, Seen]] = [{} for _ in range(noise)]
        """The outcomes with noise: one dict for each seed."""

    def check(self, adapter: Callable[..., Plain]) -> None:
        """Run the adapter on every case and compare its answers with the saved ones.

        Raises:
            Finding: at least one answer is wrong; the finding describes the first wrong one.
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
        """Describe the first wrong case; add the number of wrong cases and the clue of them all."""
        case, finding = wrong[0]
        common = [clue for clue in clues[0] if all(clue in c for c in clues)] if clues else []
        finding.failure = replace(
            finding.failure,
            case=CaseNote(name=case.name, failing=len(wrong), total=len(self.cases)),
            clue=common[0] if common else None,
        )
        return finding


def _nearest(got: Plain, case: Case) -> tuple[Plain, float | Difference]:
    """Find the right answer that is nearest to `got`, and the result of the comparison."""
    found = [(answer, compare(got, answer, case.dtype, case.limit)) for answer in case.answers]
    return min(found, key=lambda pair: _distance(pair[1]))


def _distance(found: float | Difference) -> tuple[bool, float]:
    """Return a sort key: right answers come before wrong ones, and small errors first."""
    return (True, found.error) if isinstance(found, Difference) else (False, found)
