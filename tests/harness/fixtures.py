"""Fixtures: the saved cases on disk, one safetensors file per task.

A file holds tensors and one metadata entry, a JSON text that says which case uses which tensor.
`SHA256SUMS` beside the files seals their bytes, so that a damaged file is an error of its own
and never a wrong answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from tests.harness.cases import Case, Cases
from tests.harness.errors import FixtureError
from tests.harness.fingerprints import Seen
from tests.harness.plain import unpack

FORMAT = 2
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
    """Packed keyword arguments of the adapter or probe."""
    answers: tuple[Any, ...]
    """Packed right answers; more than one where conventions differ."""
    dtype: str
    """The dtype an answer must have."""
    limit: float
    """The largest error allowed, in units of the dtype's tolerance."""
    mistakes: msgspec.Raw = msgspec.Raw(b"{}")
    """What each known mistake gives here (ids and `Seen`), where it shows."""


class MistakeEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known mistake that shows in a task: the task's own, or one of a task it calls."""

    id: str
    task: str
    """The task in which it is made."""
    sentence: str
    """Completes "This is what comes out when …"."""
    nudge: str
    """A question that leads to it."""
    texts: dict[str, str]
    """What the tests without saved cases say about it: names and first lines."""


class FixtureEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The metadata of a file."""

    format: int
    task: str
    oracle: str
    """Hash of the oracle that gave the expected values."""
    solution: str
    """Hash of the solution that was held against them."""
    cases: tuple[CaseEntry, ...]
    mistakes: msgspec.Raw = msgspec.Raw(b"[]")
    """The known mistakes that show in this task, as `MistakeEntry`."""


class _AnyEntry(msgspec.Struct, frozen=True):
    """The metadata of a file of any format, as far as all have it."""

    format: int


@dataclass(frozen=True)
class Signature:
    """A known mistake, and what it gives in those cases of a task in which it shows."""

    mistake: MistakeEntry
    cases: dict[tuple[str, str], Seen] = field(default_factory=dict)
    """Under the names of test and case."""


class Fixtures:
    """A folder of saved files."""

    def __init__(self, folder: Path = FIXTURES) -> None:
        self.folder = folder
        self.seals = _read_seals(folder / SEALS)
        self._entries: dict[str, FixtureEntry] = {}
        self._tasks: dict[str, dict[str, tuple[Case, ...]]] = {}
        self._signatures: dict[str, list[Signature]] = {}

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
            self._entries[task_id] = entry
            self._tasks[task_id] = cases
        return self._tasks[task_id]

    def signatures(self, task_id: str) -> list[Signature]:
        """What each known mistake looks like in a task.

        Raises:
            FixtureError: the file is missing or damaged.
        """
        if task_id not in self._signatures:
            self.task(task_id)
            self._signatures[task_id] = signatures_of(self._entries[task_id])
        return self._signatures[task_id]


def signatures_of(entry: FixtureEntry) -> list[Signature]:
    """What each known mistake looks like in the cases of a file."""
    signatures = {
        mistake.id: Signature(mistake=mistake)
        for mistake in msgspec.json.decode(entry.mistakes, type=list[MistakeEntry])
    }
    for case in entry.cases:
        for name, seen in msgspec.json.decode(case.mistakes, type=dict[str, Seen]).items():
            signatures[name].cases[case.test, case.name] = seen
    return list(signatures.values())


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
        text = _metadata(content)
        found = msgspec.json.decode(text, type=_AnyEntry).format
        if found == FORMAT:
            return msgspec.json.decode(text, type=FixtureEntry), load(content)
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise FixtureError(f"{file} is not a fixture ({error}); {_MEND}") from error
    raise FixtureError(f"{file} has format {found}, expected {FORMAT}; {_MEND}")


def _metadata(content: bytes) -> str:
    """The metadata entry of a safetensors file: 8 bytes of length, then a JSON header."""
    length = int.from_bytes(content[:8], "little")
    text: str = json.loads(content[8 : 8 + length])["__metadata__"][METADATA_KEY]
    return text


def _ready(case: CaseEntry, tensors: Mapping[str, Tensor]) -> Case:
    return Case(
        name=case.name,
        arguments=unpack(case.arguments, tensors),
        answers=tuple(unpack(answer, tensors) for answer in case.answers),
        dtype=getattr(torch, case.dtype),
        limit=case.limit,
    )


def _read_seals(file: Path) -> dict[str, str]:
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FixtureError(f"{file} cannot be read; {_MEND}") from error
    return {name: seal for seal, _, name in (line.partition("  ") for line in lines)}
