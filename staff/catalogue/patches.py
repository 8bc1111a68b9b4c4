"""Patches: small named edits that make the solution wrong, or write it differently.

A patch is data, so that a person can read what a student wrote beside what it should have been.
A file of the catalogue holds the patches of one task, and its name says which. An entry states what
makes it differ from its neighbours and nothing else: its edits are in the first file of the task
unless they name another, and a patch of one edit has that edit's fields itself.
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
    """`value`: some input gives a clearly different tensor. `property`: no saved tensor shows it,
    a property test or a probe does. `error`: the code raises where it should work."""
    sentence: str
    """Completes "This is what comes out when …"."""
    nudge: str
    """A question that leads the student to it without giving it away."""
    edits: tuple[Edit, ...]


class Alternate(msgspec.Struct, frozen=True, kw_only=True):
    """A patch that keeps the solution right but writes it differently."""

    id: str
    task: str
    sentence: str
    """How it is written."""
    edits: tuple[Edit, ...]


Patch = Mistake | Alternate


def load_mistakes(folder: Path = FOLDER / "mistakes") -> tuple[Mistake, ...]:
    """Read every mistake, sorted by task and otherwise in the order of the files.

    Raises:
        PatchError: a file is not as it should be, or an id occurs twice.
    """
    return tuple(
        Mistake(
            id=entry.id,
            task=task,
            shows=entry.shows,
            sentence=entry.sentence,
            nudge=entry.nudge,
            edits=edits,
        )
        for task, entry, edits in _read(folder, "mistake", _MistakeEntry)
    )


def load_alternates(folder: Path = FOLDER / "alternates") -> tuple[Alternate, ...]:
    """Read every alternate, sorted by task and otherwise in the order of the files.

    Raises:
        PatchError: a file is not as it should be, or an id occurs twice.
    """
    return tuple(
        Alternate(id=entry.id, task=task, sentence=entry.sentence, edits=edits)
        for task, entry, edits in _read(folder, "alternate", _Entry)
    )


def patched(
    patches: Sequence[Patch], solution: Path, destination: Path, *, link: bool = False
) -> Path:
    """Copy the solution to a new folder, apply the patches there, and return that folder.

    Args:
        patches: what to apply, in this order.
        solution: the submission to start from.
        destination: the new folder.
        link: share what stays as it is, bytecode too, with `solution`, which must hold nothing
            else: for folders that nobody writes to.

    Raises:
        PatchError: the destination exists already, or a patch doesn't fit.
    """
    if destination.exists():
        raise PatchError(f"{destination.name}: exists already; name a folder that doesn't")
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
    """Left out where it is the first file of the task."""
    find: str | None = None
    replace: str | None = None
    symbol: str | None = None
    """`Class.method` in the first file of the task, or `package.module:Class.method` elsewhere."""
    body: str | None = None

    def resolved(self, default: str) -> Edit:
        """The edit with its file, which is `default` where none is written.

        Raises:
            ValueError: the fields don't make an edit, or the default is written.
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
    """A patch as its file writes it: a single edit in the entry itself, several in `edits`."""

    id: str
    sentence: str
    edits: tuple[_WrittenEdit, ...] = ()


class _MistakeEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    shows: Literal["value", "property", "error"]
    nudge: str


def _read(
    folder: Path, heading: str, kind: type[_AnyEntry]
) -> list[tuple[str, _AnyEntry, tuple[Edit, ...]]]:
    rubric, found = read_rubric(), []
    for path in sorted(folder.glob("*.toml")):
        if path.stem not in rubric.by_id:
            raise PatchError(f"{path.name}: its name must be that of a task")
        default = rubric.task(path.stem).files[0]
        for number, fields in enumerate(_tables(path, heading), 1):
            try:
                entry = msgspec.convert(fields, kind)
                found.append((path.stem, entry, _edits(entry, default)))
            except ValueError as error:
                name = fields.get("id", f"{heading} {number}")
                raise PatchError(f"{name}: {path.name}: {error}") from error
    for name, count in Counter(entry.id for _, entry, _ in found).items():
        if count > 1:
            raise PatchError(f"{name}: this id is found {count} times")
    return found


def _tables(path: Path, heading: str) -> list[dict[str, object]]:
    try:
        content = msgspec.toml.decode(path.read_bytes(), type=dict[str, list[dict[str, object]]])
    except ValueError as error:
        raise PatchError(f"{path.name}: {error}") from error
    if set(content) != {heading}:
        raise PatchError(f"{path.name}: it must hold [[{heading}]] tables and nothing else")
    return content[heading]


def _edits(entry: _Entry, default: str) -> tuple[Edit, ...]:
    inline = any(getattr(entry, field) is not None for field in _WrittenEdit.__struct_fields__)
    if inline and entry.edits:
        raise ValueError("an edit stands in the entry and others in tables: put all in tables")
    if not inline and not entry.edits:
        raise ValueError("it has no edit")
    if len(entry.edits) == 1:
        raise ValueError("its only edit stands in a table: put it in the entry")
    return tuple(edit.resolved(default) for edit in entry.edits or (entry,))
