"""Probes of adapters that return several tensors: each probe returns one of them."""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from tests.harness.plain import Plain, plain


def part(adapters: ModuleType, adapter: str, index: int, **arguments: Plain) -> Plain:
    """Return the item at `index` of the tuple that an adapter returns.

    Raises:
        TypeError: the adapter returns no tuple, or a tuple that is too short.
    """
    answer = getattr(adapters, adapter)(**arguments)
    if not isinstance(answer, tuple | list) or len(answer) <= index:
        raise TypeError(f"{adapter} returned a {type(answer).__name__}, not a tuple of tensors")
    return plain(answer[index])


def part_gradient(
    adapters: ModuleType, adapter: str, index: int, wrt: str, cotangent: Tensor, **arguments: Plain
) -> Tensor | None:
    """Return the gradient of argument `wrt` from the output at `index`; None if there is none."""
    leaf = arguments[wrt].requires_grad_()
    output = getattr(adapters, adapter)(**arguments)[index]
    if not output.requires_grad:
        return None
    return torch.autograd.grad((output * cotangent).sum(), [leaf], allow_unused=True)[0]
