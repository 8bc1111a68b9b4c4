"""Helpers of the independent checks of the solution: inputs, a comparison and a second RoPE.

This module doesn't use the solution, so an error of the solution can't be in an expected value.
"""

import math

import torch
from torch import Tensor


def normal(*shape: int, root: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return normally distributed numbers, without a seed or a stored file.

    They are the normal quantiles of `i² sqrt(root) mod 1`, i = 1, 2, …, which fills the unit
    interval evenly when `root` is no square (Weyl 1916, theorem 9). The square keeps the rows of
    a matrix linearly independent; different primes give unrelated tensors.
    """
    counts = torch.arange(1, math.prod(shape) + 1, dtype=torch.float64)
    quantiles = (counts.square() * math.sqrt(root)) % 1
    return torch.special.ndtri(quantiles).reshape(shape).to(dtype)


def agree(actual: Tensor, expected: Tensor) -> None:
    """Compare values, shape and dtype, to 1e-12 in float64 and to torch's defaults otherwise."""
    limit = 1e-12 if expected.dtype == torch.float64 else None
    torch.testing.assert_close(actual, expected, rtol=limit, atol=limit)


def rotate_as_complex(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Apply RoPE as a product of complex numbers, in float64 (Su et al. 2021, eq. 12 and 13).

    The pair `(x[2k], x[2k+1])` is the number `x[2k] + i x[2k+1]`. For a token at position m, this
    number is multiplied by `exp(i m theta^(-2k/d))`. The result has the dtype of `x`.
    """
    size = x.shape[-1]
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    exponents = torch.arange(0, size, 2, dtype=torch.float64) / size
    angles = positions.unsqueeze(-1) / theta**exponents
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)
