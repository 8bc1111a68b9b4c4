"""Sinusoidal positions: a fixed vector of sines and cosines is added to every token."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class SinusoidalPositions(nn.Module):
    """Adds `p(i)` to a token at position i, with `p(i)[2j] = sin(i · 10000^(-2j/d_model))`.

    The feature after it, `p(i)[2j + 1]`, is the cosine of the same angle, in radians. With an odd
    `d_model` the last sine has no cosine. The table of all p, `(max_seq_len, d_model)`, is a buffer
    that is not saved with the model; nothing here is learned. It is float32, or float64 where
    `dtype` asks for it, and never less (Vaswani et al. 2017, section 3.5).

    Args:
        d_model: number of features.
        max_seq_len: number of positions in the table.
        device: where the table lives.
        dtype: the dtype of the vectors that it is added to.
    """

    table: Float[Tensor, "max_seq_len d_model"]

    def __init__(
        self,
        d_model: int,
        max_seq_len: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        raise NotImplementedError("sinusoidal_positions: handout §5.4")

    def forward(
        self, x: Float[Tensor, "... seq d_model"], token_positions: Int[Tensor, "... seq"]
    ) -> Float[Tensor, "... seq d_model"]:
        """Add to every vector of `x` what belongs to its position.

        The leading axes of `token_positions` broadcast against those of `x`. The result has the
        dtype of `x`.

        Raises:
            IndexError: a position is `max_seq_len` or greater.
        """
        raise NotImplementedError("sinusoidal_positions: handout §5.4")
