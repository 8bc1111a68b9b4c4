"""Resolve the names in a Python file to dotted names. The file is parsed and not run."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

_MAX_HOPS = 20
"""The most names that are followed from one to the next."""
_MAX_MEANINGS = 8
"""The most meanings of one name that are followed."""
_IMPORTERS = (
    "importlib.import_module",
    "importlib.__import__",
    "__import__",
    "builtins.__import__",
)
ABSOLUTE: Final = "!"
"""The prefix of a dotted name whose first part is a module, even if the file binds that part to
something else."""


class Module:
    """One file, with the names that its imports and assignments bind.

    Args:
        path: the path of the file from the submission's top.
        tree: its syntax tree.
    """

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path = path
        self.tree = tree
        self.bound: defaultdict[str, set[str]] = defaultdict(set)
        """For each bound name, the dotted names that it may stand for."""
        self.stars: list[str] = []
        """The modules of which everything is imported with `*`."""
        self.texts: dict[str, str] = {}
        """The values of names that are bound to constant strings."""
        self.inner: dict[ast.AST, list[ast.AST]] = {}
        """The children of each node, without operators and contexts."""
        nodes: list[ast.AST] = [tree]
        for node in nodes:
            self.inner[node] = _inner(node)
            nodes += self.inner[node]
        self.used = {node.id for node in nodes if isinstance(node, ast.Name)}
        self.classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._bind_imports(node)
            else:
                self._bind_assignment(node)

    @property
    def name(self) -> str:
        """The dotted name of the module."""
        parts = self.path.removesuffix(".py").split("/")
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def base(self, node: ast.ImportFrom) -> str:
        """Return the full name of the module from which a statement imports."""
        if not node.level:
            return node.module or ""
        package = self.path.split("/")[:-1]
        above = package[: max(0, len(package) - node.level + 1)]
        return ".".join([*above, *([node.module] if node.module else [])])

    def text(self, node: ast.expr) -> str | None:
        """Return the string that an expression is, perhaps put together from pieces, or None."""
        match node:
            case ast.Constant(value=str(value)):
                return value
            case ast.Name(id=name):
                return self.texts.get(name)
            case ast.BinOp(op=ast.Add()):
                left, right = self.text(node.left), self.text(node.right)
                return None if left is None or right is None else left + right
            case ast.JoinedStr(values=values):
                pieces = [
                    self.text(v.value if isinstance(v, ast.FormattedValue) else v) for v in values
                ]
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str(glue)), attr="join"),
                args=[ast.List(elts=elements) | ast.Tuple(elts=elements)],
            ):
                pieces = [self.text(element) for element in elements]
                return None if None in pieces else glue.join(p for p in pieces if p is not None)
            case ast.Subscript(
                value=inner, slice=ast.Slice(lower=None, upper=None, step=ast.UnaryOp())
            ):
                turned = self.text(inner)
                return None if turned is None else turned[::-1]
            case _:
                return None
        return None if None in pieces else "".join(p for p in pieces if p is not None)

    def dotted(self, node: ast.expr) -> str | None:
        """Return the dotted name that an expression means, by attributes or in an indirect way."""
        match node:
            case ast.Name(id=name):
                return name
            case ast.Attribute(value=value, attr=attr):
                return self._below(value, attr)
            case ast.NamedExpr(value=value):
                return self.dotted(value)
            case ast.Call(func=ast.Name(id="getattr"), args=[value, name, *_]):
                return self._below(value, self.text(name))
            case ast.Call(func=function, args=[first, *rest]) if self.imports(function):
                text = self.text(first)
                if text is None or not text:
                    return None
                whole = rest or node.keywords or not self._is_plain(function)
                return ABSOLUTE + (text if whole else text.split(".")[0])
            case ast.Subscript(value=ast.Attribute(value=value, attr="__dict__"), slice=key):
                return self._below(value, self.text(key))
            case ast.Subscript(value=ast.Call(func=ast.Name(id="vars"), args=[value]), slice=key):
                return self._below(value, self.text(key))
            case ast.Subscript(value=ast.Attribute(attr="modules") as modules, slice=key):
                text = self.text(key)
                of_sys = "sys.modules" in self.meanings(self.dotted(modules) or "", {})
                return ABSOLUTE + text if of_sys and text else None
        return None

    def meanings(self, dotted: str, modules: Mapping[str, Module], hops: int = 0) -> set[str]:
        """Return what a dotted name of this file may stand for.

        Args:
            dotted: the name.
            modules: the submission's modules by name; names are followed into them.
            hops: how many names have been followed already.
        """
        absolute = dotted.startswith(ABSOLUTE)
        first, _, rest = dotted.removeprefix(ABSOLUTE).partition(".")
        starts = {first} if absolute else self.bound.get(first, set())
        if not starts and not absolute:
            stars = self.stars[:_MAX_MEANINGS] if hops < _MAX_HOPS else []
            return {m for s in stars for m in _through(f"{s}.{dotted}", modules, hops + 1)}
        found: set[str] = set()
        for start in sorted(starts)[:_MAX_MEANINGS]:
            plain = start.removeprefix(ABSOLUTE)
            whole = f"{plain}.{rest}" if rest else plain
            if hops < _MAX_HOPS and start.startswith(ABSOLUTE):
                found |= _through(whole, modules, hops + 1)
            elif hops < _MAX_HOPS and not absolute:
                found |= self.meanings(whole, modules, hops + 1)
            else:
                found.add(whole)
        return found

    def _below(self, value: ast.expr, attribute: str | None) -> str | None:
        above = self.dotted(value)
        return f"{above}.{attribute}" if above and attribute else None

    def imports(self, function: ast.expr) -> bool:
        """Whether a function imports the module that its first argument names."""
        name = self.dotted(function) or ""
        return name in _IMPORTERS or not self.meanings(name, {}).isdisjoint(_IMPORTERS)

    def _is_plain(self, function: ast.expr) -> bool:
        return isinstance(function, ast.Name) and function.id == "__import__"

    def _bind_imports(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                first = alias.name.split(".")[0]
                self.bound[alias.asname or first].add(
                    ABSOLUTE + (alias.name if alias.asname else first)
                )
            elif alias.name == "*":
                self.stars.append(self.base(node))
            else:
                self.bound[alias.asname or alias.name].add(
                    f"{ABSOLUTE}{self.base(node)}.{alias.name}"
                )

    def _bind_assignment(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, value)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._bind(target, value)
            case ast.NamedExpr(target=target, value=value):
                self._bind(target, value)
            case (
                ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args) | ast.Lambda(args=args)
            ):
                positional = [*args.posonlyargs, *args.args]
                pairs = list(zip(reversed(positional), reversed(args.defaults), strict=False))
                pairs += [
                    (a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d
                ]
                for argument, default in pairs:
                    self._bind(ast.Name(id=argument.arg), default)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ((ast.Tuple() | ast.List()), (ast.Tuple() | ast.List())):
                for inner, its in zip(target.elts, value.elts, strict=False):
                    self._bind(inner, its)
            case ast.Name(id=name), _:
                text = self.text(value)
                if text is not None:
                    self.texts[name] = text
                elif (dotted := self.dotted(value)) and dotted.split(".")[0] != name:
                    self.bound[name].add(dotted)


def _inner(node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and value._fields:
            found.append(value)
    return found


def _through(name: str, modules: Mapping[str, Module], hops: int) -> set[str]:
    """Follow a dotted name into the module of the submission that binds it."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        module = modules.get(".".join(parts[:length]))
        if module is not None and (parts[length] in module.bound or module.stars):
            inner = module.meanings(".".join(parts[length:]), modules, hops)
            return inner or {name}
    return {name}
