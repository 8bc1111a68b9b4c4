"""Saved cases: inputs with the answers that are right, one safetensors file per task.

A file holds tensors and one metadata entry, a JSON text that says which case uses which tensor.
`SHA256SUMS` beside the files seals their bytes, so that a damaged file is an error of its own
and never a wrong answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from tests.harness.compare import difference
from tests.harness.errors import FixtureError, WrongAnswer
from tests.harness.plain import Plain, unpack

FORMAT = 1
FIXTURES = Path(__file__).parents[1] / "fixtures"
SEALS = "SHA256SUMS"
METADATA_KEY = "cs336"
_MEND = "run `git checkout -- tests/fixtures`, or `cs336 fixtures build` if you are staff"


class CaseEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A case as the metadata describes it."""

    test: str
    """The test function that checks it."""
    name: str
    adapter: str
    arguments: Any
    """Packed keyword arguments of the adapter."""
    answers: tuple[str, ...]
    """Names of the tensors that are right; more than one where conventions differ."""
    dtype: str
    """The dtype an answer must have."""
    limit: float
    """The largest error allowed, in units of the dtype's tolerance."""


class FixtureEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The metadata of a file."""

    format: int
    task: str
    oracle: str
    """Hash of the oracle that gave the expected values."""
    solution: str
    """Hash of the solution that was held against them."""
    cases: tuple[CaseEntry, ...]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A case, ready to run."""

    name: str
    arguments: dict[str, Plain]
    answers: tuple[Tensor, ...]
    dtype: torch.dtype
    limit: float


class Cases:
    """The saved cases of one test."""

    def __init__(self, cases: tuple[Case, ...]) -> None:
        self.cases = cases

    def check(self, adapter: Callable[..., Plain]) -> None:
        """Run the adapter on every case and hold the answers against the saved ones.

        Raises:
            WrongAnswer: at least one answer is wrong; the first wrong one is described.
        """
        wrong = []
        for case in self.cases:
            got = adapter(**case.arguments)
            found = [difference(got, answer, case.dtype, case.limit) for answer in case.answers]
            if all(found):
                nearest = min((d for d in found if d), key=lambda d: d.error)
                wrong.append((case, nearest))
        if wrong:
            case, nearest = wrong[0]
            others = (
                f" · {len(wrong)} of {len(self.cases)} cases fail" if len(self.cases) > 1 else ""
            )
            raise WrongAnswer(nearest.text, f"saved case: {case.name}{others}")


class Fixtures:
    """A folder of saved files."""

    def __init__(self, folder: Path = FIXTURES) -> None:
        self.folder = folder
        self.seals = _read_seals(folder / SEALS)
        self._tasks: dict[str, dict[str, tuple[Case, ...]]] = {}

    def cases(self, task_id: str, test: str) -> Cases:
        """The cases of one test.

        Raises:
            FixtureError: the file is missing or damaged, or holds no case for the test.
        """
        found = self.task(task_id).get(test)
        if not found:
            raise FixtureError(
                f"{self.folder / task_id}.safetensors holds no case for {test}; {_MEND}"
            )
        return Cases(found)

    def task(self, task_id: str) -> Mapping[str, tuple[Case, ...]]:
        """All cases of a task, under the names of their tests.

        Raises:
            FixtureError: the file is missing or damaged.
        """
        if task_id not in self._tasks:
            file = self.folder / f"{task_id}.safetensors"
            entry, tensors = read_fixture(file, self.seals.get(file.name))
            cases: dict[str, tuple[Case, ...]] = {}
            for case in entry.cases:
                cases[case.test] = (*cases.get(case.test, ()), _ready(case, tensors))
            self._tasks[task_id] = cases
        return self._tasks[task_id]


def read_fixture(file: Path, seal: str | None) -> tuple[FixtureEntry, dict[str, Tensor]]:
    """Read one file, if its bytes are those that were sealed.

    Raises:
        FixtureError: it is missing, not sealed, damaged, or of another format.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FixtureError(f"{file} cannot be read ({error.strerror}); {_MEND}") from error
    if hashlib.sha256(content).hexdigest() != seal:
        raise FixtureError(f"{file} is damaged: its bytes are not those sealed in {SEALS}; {_MEND}")
    return decode_fixture(file, content)


def decode_fixture(file: Path, content: bytes) -> tuple[FixtureEntry, dict[str, Tensor]]:
    """Take the bytes of a file apart; `file` only names it in errors.

    Raises:
        FixtureError: they are not a fixture, or one of another format.
    """
    try:
        entry = msgspec.json.decode(_metadata(content), type=FixtureEntry)
        tensors = load(content)
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise FixtureError(f"{file} is not a fixture ({error}); {_MEND}") from error
    if entry.format != FORMAT:
        raise FixtureError(f"{file} has format {entry.format}, expected {FORMAT}; {_MEND}")
    return entry, tensors


def _metadata(content: bytes) -> str:
    """The metadata entry of a safetensors file: 8 bytes of length, then a JSON header."""
    length = int.from_bytes(content[:8], "little")
    text: str = json.loads(content[8 : 8 + length])["__metadata__"][METADATA_KEY]
    return text


def _ready(case: CaseEntry, tensors: Mapping[str, Tensor]) -> Case:
    return Case(
        name=case.name,
        arguments=unpack(case.arguments, tensors),
        answers=tuple(tensors[name] for name in case.answers),
        dtype=getattr(torch, case.dtype),
        limit=case.limit,
    )


def _read_seals(file: Path) -> dict[str, str]:
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FixtureError(f"{file} cannot be read; {_MEND}") from error
    return {name: seal for seal, _, name in (line.partition("  ") for line in lines)}
