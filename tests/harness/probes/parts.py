"""Probes of adapters that return a tuple of tensors; a probe returns one of these."""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from tests.harness.plain import Plain, plain


def part(adapters: ModuleType, adapter: str, index: int, **arguments: Plain) -> Plain:
    """Call an adapter and return the item at `index` of its tuple.

    Raises:
        TypeError: the adapter returned no tuple, or a shorter one.
    """
    answer = getattr(adapters, adapter)(**arguments)
    if not isinstance(answer, tuple | list) or len(answer) <= index:
        raise TypeError(f"{adapter} returned a {type(answer).__name__}, not a tuple of tensors")
    return plain(answer[index])


def part_gradient(
    adapters: ModuleType, adapter: str, index: int, wrt: str, cotangent: Tensor, **arguments: Plain
) -> Tensor | None:
    """Return the gradient of the argument `wrt` from the tensor at `index`; None if none flows."""
    leaf = arguments[wrt].requires_grad_()
    output = getattr(adapters, adapter)(**arguments)[index]
    if not output.requires_grad:
        return None
    return torch.autograd.grad((output * cotangent).sum(), [leaf], allow_unused=True)[0]
