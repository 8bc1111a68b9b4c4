"""Devices: is the one asked for here, and would a module work on a GPU? An answer without one.

While a module runs, tensors that it makes without naming a device are marked. On a GPU they
would be left on the CPU; where one meets a tensor that came from the input, the two would be
apart, and PyTorch would refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from tests.harness.errors import DeviceError

_KINDS = ("cpu", "cuda", "mps")
_MOVES = {"to", "cuda", "cpu", "type_as"}
_TAKES_BOTH = {"__getitem__", "__get__", "__set__"}
"""Indexing a tensor on a GPU with one on the CPU is fine."""


def demand(device: str) -> None:
    """Make sure that a device is here, without taking any of its memory.

    Raises:
        DeviceError: it isn't, or there is none of that name.
    """
    kind, _, number = device.partition(":")
    if kind not in _KINDS or not (number or "0").isdecimal():
        raise DeviceError(f"no device is called {device!r}; there are {', '.join(_KINDS)}")
    found = 1
    if kind == "cuda":
        found = torch.cuda.device_count()
    elif kind == "mps":
        found = int(torch.backends.mps.is_available())
    if int(number or 0) >= found:
        has = f"has {found}" if found else "has none"
        raise DeviceError(f"{device} can't be used: this machine or this PyTorch {has}; take cpu")


class Strangers(TorchFunctionMode):
    """Notes the operations in which a tensor without a named device meets one of the input's."""

    def __init__(self) -> None:
        super().__init__()
        self._marked = WeakIdKeyDictionary()
        self.met: list[str] = []
        """Names of the operations."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run the operation and look at what went in and what came out."""
        given = dict(kwargs or {})
        result = func(*args, **given)
        name = getattr(func, "__name__", "")
        # A tensor without axes may stay on the CPU wherever the others are.
        inputs = [t for t in _tensors([args, given]) if t.ndim]
        marked = [t for t in inputs if t in self._marked]
        if marked and len(marked) < len(inputs) and name not in _TAKES_BOTH:
            self.met.append(name)
        unnamed = given.get("device") is None and name not in _MOVES
        if unnamed and len(marked) == len(inputs) and isinstance(result, Tensor):
            self._marked[result] = True
        return result


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
