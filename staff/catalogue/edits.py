"""Edits: changes to single files of a submission, which a patch is made of.

An edit names its place by the text that stands there, or by the function whose body it replaces,
never by line number: when the solution changes under an edit, the edit fails aloud instead of
changing something else.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tests.harness.errors import HarnessError


class PatchError(HarnessError):
    """A patch can't be read or doesn't fit: its name, the file, and what was found."""


class TextEdit(msgspec.Struct, frozen=True):
    """An edit that replaces one text by another."""

    file: str
    """Path from the submission's root, with forward slashes."""
    find: str
    """What stands there now; it must occur exactly once in the file."""
    replace: str
    """What stands there afterwards."""


class BodyEdit(msgspec.Struct, frozen=True):
    """An edit that gives a function another body; its signature and docstring stay."""

    file: str
    """Path from the submission's root, with forward slashes."""
    symbol: str
    """The function, as `Class.method`."""
    body: str
    """Its new body, without indentation."""


Edit = TextEdit | BodyEdit


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
        path = folder / edit.file
        if not path.is_file():
            raise PatchError(f"{patch}: {edit.file}: there is no such file")
        try:
            text = _edited(path.read_text(encoding="utf-8"), edit)
        except _MisfitError as misfit:
            raise PatchError(f"{patch}: {edit.file}: {misfit}") from None
        write_over(path, text)


def write_over(path: Path, text: str) -> None:
    """Give a module of a laid-out submission other text; its file may be linked to another's."""
    path.unlink()
    path.write_text(text, encoding="utf-8", newline="\n")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
        compiled.unlink()


class _MisfitError(Exception):
    """The place of an edit isn't there exactly once; the text says what was found."""


def _edited(text: str, edit: Edit) -> str:
    if isinstance(edit, BodyEdit):
        return _with_body(text, edit.symbol, edit.body)
    if (count := text.count(edit.find)) != 1:
        raise _MisfitError(f"found {count} times: {_first_line(edit.find)}")
    return text.replace(edit.find, edit.replace)


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
