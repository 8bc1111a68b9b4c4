"""Probes of adapters that return several tensors: one of them at a time."""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from tests.harness.plain import Plain, plain


def part(adapters: ModuleType, adapter: str, index: int, **arguments: Plain) -> Plain:
    """What an adapter returns at `index` of its tuple.

    Raises:
        TypeError: it returns no tuple.
    """
    answer = getattr(adapters, adapter)(**arguments)
    if not isinstance(answer, tuple | list) or len(answer) <= index:
        raise TypeError(f"{adapter} returned a {type(answer).__name__}, not a tuple of tensors")
    return plain(answer[index])


def part_gradient(
    adapters: ModuleType, adapter: str, index: int, wrt: str, cotangent: Tensor, **arguments: Plain
) -> Tensor | None:
    """The gradient that reaches the argument `wrt` from the tensor at `index`, if one does."""
    leaf = arguments[wrt].requires_grad_()
    output = getattr(adapters, adapter)(**arguments)[index]
    if not output.requires_grad:
        return None
    return torch.autograd.grad((output * cotangent).sum(), [leaf], allow_unused=True)[0]
