"""Recipes: arguments that plain data can't carry, built on the submission's side of the bridge.

A tensor that crosses a pipe or a file arrives contiguous and owning its memory. A recipe says
how to lay it out again: the values are the same, and correct code must not notice.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Strided:
    """The same values in memory that is not contiguous: every other element of a wider tensor."""

    tensor: Tensor

    def build(self, device: torch.device) -> Tensor:
        """Lay the tensor out on `device`."""
        wide = torch.zeros(*self.tensor.shape, 2, dtype=self.tensor.dtype, device=device)
        view = wide[..., 0]
        view.copy_(self.tensor)
        return view


@dataclass(frozen=True)
class Expanded:
    """The tensor repeated to `sizes` along axes of length 1, without memory for the copies."""

    tensor: Tensor
    sizes: tuple[int, ...]

    def build(self, device: torch.device) -> Tensor:
        """Lay the tensor out on `device`."""
        return self.tensor.to(device, copy=True).expand(self.sizes)


Recipe = Strided | Expanded
RECIPES: tuple[type[Recipe], ...] = (Strided, Expanded)
