"""Patches: small named edits that make the solution wrong, or write it differently.

A patch is data, so that a person can read what a student wrote beside what it should have been.
Its edits name their place by the text that stands there, or by the function whose body they
replace, never by line number: when the solution changes under a patch, the patch fails aloud
instead of editing something else.
"""

from __future__ import annotations

import ast
import os
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from tests.harness.errors import HarnessError
from tests.harness.submission import PACKAGE

FOLDER = Path(__file__).parent

_File = TypeVar("_File", bound="_MistakeFile | _AlternateFile")


class PatchError(HarnessError):
    """A patch can't be read or doesn't fit: its name, the file, and what was found."""


class Edit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One change to one file: either `file`, `find` and `replace`, or `symbol` and `body`."""

    file: str | None = None
    """Path from the submission's root, with forward slashes."""
    find: str | None = None
    """What stands there now; it must occur exactly once in the file."""
    replace: str | None = None
    """What stands there afterwards."""
    symbol: str | None = None
    """The function to rewrite, as `package.module:Class.method`."""
    body: str | None = None
    """Its new body, without indentation; signature and docstring stay."""

    def __post_init__(self) -> None:
        """Refuse a mixture of the two forms.

        Raises:
            ValueError: the edit is neither of the two forms, or names nothing to look for.
        """
        text_form = (self.file, self.find, self.replace)
        body_form = (self.symbol, self.body)
        for this, other in ((text_form, body_form), (body_form, text_form)):
            if None not in this and other.count(None) == len(other):
                break
        else:
            raise ValueError("an edit has either file, find and replace, or symbol and body")
        if self.find == "" or (self.symbol is not None and ":" not in self.symbol):
            raise ValueError("find must not be empty, and symbol reads package.module:Name")

    @property
    def path(self) -> str:
        """The file that is changed, from the submission's root, with forward slashes."""
        module = (self.symbol or "").partition(":")[0]
        return self.file or module.replace(".", "/") + ".py"


class Mistake(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A patch that makes the solution wrong."""

    id: str
    task: str
    """The task whose points it must lose."""
    shows: Literal["value", "property", "error"]
    """`value`: some input gives a clearly different tensor. `property`: no saved tensor shows it,
    a property test or a probe does. `error`: the code raises where it should work."""
    source: str
    """Where it was seen."""
    sentence: str
    """Completes "This is what comes out when …"."""
    nudge: str
    """A question that leads the student to it without giving it away."""
    edits: tuple[Edit, ...]


class Alternate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A patch that keeps the solution right but writes it differently."""

    id: str
    task: str
    sentence: str
    """How it is written."""
    edits: tuple[Edit, ...]


Patch = Mistake | Alternate


class _MistakeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mistake: tuple[Mistake, ...]

    @property
    def patches(self) -> tuple[Mistake, ...]:
        return self.mistake


class _AlternateFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    alternate: tuple[Alternate, ...]

    @property
    def patches(self) -> tuple[Alternate, ...]:
        return self.alternate


def load_mistakes(folder: Path = FOLDER / "mistakes") -> tuple[Mistake, ...]:
    """Read every mistake, sorted by task and otherwise in the order of the files.

    Raises:
        PatchError: a file is not as it should be, or an id occurs twice.
    """
    files = [(path, _decoded(path, _MistakeFile)) for path in sorted(folder.glob("*.toml"))]
    _check(files)
    return tuple(mistake for _, file in files for mistake in file.patches)


def load_alternates(folder: Path = FOLDER / "alternates") -> tuple[Alternate, ...]:
    """Read every alternate, sorted by task and otherwise in the order of the files.

    Raises:
        PatchError: a file is not as it should be, or an id occurs twice.
    """
    files = [(path, _decoded(path, _AlternateFile)) for path in sorted(folder.glob("*.toml"))]
    _check(files)
    return tuple(alternate for _, file in files for alternate in file.patches)


def apply(edits: Iterable[Edit], folder: Path, patch: str = "patch") -> None:
    """Make the edits, one after the other, in the files of a submission.

    Args:
        edits: the edits; a later one meets what an earlier one left.
        folder: the submission, which is changed in place.
        patch: the name that an error speaks of.

    Raises:
        PatchError: an edit's place is missing, or there are several.
    """
    for edit in edits:
        file, path = edit.path, folder / edit.path
        if not path.is_file():
            raise PatchError(f"{patch}: {file}: there is no such file")
        try:
            text = _edited(path.read_text(encoding="utf-8"), edit)
        except _MisfitError as misfit:
            raise PatchError(f"{patch}: {file}: {misfit}") from None
        write_over(path, text)


def write_over(path: Path, text: str) -> None:
    """Give a module of a laid-out submission other text; its file may be linked to another's."""
    path.unlink()
    path.write_text(text, encoding="utf-8", newline="\n")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
        compiled.unlink()


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


class _MisfitError(Exception):
    """The place of an edit isn't there exactly once; the text says what was found."""


def _decoded(path: Path, kind: type[_File]) -> _File:
    try:
        return msgspec.toml.decode(path.read_bytes(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PatchError(f"{path.name}: {error}") from error


def _check(files: Sequence[tuple[Path, _MistakeFile | _AlternateFile]]) -> None:
    for path, file in files:
        for patch in file.patches:
            if patch.task != path.stem:
                raise PatchError(f"{patch.id}: {path.name}: its task is {patch.task}")
            if not patch.edits:
                raise PatchError(f"{patch.id}: {path.name}: it has no edits")
    counts = Counter(patch.id for _, file in files for patch in file.patches)
    for name, count in counts.items():
        if count > 1:
            raise PatchError(f"{name}: this id is found {count} times")


def _edited(text: str, edit: Edit) -> str:
    if edit.symbol is not None and edit.body is not None:
        return _with_body(text, edit.symbol.partition(":")[2], edit.body)
    find, replace = edit.find or "", edit.replace or ""
    if (count := text.count(find)) != 1:
        raise _MisfitError(f"found {count} times: {_first_line(find)}")
    return text.replace(find, replace)


def _with_body(text: str, name: str, body: str) -> str:
    function = _function(text, name)
    first = function.body[0]
    if first.lineno == function.lineno:
        raise _MisfitError(f"the body of {name} stands on the line of its signature")
    has_docstring = ast.get_docstring(function, clean=False) is not None
    start = (first.end_lineno or first.lineno) if has_docstring else first.lineno - 1
    lines = text.split("\n")
    indented = textwrap.indent(body.strip("\n"), " " * first.col_offset)
    return "\n".join([*lines[:start], *indented.split("\n"), *lines[function.end_lineno :]])


def _function(text: str, name: str) -> ast.FunctionDef:
    nodes: list[ast.AST] = [ast.parse(text)]
    for part in name.split("."):
        nodes = [
            child
            for node in nodes
            for child in getattr(node, "body", [])
            if isinstance(child, ast.ClassDef | ast.FunctionDef) and child.name == part
        ]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    if len(functions) != 1:
        raise _MisfitError(f"found {len(functions)} times: function {name}")
    return functions[0]


def _first_line(text: str) -> str:
    line, _, rest = text.strip("\n").partition("\n")
    return f"{line.strip()} …" if rest else line.strip()
