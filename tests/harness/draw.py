"""Random inputs for tests of properties, which need no saved answer."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


class TorchDraw:
    """Draws tensors from a seed with PyTorch's generator.

    The inputs of saved cases are drawn by another class, `ExactDraw`, which is the staff's: its
    bits are the same with every version of PyTorch. The inputs here are never stored, so they
    don't need that, and PyTorch draws them faster.
    """

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, scale: float = 1.0) -> Tensor:
        """Normal values of mean 0 and standard deviation `scale`, in float32."""
        return scale * torch.randn(*shape, generator=self._generator)

    def integers(self, high: int, *shape: int) -> Tensor:
        """Integers from 0 to `high - 1`."""
        return torch.randint(high, shape, generator=self._generator)

    def weights(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
        """Weights for the given names and shapes; those of one axis are gains, around one."""
        return {
            name: 1 + 0.3 * self.normal(*shape)
            if len(shape) == 1
            else self.normal(*shape, scale=0.35)
            for name, shape in shapes.items()
        }
