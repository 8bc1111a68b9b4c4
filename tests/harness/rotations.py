"""RoPE with complex numbers, in both layouts: the reference for the tests of part 4."""

from __future__ import annotations

import torch
from torch import Tensor


def rotated_halves(x: Tensor, positions: Tensor) -> Tensor:
    """Apply RoPE to pairs (i, i + d/2) of the last axis, in float64; `positions` has one axis."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat(_turned(first, second, _angles(positions, x.shape[-1])), dim=-1)


def rotated_neighbours(x: Tensor, positions: Tensor) -> Tensor:
    """Apply RoPE to adjacent pairs of the last axis, in float64; `positions` has one axis."""
    pairs = _turned(x[..., 0::2], x[..., 1::2], _angles(positions, x.shape[-1]))
    return torch.stack(pairs, dim=-1).flatten(-2)


def _turned(first: Tensor, second: Tensor, angles: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate the pairs `(first, second)` by their angles."""
    numbers = torch.complex(first.double(), second.double()) * torch.exp(1j * angles)
    return numbers.real, numbers.imag


def _angles(positions: Tensor, features: int, theta: float = 10000.0) -> Tensor:
    """Compute the angles of RoPE, with one row for each position."""
    return positions[:, None] * theta ** (-torch.arange(0, features, 2).double() / features)
