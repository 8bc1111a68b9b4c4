"""The linear layer: every output feature is a weighted sum of the input features."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Linear(nn.Module):
    """Computes `y = x Wᵀ`, without a bias.

    The weight has the shape `(d_out, d_in)`, with one row for each output feature. Its initial
    values come from a normal distribution of mean 0 and variance `2 / (d_in + d_out)`, truncated at
    three standard deviations on both sides (Glorot & Bengio 2010, eq. 12).

    Args:
        d_in: number of input features.
        d_out: number of output features.
        device: the device of the weight.
        dtype: the dtype of the weight.
    """

    weight: Float[nn.Parameter, "d_out d_in"]

    def __init__(
        self,
        d_in: int,
        d_out: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_out, d_in, device=device, dtype=dtype))
        std = math.sqrt(2 / (d_in + d_out))
        nn.init.trunc_normal_(self.weight, std=std, a=-3 * std, b=3 * std)

    def forward(self, x: Float[Tensor, "... d_in"]) -> Float[Tensor, "... d_out"]:
        """Map the last axis from `d_in` to `d_out` features; there may be any leading axes."""
        return x @ self.weight.T
