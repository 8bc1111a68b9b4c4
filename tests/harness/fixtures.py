"""Fixtures: the saved cases on disk, one safetensors file per task.

A file holds tensors and one metadata entry, a JSON text that says which case uses which tensor.
`manifest.json` beside the files holds the digest of each, so that a damaged file is an error of its
own and never a wrong answer; and for staff, what each was built from.
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

FORMAT = 3
FIXTURES = Path(__file__).parents[1] / "fixtures"
MANIFEST = "manifest.json"
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
    tests: dict[str, Seen]
    """What the tests without saved cases see, where it shows."""


class FixtureEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The metadata of a file."""

    format: int
    task: str
    cases: tuple[CaseEntry, ...]
    mistakes: msgspec.Raw = msgspec.Raw(b"[]")
    """The known mistakes that show in this task, as `MistakeEntry`."""


class Built(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file as the manifest describes it."""

    sha256: str
    """Digest of its bytes."""
    sources: dict[str, str]
    """Digests of what it was built from, under the names of `staff.fixtures.sources`."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands beside the files: every hash, and the version of the format."""

    format: int = FORMAT
    tasks: dict[str, Built] = {}


class _AnyEntry(msgspec.Struct, frozen=True):
    """The metadata of a file of any format, as far as all have it."""

    format: int


@dataclass(frozen=True)
class Signature:
    """A known mistake, and what it gives in a task, where it shows."""

    mistake: MistakeEntry
    seen: dict[tuple[str, str], Seen] = field(default_factory=dict)
    """Under the names of test and saved case; "" stands for a test that has none."""


class Fixtures:
    """A folder of saved files."""

    def __init__(self, folder: Path = FIXTURES) -> None:
        self.folder = folder
        self.manifest = read_manifest(folder)
        self._entries: dict[str, FixtureEntry] = {}
        self._tasks: dict[str, dict[str, tuple[Case, ...]]] = {}
        self._signatures: dict[str, list[Signature]] = {}

    def cases(self, task_id: str, test: str, noise: int = 0) -> Cases:
        """The cases of one test, to be seen once more with so many seeds of noise.

        Raises:
            FixtureError: the file is missing or damaged, or holds no case for the test.
        """
        found = self.task(task_id).get(test)
        if not found:
            raise FixtureError(
                f"{self.folder / task_id}.safetensors holds no case for {test}; {_MEND}"
            )
        return Cases(found, noise)

    def task(self, task_id: str) -> Mapping[str, tuple[Case, ...]]:
        """All cases of a task, under the names of their tests.

        Raises:
            FixtureError: the file is missing or damaged.
        """
        if task_id not in self._tasks:
            file = self.folder / f"{task_id}.safetensors"
            entry, tensors = read_fixture(file, self.manifest.tasks.get(task_id))
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
        mistake.id: Signature(
            mistake=mistake, seen={(test, ""): seen for test, seen in mistake.tests.items()}
        )
        for mistake in msgspec.json.decode(entry.mistakes, type=list[MistakeEntry])
    }
    for case in entry.cases:
        for name, seen in msgspec.json.decode(case.mistakes, type=dict[str, Seen]).items():
            signatures[name].seen[case.test, case.name] = seen
    return list(signatures.values())


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a fixture folder.

    Raises:
        FixtureError: it is missing, damaged, or of another format.
    """
    file = folder / MANIFEST
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FixtureError(f"{file} cannot be read ({error.strerror}); {_MEND}") from error
    return decode_manifest(file, content)


def decode_manifest(file: Path, content: bytes) -> Manifest:
    """Take the bytes of a manifest apart; `file` only names it in errors.

    Raises:
        FixtureError: they are no manifest, or one of another format.
    """
    try:
        found = msgspec.json.decode(content, type=_AnyEntry).format
        if found == FORMAT:
            return msgspec.json.decode(content, type=Manifest)
    except msgspec.MsgspecError as error:
        raise FixtureError(f"{file} is damaged ({error}); {_MEND}") from error
    raise FixtureError(f"{file} has format {found}, expected {FORMAT}; {_MEND}")


def read_fixture(file: Path, built: Built | None) -> tuple[FixtureEntry, dict[str, Tensor]]:
    """Read one file, if its bytes are those that the manifest knows.

    Raises:
        FixtureError: it is missing, unknown to the manifest, damaged, or of another format.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FixtureError(f"{file} cannot be read ({error.strerror}); {_MEND}") from error
    if built is None or hashlib.sha256(content).hexdigest() != built.sha256:
        raise FixtureError(
            f"{file} is damaged: its bytes are not those that {MANIFEST} knows; {_MEND}"
        )
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
