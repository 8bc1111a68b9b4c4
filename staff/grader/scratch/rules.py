"""Resolve the forbidden names to objects of the loaded modules, and find their other names."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tests.harness.rubric import Scratch


@dataclass(frozen=True)
class Binding:
    """An attribute through which a forbidden function or class can be reached."""

    name: str
    """The dotted name that reports use for the value."""
    holder: Any
    """The module or class that has the attribute."""
    attribute: str
    value: Any


def bindings(rules: Scratch) -> Iterator[Binding]:
    """Yield every attribute of the loaded modules whose value is forbidden."""
    names = Names(rules)
    for name, holder, attribute, value in names.members:
        canonical = names.of.get(id(value), name)
        if not isinstance(value, types.ModuleType) and rules.forbids(canonical):
            yield Binding(canonical, holder, attribute, value)


class Names:
    """The names of loaded objects: each object has one name here, even if many attributes hold it.

    Args:
        rules: the patterns; only names that they match are looked up.
    """

    def __init__(self, rules: Scratch) -> None:
        self.members: list[tuple[str, Any, str, Any]] = []
        """Name, holder, attribute and value of everything that the patterns match."""
        seen: set[int] = set()
        for pattern in [*rules.forbidden, *rules.allowed]:
            name = pattern.removesuffix(".*")
            value = look_up(name)
            if isinstance(value, types.ModuleType):
                self._walk(name, value, seen)
            elif value is not None:
                above, _, last = name.rpartition(".")
                self.members.append((name, look_up(above), last, value))
        self._rules = rules
        self._modules = {name for name in rules.forbidden if not name.endswith(".*")}
        self.of: dict[int, str] = {}
        """The name of each object, under the object's id."""
        for name, _, _, value in sorted(self.members, key=lambda member: member[0].count(".")):
            self.of.setdefault(id(value), name)
        self.forbidden = lru_cache(maxsize=10_000)(self._forbidden)
        """Return the name that reports use for a forbidden dotted name; None if it is allowed."""

    def canonical(self, name: str) -> str | None:
        """Return the name that reports use for an object; None for a module that is not forbidden.

        Args:
            name: any dotted name of the object.
        """
        value = look_up(name)
        if isinstance(value, types.ModuleType):
            return name if name in self._modules else None
        return self.of.get(id(value), name)

    def _forbidden(self, dotted: str) -> str | None:
        parts = dotted.split(".")
        for length in range(1, len(parts) + 1):
            if parts[length - 1].startswith("__"):
                break
            name = self.canonical(".".join(parts[:length]))
            if name is not None and self._rules.forbids(name):
                return name
        return None

    def _walk(self, name: str, module: types.ModuleType, seen: set[int]) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        for attribute, value in list(vars(module).items()):
            inner = f"{name}.{attribute}"
            if attribute.startswith("_"):
                continue
            if isinstance(value, types.ModuleType):
                if value.__name__ == inner:
                    self._walk(inner, value, seen)
            elif _is_own(value) and not attribute.startswith("has_torch_function"):
                self.members.append((inner, module, attribute, value))


def look_up(name: str) -> Any:
    """Return the object of a dotted name in the loaded modules, or None.

    This imports nothing and calls nothing.
    """
    first, *rest = name.split(".")
    value: Any = sys.modules.get(first)
    reached = first
    for part in rest:
        if value is None:
            return None
        reached = f"{reached}.{part}"
        value = inspect.getattr_static(value, part, sys.modules.get(reached))
    return value


def _is_own(value: Any) -> bool:
    """Whether a value belongs to PyTorch, and is not a tool that one of its modules imports."""
    return isinstance(value, types.BuiltinFunctionType) or (
        isinstance(value, type | types.FunctionType)
        and value.__module__.startswith(("torch.nn", "torch.optim"))
        and value.__module__ != "torch.nn.common_types"
    )
