"""Which modules a file imports, read from its text: nothing is run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def imported(content: bytes, path: str) -> Iterator[str]:
    """Give the dotted names of the modules that a file may import, each with what it takes of it.

    `from a import b` gives `a` and `a.b`, since `b` may be a module. A file that is no Python
    imports nothing: whoever imports it will say so.

    Args:
        content: the file's bytes.
        path: where it lies, from the submission's top; relative imports begin there.
    """
    package = path.split("/")[:-1]
    try:
        tree = parse(content)
    except (RecursionError, MemoryError):
        return
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            if node.level > len(package) + 1:
                continue
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base:
                yield base
            for alias in node.names:
                yield f"{base}.{alias.name}" if base else alias.name


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Every statement, and what holds some: no import stands in an expression."""
    waiting: list[ast.AST] = [tree]
    for node in waiting:
        yield node
        for field in _BLOCKS:
            waiting += getattr(node, field, ())


def parse(content: bytes) -> ast.Module:
    """Parse a file; one that is no Python is empty.

    Raises:
        RecursionError, MemoryError: it nests too deep.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(content)
    except (SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])
