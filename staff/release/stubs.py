"""Stubs: the solution without the bodies of its functions.

Stubs are made from the solution alone. A function that is cut keeps its signature, its docstring
and the comments around it; its body becomes one `raise NotImplementedError`. Comments inside the
body are removed, and so are the private methods of a class that is cut. Private helpers, constants
and imports that are no longer used are removed too. Every other byte stays.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.harness.errors import HarnessError
from tests.harness.rubric import Rubric, Task
from tests.harness.submission import PACKAGE

_Def = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class StubError(HarnessError):
    """The solution can't be cut into stubs."""


def cut(solution: Path, rubric: Rubric, tasks: Collection[str] | None = None) -> dict[str, str]:
    """Make stubs of the solution, in memory.

    Args:
        solution: the folder with `adapters.py` and the package.
        rubric: the assignment; it lists the symbols and adapters of each task.
        tasks: the ids of the tasks to cut; if None, all tasks.

    Returns:
        The text of each file, under its path relative to `solution`.

    Raises:
        StubError: a public function of the solution belongs to no task.
    """
    chosen = [task for task in rubric.tasks if tasks is None or task.id in tasks]
    files = [solution / "adapters.py", *sorted((solution / PACKAGE).rglob("*.py"))]
    texts = {file.relative_to(solution).as_posix(): file.read_text("utf-8") for file in files}
    _check_all_owned(texts, _messages(rubric.tasks))
    messages = _messages(chosen)
    return {name: cut_text(text, messages.get(name, {})) for name, text in texts.items()}


def write(texts: Mapping[str, str], folder: Path) -> None:
    """Write stubs into a submission's folder."""
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8", newline="\n")


def out_of_step(texts: Mapping[str, str], folder: Path) -> list[str]:
    """Name the files under `folder` that differ from `texts`, or that only one of them has."""
    present = {
        file.relative_to(folder).as_posix(): file.read_text("utf-8")
        for file in [folder / "adapters.py", *(folder / PACKAGE).rglob("*.py")]
        if file.is_file()
    }
    return sorted(
        name for name in present.keys() | texts.keys() if present.get(name) != texts.get(name)
    )


def cut_text(text: str, messages: Mapping[str, str]) -> str:
    """Cut one file.

    Args:
        text: the file.
        messages: the text of the `NotImplementedError`, under each top-level name to cut.
    """
    tree = ast.parse(text)
    lines = text.splitlines()
    edits = [edit for node in tree.body for edit in _body_edits(node, messages, lines)]
    if not edits:
        return text
    stubbed = _splice(text, edits)
    while (smaller := _without_unused(stubbed, text)) != stubbed:
        stubbed = smaller
    return _tidy(stubbed)


def _messages(tasks: Iterable[Task]) -> dict[str, dict[str, str]]:
    """List the names to cut in each file, each with the message of the first task that has it."""
    messages: dict[str, dict[str, str]] = {"adapters.py": {}}
    for task in tasks:
        text = f"{task.id}: handout §{task.handout}"
        for adapter in task.adapters:
            messages["adapters.py"].setdefault(adapter, text)
        for symbol in task.symbols:
            module, _, name = symbol.partition(":")
            messages.setdefault(module.replace(".", "/") + ".py", {}).setdefault(name, text)
    return messages


def _check_all_owned(texts: Mapping[str, str], messages: Mapping[str, Mapping[str, str]]) -> None:
    for name, text in texts.items():
        for node in ast.parse(text).body:
            if (
                isinstance(node, _Def)
                and not node.name.startswith("_")
                and node.name not in messages.get(name, {})
            ):
                raise StubError(
                    f"{name}: {node.name} belongs to no task; "
                    "list it in assignment.toml, or make it private"
                )


def _body_edits(
    node: ast.stmt, messages: Mapping[str, str], lines: Sequence[str]
) -> Iterator[tuple[int, int, str]]:
    """Yield the edits of one top-level definition: first line (from 1), last line, new text."""
    if not isinstance(node, _Def) or node.name not in messages:
        return
    for function in node.body if isinstance(node, ast.ClassDef) else [node]:
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if function is not node and _private_name(function):
            yield *_span(function), ""
            continue
        body = function.body[1:] if ast.get_docstring(function) else function.body
        if body:
            indent = " " * (function.col_offset + 4)
            stub = f'{indent}raise NotImplementedError("{messages[node.name]}")\n'
            yield *_body_span(body, function.name, indent, lines), stub


def _body_span(
    body: list[ast.stmt], name: str, indent: str, lines: Sequence[str]
) -> tuple[int, int]:
    """Find the first and last line of a body, including the comments at its start and end."""
    first, last = _span(body[0])[0], _span(body[-1])[1]
    if lines[first - 1][: body[0].col_offset].strip():
        raise StubError(
            f"line {first}: the body of {name} begins on the line of its signature or docstring; "
            "start it on a new line"
        )

    def inside(line: str) -> bool:
        return not line.strip() or line.startswith(f"{indent}#")

    above = list(itertools.takewhile(inside, reversed(lines[: first - 1])))
    below = list(itertools.takewhile(inside, lines[last:]))
    return first - _up_to_comment(above), last + _up_to_comment(below)


def _up_to_comment(lines: Sequence[str]) -> int:
    """Count the lines up to the last one that isn't blank."""
    return max((i for i, line in enumerate(lines, 1) if line.strip()), default=0)


def _without_unused(text: str, original: str) -> str:
    """Remove the imports and private definitions that only removed code used."""
    tree = ast.parse(text)
    used, used_before = _names(tree), _names(ast.parse(original))
    edits = []
    for node in tree.body:
        first, last = _span(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            kept = [
                a for a in node.names if (bound := _bound(a)) in used or bound not in used_before
            ]
            if len(kept) != len(node.names):
                edits.append((first, last, _import(node, kept)))
        elif (name := _private_name(node)) and name not in used:
            edits.append((first, last, ""))
    return _tidy(_splice(text, edits)) if edits else text


def _names(tree: ast.Module) -> set[str]:
    """List every name that is read."""
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _private_name(node: ast.stmt) -> str | None:
    if isinstance(node, _Def):
        name = node.name
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        name = node.target.id
    else:
        return None
    constant = name.isupper() and not isinstance(node, _Def)
    return name if (name.startswith("_") and not name.startswith("__")) or constant else None


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _import(node: ast.Import | ast.ImportFrom, kept: list[ast.alias]) -> str:
    if not kept:
        return ""
    smaller = (
        ast.Import(kept)
        if isinstance(node, ast.Import)
        else ast.ImportFrom(node.module, kept, node.level)
    )
    return ast.unparse(smaller) + "\n"


def _span(node: ast.stmt) -> tuple[int, int]:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(d.lineno for d in decorators)])
    return first, node.end_lineno or node.lineno


def _splice(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    lines = text.splitlines(keepends=True)
    for first, last, replacement in sorted(edits, reverse=True):
        lines[first - 1 : last] = [replacement]
    return "".join(lines)


def _tidy(text: str) -> str:
    """Remove the blank lines that removed definitions leave, as the formatter would."""
    text = re.sub(r"\n{4,}", "\n\n\n", text)
    text = re.sub(r"\n{3,}(?= )", "\n\n", text)
    text = re.sub(r'("""\n)\n+(?= +raise NotImplementedError)', r"\1", text)
    text = re.sub(r"(\n(?:import|from) [^\n]+)\n{3,}(?!def |async |class |@)", r"\1\n\n", text)
    text = re.sub(r'\A("""(?:.|\n)*?""")\n{3,}(?=import|from)', r"\1\n\n", text)
    return text.rstrip("\n") + "\n"
