"""Fixtures: the saved cases on disk, in one safetensors file for each task.

A file holds tensors and one metadata entry. The entry is a JSON text that describes the cases and
the tensors that they use. `manifest.json` in the same folder holds the digest of each file, so
that a damaged file is reported as damaged and never as a wrong answer. For staff, it also holds
the digests of the sources that each file was built from.
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
    """A case in the form of the metadata."""

    test: str
    """The name of the test function that checks the case."""
    name: str
    adapter: str
    arguments: Any
    """Packed keyword arguments of the adapter or probe."""
    answers: tuple[Any, ...]
    """Packed right answers; more than one if conventions differ."""
    dtype: str
    """The name of the dtype that an answer must have."""
    limit: float
    """The largest error allowed, in units of the dtype's tolerance."""
    mistakes: msgspec.Raw = msgspec.Raw(b"{}")
    """The outcome (`Seen`) of each known mistake that shows in the case, by mistake id."""


class MistakeEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known mistake that shows in a task, made in this task or in one that it calls."""

    id: str
    task: str
    """The task whose code has the mistake."""
    sentence: str
    """The mistake in words that complete "This is what comes out when …"."""
    nudge: str
    """A question that leads the student to the mistake."""
    tests: dict[str, Seen]
    """The outcome of each test without saved cases in which the mistake shows, by test name."""


class FixtureEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The metadata of a fixture file."""

    format: int
    task: str
    cases: tuple[CaseEntry, ...]
    mistakes: msgspec.Raw = msgspec.Raw(b"[]")
    """A JSON list of `MistakeEntry`: the known mistakes that show in this task."""


class Built(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The entry of a fixture file in the manifest."""

    sha256: str
    """The digest of the file's bytes."""
    sources: dict[str, str]
    """The digests of the sources of the file, by the names in `staff.fixtures.sources`."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of `manifest.json`: the format version, and an entry for each task."""

    format: int = FORMAT
    tasks: dict[str, Built] = {}


class _AnyEntry(msgspec.Struct, frozen=True):
    """The part of the metadata that is the same in every format."""

    format: int


@dataclass(frozen=True)
class Signature:
    """A known mistake, and its outcomes in the tests of a task."""

    mistake: MistakeEntry
    seen: dict[tuple[str, str], Seen] = field(default_factory=dict)
    """The outcomes by test name and case name; the case name is "" if the test has no case."""


class Fixtures:
    """A folder of fixture files.

    Raises:
        FixtureError: the manifest is missing, damaged, or of another format.
    """

    def __init__(self, folder: Path = FIXTURES) -> None:
        self.folder = folder
        self.manifest = read_manifest(folder)
        self._entries: dict[str, FixtureEntry] = {}
        self._tasks: dict[str, dict[str, tuple[Case, ...]]] = {}
        self._signatures: dict[str, list[Signature]] = {}

    def cases(self, task_id: str, test: str, noise: int = 0) -> Cases:
        """Return the cases of one test.

        Args:
            task_id: the id of the test's task.
            test: the name of the test.
            noise: the number of noise seeds; see `Cases`.

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
        """Return all cases of a task, by test name.

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
        """Return the known mistakes that show in a task, with their outcomes.

        Raises:
            FixtureError: the file is missing or damaged.
        """
        if task_id not in self._signatures:
            self.task(task_id)
            self._signatures[task_id] = signatures_of(self._entries[task_id])
        return self._signatures[task_id]


def signatures_of(entry: FixtureEntry) -> list[Signature]:
    """Collect the known mistakes of a fixture file, with their outcomes."""
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
        FixtureError: the manifest is missing, damaged, or of another format.
    """
    file = folder / MANIFEST
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FixtureError(f"{file} cannot be read ({error.strerror}); {_MEND}") from error
    return decode_manifest(file, content)


def decode_manifest(file: Path, content: bytes) -> Manifest:
    """Decode the bytes of a manifest.

    Args:
        file: the path of the manifest, for error messages.
        content: its bytes.

    Raises:
        FixtureError: the manifest is damaged, or of another format.
    """
    try:
        found = msgspec.json.decode(content, type=_AnyEntry).format
        if found == FORMAT:
            return msgspec.json.decode(content, type=Manifest)
    except msgspec.MsgspecError as error:
        raise FixtureError(f"{file} is damaged ({error}); {_MEND}") from error
    raise FixtureError(f"{file} has format {found}, expected {FORMAT}; {_MEND}")


def read_fixture(file: Path, built: Built | None) -> tuple[FixtureEntry, dict[str, Tensor]]:
    """Read one fixture file, and check its bytes against the digest in the manifest.

    Args:
        file: the path of the file.
        built: the file's entry in the manifest; None if there is none.

    Raises:
        FixtureError: the file is missing, damaged, of another format, or not in the manifest.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FixtureError(f"{file} cannot be read ({error.strerror}); {_MEND}") from error
    if built is None or hashlib.sha256(content).hexdigest() != built.sha256:
        raise FixtureError(f"{file} is damaged: its digest is not the one in {MANIFEST}; {_MEND}")
    return decode_fixture(file, content)


def decode_fixture(file: Path, content: bytes) -> tuple[FixtureEntry, dict[str, Tensor]]:
    """Decode the bytes of a fixture file into its metadata and its tensors.

    Args:
        file: the path of the file, for error messages.
        content: its bytes.

    Raises:
        FixtureError: the file is not a fixture, or of another format.
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
    """Return the metadata entry of a safetensors file.

    The file starts with 8 bytes that hold the length of a JSON header, and then the header.
    """
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
