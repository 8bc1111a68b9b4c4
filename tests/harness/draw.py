"""Random inputs for the tests of properties, which need no saved answers."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


class TorchDraw:
    """Draws random tensors with PyTorch's generator.

    The inputs of saved cases come from another class, `ExactDraw` in `staff`, which draws the
    same bits with every version of PyTorch. The inputs here are never stored, so PyTorch's
    generator is good enough, and it is faster.

    Args:
        seed: the seed of the generator.
    """

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, scale: float = 1.0) -> Tensor:
        """Draw normal values of mean 0 and standard deviation `scale`, in float32."""
        return scale * torch.randn(*shape, generator=self._generator)

    def integers(self, high: int, *shape: int) -> Tensor:
        """Draw integers from 0 to `high - 1`."""
        return torch.randint(high, shape, generator=self._generator)

    def weights(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
        """Draw weights for the given names and shapes.

        Weights with one axis are gains: they have mean 1. All others have mean 0.
        """
        return {
            name: 1 + 0.3 * self.normal(*shape)
            if len(shape) == 1
            else self.normal(*shape, scale=0.35)
            for name, shape in shapes.items()
        }
