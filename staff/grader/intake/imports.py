"""Find the modules that a Python file imports. The file is parsed and not run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def imported(content: bytes, path: str) -> Iterator[str]:
    """Yield the dotted names of the modules that a file may import.

    `from a import b` yields `a` and `a.b`, since `b` may be a module. A file that is not valid
    Python yields nothing; its import will raise the error.

    Args:
        content: the file's bytes.
        path: the file's path from the submission's top, to which relative imports refer.
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
    """Yield every statement, and every node that contains some; no expression has an import."""
    waiting: list[ast.AST] = [tree]
    for node in waiting:
        yield node
        for field in _BLOCKS:
            waiting += getattr(node, field, ())


def parse(content: bytes) -> ast.Module:
    """Parse a file; a file that is not valid Python counts as empty.

    Raises:
        RecursionError, MemoryError: the code nests too deep.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(content)
    except (SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])
