"""RoPE by complex numbers, in both layouts: what the tests of part 4 compare against."""

from __future__ import annotations

import torch
from torch import Tensor


def rotated_halves(x: Tensor, positions: Tensor) -> Tensor:
    """RoPE on the two halves of the last axis, in float64; `positions` has one axis."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat(_turned(first, second, _angles(positions, x.shape[-1])), dim=-1)


def rotated_neighbours(x: Tensor, positions: Tensor) -> Tensor:
    """RoPE on adjacent pairs of the last axis, in float64; `positions` has one axis."""
    pairs = _turned(x[..., 0::2], x[..., 1::2], _angles(positions, x.shape[-1]))
    return torch.stack(pairs, dim=-1).flatten(-2)


def _turned(first: Tensor, second: Tensor, angles: Tensor) -> tuple[Tensor, Tensor]:
    """The pairs `(first, second)`, turned by their angles."""
    numbers = torch.complex(first.double(), second.double()) * torch.exp(1j * angles)
    return numbers.real, numbers.imag


def _angles(positions: Tensor, features: int, theta: float = 10000.0) -> Tensor:
    """The angles of RoPE, one row for each position."""
    return positions[:, None] * theta ** (-torch.arange(0, features, 2).double() / features)
