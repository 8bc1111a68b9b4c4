"""Devices: check that a device exists, and check on the CPU whether a module works on a GPU.

`Strangers` marks the tensors that a running module makes without a `device` argument. On a GPU,
such a tensor would be on the CPU. If it meets a tensor that came from the input, PyTorch would
raise, since the two are on different devices.
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
"""Operations that PyTorch allows with tensors on two devices, such as indexing."""


def demand(device: str) -> None:
    """Check that a device is available, without allocating memory on it.

    Raises:
        DeviceError: the device is not available, or its name is unknown.
    """
    kind, _, number = device.partition(":")
    if kind not in _KINDS or not (number or "0").isdecimal():
        raise DeviceError(f"no device is called {device!r}; choose one of {', '.join(_KINDS)}")
    found = 1
    if kind == "cuda":
        found = torch.cuda.device_count()
    elif kind == "mps":
        found = int(torch.backends.mps.is_available())
    if int(number or 0) >= found:
        has = f"has {found}" if found else "has none"
        raise DeviceError(f"{device} can't be used: this machine or this PyTorch {has}; use cpu")


class Strangers(TorchFunctionMode):
    """Records each operation that mixes a tensor made without `device` with the input.

    While this mode is active, it marks every tensor that is made without a `device` argument, and
    every tensor that is computed only from marked ones. An operation is recorded if some of its
    tensors are marked and others are not.
    """

    def __init__(self) -> None:
        super().__init__()
        self._marked = WeakIdKeyDictionary()
        self.met: list[str] = []
        """The names of the recorded operations."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run the operation; record it, and mark its result, as the class describes."""
        given = dict(kwargs or {})
        result = func(*args, **given)
        name = getattr(func, "__name__", "")
        # PyTorch accepts a CPU tensor without axes together with tensors on any device.
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
