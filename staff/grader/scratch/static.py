"""Find ready-made code in the source of a submission. The source is parsed and not run.

Names are followed through imports, assignments and the submission's own modules, and through the
usual indirect ways, such as `getattr`. A name in an annotation or in a call of `isinstance` is not
counted as a use. What the source does not show, the guard notes at run time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from staff.grader.intake.imports import parse
from staff.grader.scratch.aliases import ABSOLUTE, Module
from staff.grader.scratch.model import How
from staff.grader.scratch.rules import Names, look_up
from tests.harness.rubric import Scratch

_ASKING = ("isinstance", "issubclass")
_RUNNERS = ("eval", "exec", "compile")
_GETTERS = ("operator.attrgetter", "operator.methodcaller")


class Use:
    """One source line that uses a forbidden name."""

    def __init__(self, file: str, line: int, name: str, how: How, symbol: str) -> None:
        self.file, self.line, self.name, self.how = file, line, name, how
        self.symbol = symbol
        """The top-level function or class that contains the line; empty outside of any."""

    @property
    def key(self) -> tuple[str, int, str]:
        """A key that identifies the use."""
        return self.file, self.line, self.name


def uses(folder: Path, rules: Scratch) -> list[Use]:
    """Read every Python file of a submission, and return the uses of forbidden names.

    Args:
        folder: the copy of the submission that intake has made.
        rules: what is forbidden.
    """
    found: dict[tuple[str, int, str], Use] = {}
    modules = []
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        try:
            modules.append(Module(name, parse(path.read_bytes())))
        except (RecursionError, MemoryError):
            _add(found, _too_deep(name))
    by_name = {module.name: module for module in modules}
    own = {
        item.name
        for module in modules
        for node in module.classes
        for item in node.body
        if isinstance(item, ast.FunctionDef)
    }
    methods = tuple(name for name in rules.methods if name not in own)
    names = _names(rules)
    for module in modules:
        try:
            for use in _Reader(module, by_name, rules, names, methods).read():
                _add(found, use)
        except RecursionError:
            _add(found, _too_deep(module.path))
    return sorted(found.values(), key=lambda use: use.key)


def _add(found: dict[tuple[str, int, str], Use], use: Use) -> None:
    found.setdefault(use.key, use)


def _too_deep(file: str) -> Use:
    return Use(file, 1, "code that nests too deep to be read", "dodge", "")


class _Reader:
    """Walks through the syntax tree of one file, and finds uses."""

    def __init__(
        self,
        module: Module,
        modules: Mapping[str, Module],
        rules: Scratch,
        names: Names,
        methods: tuple[str, ...],
    ) -> None:
        self._module = module
        self._modules = modules
        self._rules = rules
        self._names = names
        self._methods = methods
        self._symbol = ""
        self._cached: dict[str, set[str]] = {}

    def read(self) -> Iterator[Use]:
        """Yield the uses, symbol by symbol."""
        for statement in self._module.tree.body:
            named = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            self._symbol = statement.name if named else ""  # type: ignore[attr-defined]
            yield from self._visit(statement)

    def _visit(self, top: ast.AST) -> Iterator[Use]:
        waiting: list[ast.AST] = [top]
        while waiting:
            node = waiting.pop()
            inner = self._module.inner[node]
            match node:
                case ast.Attribute() | ast.Name() | ast.Call() | ast.Subscript() | ast.BinOp():
                    found = list(self._expression(node))
                    yield from found
                    if isinstance(node, ast.Attribute) and any(u.how == "read" for u in found):
                        inner = [_origin(node)]
                    elif isinstance(node, ast.Call) and _asks(node):
                        inner = [node.args[0]]
                case ast.Import() | ast.ImportFrom():
                    yield from self._import(node)
                case ast.arg():
                    inner = []
                case ast.AnnAssign():
                    inner = [node.target, *([node.value] if node.value else [])]
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    inner = [n for n in inner if n is not node.returns]
            waiting += reversed(inner)

    def _expression(self, node: ast.expr) -> Iterator[Use]:
        if isinstance(node, ast.Call):
            yield from self._call(node)
        if isinstance(node, ast.BinOp):
            text = self._module.text(node)
            if text is not None and self._speaks_of(text):
                yield self._use(node, f"the assembled text {text!r}", "dodge")
            return
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            return
        dotted = self._module.dotted(node)
        meanings = self._meanings(dotted) if dotted else set()
        for meaning in sorted(meanings):
            name = self._forbidden(meaning)
            if name is not None:
                yield self._use(node, name, "read")
            elif not isinstance(node, ast.Name) and (backdoor := self._rules.backdoor(meaning)):
                yield self._use(node, backdoor if backdoor == "sys.modules" else meaning, "dodge")
            elif isinstance(node, ast.Attribute) and node.attr == "__dict__" and _torch(meaning):
                yield self._use(node, meaning, "dodge")
        if isinstance(node, ast.Attribute) and node.attr in self._methods and not meanings:
            of_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not of_self:
                yield self._use(node, f"torch.Tensor.{node.attr}", "read")

    def _call(self, node: ast.Call) -> Iterator[Use]:
        """Yield the uses in calls that look up a name by its text, or that run a text."""
        function = self._module.dotted(node.func) or ""
        meanings = self._meanings(function)
        if function in _RUNNERS and not meanings:
            yield self._use(node, function, "dodge")
        elif self._module.imports(node.func):
            text = self._module.text(node.args[0]) if node.args else None
            if text is None or _torch(text) or self._rules.forbids(text):
                what = "a name that is computed" if text is None else repr(text)
                yield self._use(node, f"{function} of {what}", "dodge")
            if text is not None and self._rules.forbids(text) and self._forbidden(text):
                yield self._use(node, text, "read")
        elif function in ("getattr", "vars") and node.args:
            owner = self._module.dotted(node.args[0])
            of_torch = owner and any(map(_torch, self._meanings(owner)))
            constant = len(node.args) > 1 and self._module.text(node.args[1]) is not None
            if of_torch and not constant:
                yield self._use(node, f"{function} of {owner}", "dodge")
        elif not meanings.isdisjoint(_GETTERS) and node.args:
            text = self._module.text(node.args[0])
            if text is None or text.rpartition(".")[2] in self._methods or self._speaks_of(text):
                yield self._use(node, f"{function} of {text!r}", "dodge")

    def _import(self, node: ast.Import | ast.ImportFrom) -> Iterator[Use]:
        """Yield the uses in an import, except names whose later uses are reported."""
        for alias in node.names:
            if isinstance(node, ast.Import):
                name, last = alias.name, alias.asname or alias.name.split(".")[0]
            else:
                name, last = f"{self._module.base(node)}.{alias.name}", alias.asname or alias.name
            if alias.name == "*":
                if self._rules.forbids(name):
                    yield self._use(node, name, "read")
                continue
            forbidden = self._forbidden(name)
            if forbidden and (last not in self._module.used or isinstance(node, ast.Import)):
                yield self._use(node, forbidden, "read")
            elif forbidden is None and self._rules.backdoor(name) not in (None, "sys.modules"):
                yield self._use(node, name, "dodge")

    def _meanings(self, dotted: str) -> set[str]:
        """Return what a dotted name may stand for; cached, since most names occur many times."""
        if dotted not in self._cached:
            self._cached[dotted] = self._module.meanings(dotted, self._modules)
        return self._cached[dotted]

    def _forbidden(self, meaning: str) -> str | None:
        return self._names.forbidden(meaning.removeprefix(ABSOLUTE))

    def _speaks_of(self, text: str) -> bool:
        return _torch(text) or self._forbidden(text) is not None

    def _use(self, node: ast.AST, name: str, how: How) -> Use:
        return Use(self._module.path, getattr(node, "lineno", 1), name, how, self._symbol)


@lru_cache(maxsize=4)
def _names(rules: Scratch) -> Names:
    return Names(rules)


def _torch(name: str) -> bool:
    return name.split(".")[0] == "torch" and (name == "torch" or look_up(name) is not None)


def _origin(node: ast.expr) -> ast.expr:
    """Return the expression with which a chain of attributes begins."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _asks(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in _ASKING and len(node.args) == 2
