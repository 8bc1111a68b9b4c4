"""Patches: small named edits that make the solution wrong, or write it differently.

A patch is data, so that a person can read the changed code beside the original code. Each file of
the catalogue is named after a task and holds its patches, each in a table that has the patch's id.
An entry leaves out what is the same for most: an edit without `file` is in the first file of the
task, an entry with one edit has the fields of the edit itself, and a mistake shows in values.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from staff.catalogue.edits import BodyEdit, Edit, PatchError, TextEdit, apply
from tests.harness.rubric import read_rubric
from tests.harness.submission import PACKAGE

FOLDER = Path(__file__).parent

_AnyEntry = TypeVar("_AnyEntry", bound="_Entry")


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """A patch that makes the solution wrong."""

    id: str
    task: str
    """The task whose points it must lose."""
    shows: Literal["value", "property", "error"]
    """`value`: some input gives a clearly different tensor. `property`: no saved tensor shows the
    mistake, but a property test or a probe does. `error`: the code raises an error but should
    not."""
    sentence: str
    """The mistake as a clause; it completes "This is what comes out when …"."""
    nudge: str
    """A question that leads the student to the cause without giving it away."""
    edits: tuple[Edit, ...]


class Alternate(msgspec.Struct, frozen=True, kw_only=True):
    """A patch that keeps the solution right but writes it differently."""

    id: str
    task: str
    sentence: str
    """How the code is written, as a clause."""
    edits: tuple[Edit, ...]


Patch = Mistake | Alternate


def load_mistakes(folder: Path = FOLDER / "mistakes") -> tuple[Mistake, ...]:
    """Read every mistake, sorted by task and otherwise in the order of the files.

    Raises:
        PatchError: a file is not as it should be, or an id occurs twice.
    """
    return tuple(
        Mistake(
            id=name,
            task=task,
            shows=entry.shows,
            sentence=entry.sentence,
            nudge=entry.nudge,
            edits=edits,
        )
        for task, name, entry, edits in _read(folder, _MistakeEntry)
    )


def load_alternates(folder: Path = FOLDER / "alternates") -> tuple[Alternate, ...]:
    """Read every alternate, sorted by task and otherwise in the order of the files.

    Raises:
        PatchError: a file is not as it should be, or an id occurs twice.
    """
    return tuple(
        Alternate(id=name, task=task, sentence=entry.sentence, edits=edits)
        for task, name, entry, edits in _read(folder, _Entry)
    )


def patched(
    patches: Sequence[Patch], solution: Path, destination: Path, *, link: bool = False
) -> Path:
    """Copy the solution to a new folder, apply the patches there, and return that folder.

    Args:
        patches: what to apply, in this order.
        solution: the submission to start from.
        destination: the new folder.
        link: whether to share unchanged files, bytecode included, with `solution` by hard links.
            `solution` must then hold no other files, and nobody may write to the new folder.

    Raises:
        PatchError: the destination exists already, or a patch doesn't fit.
    """
    if destination.exists():
        raise PatchError(f"{destination.name}: the folder exists already; name a new one")
    if link:
        shutil.copytree(solution, destination, copy_function=os.link)
    else:
        python_alone = shutil.ignore_patterns("__pycache__")
        shutil.copytree(solution / PACKAGE, destination / PACKAGE, ignore=python_alone)
        shutil.copyfile(solution / "adapters.py", destination / "adapters.py")
    for patch in patches:
        apply(patch.edits, destination, patch.id)
    return destination


class _WrittenEdit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An edit as a file of the catalogue writes it."""

    file: str | None = None
    """The path of the file; None means the first file of the task."""
    find: str | None = None
    replace: str | None = None
    symbol: str | None = None
    """`Class.method` in the first file of the task, or `package.module:Class.method` in another."""
    body: str | None = None

    def resolved(self, default: str) -> Edit:
        """Return the edit with its file, which is `default` if none is written.

        Raises:
            ValueError: the fields don't form an edit, or they name the default file.
        """
        file, name = self.file, self.symbol
        if name is not None and ":" in name:
            module, _, name = name.partition(":")
            file = module.replace(".", "/") + ".py"
        if file == default:
            raise ValueError(f"{default} is the first file of the task: leave it out")
        match self:
            case _WrittenEdit(find=str(find), replace=str(replace), symbol=None, body=None):
                if find:
                    return TextEdit(file or default, find, replace)
            case _WrittenEdit(file=None, find=None, replace=None, body=str(body)) if name:
                return BodyEdit(file or default, name, body)
        raise ValueError("an edit has either find (not empty) and replace, or symbol and body")


class _Entry(_WrittenEdit, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A patch as its file writes it, with one edit in the entry itself or several in `edits`."""

    sentence: str
    edits: tuple[_WrittenEdit, ...] = ()


class _MistakeEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    shows: Literal["value", "property", "error"] = "value"
    nudge: str


def _read(
    folder: Path, kind: type[_AnyEntry]
) -> list[tuple[str, str, _AnyEntry, tuple[Edit, ...]]]:
    """Return the task, the id, the entry and the edits of every patch."""
    rubric, found = read_rubric(), []
    for path in sorted(folder.glob("*.toml")):
        if path.stem not in rubric.by_id:
            raise PatchError(f"{path.name}: its name must be that of a task")
        default = rubric.task(path.stem).files[0]
        for name, fields in _tables(path).items():
            try:
                entry = msgspec.convert(fields, kind)
                found.append((path.stem, name, entry, _edits(entry, default)))
            except ValueError as error:
                raise PatchError(f"{name}: {path.name}: {error}") from error
    for name, count in Counter(name for _, name, _, _ in found).items():
        if count > 1:
            raise PatchError(f"{name}: this id is found {count} times")
    return found


def _tables(path: Path) -> dict[str, object]:
    try:
        return msgspec.toml.decode(path.read_bytes(), type=dict[str, object])
    except ValueError as error:
        raise PatchError(f"{path.name}: {error}") from error


def _edits(entry: _Entry, default: str) -> tuple[Edit, ...]:
    inline = any(getattr(entry, field) is not None for field in _WrittenEdit.__struct_fields__)
    if inline and entry.edits:
        raise ValueError("one edit is in the entry and others are in tables: put all in tables")
    if not inline and not entry.edits:
        raise ValueError("it has no edit")
    if len(entry.edits) == 1:
        raise ValueError("its only edit is in a table: put it in the entry")
    return tuple(edit.resolved(default) for edit in entry.edits or (entry,))
