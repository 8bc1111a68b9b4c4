"""Sinusoidal positions: a fixed vector of sines and cosines is added to every token."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class SinusoidalPositions(nn.Module):
    """Adds `p(i)` to a token at position i, with `p(i)[2j] = sin(i · 10000^(-2j/d_model))`.

    The feature `p(i)[2j + 1]` is the cosine of the same angle, in radians. If `d_model` is odd, the
    last sine has no cosine. The table of all p, `(max_seq_len, d_model)`, is a buffer that is not
    saved with the model; nothing is learned. It is float64 if `dtype` is float64, and otherwise
    float32 (Vaswani et al. 2017, section 3.5).

    Args:
        d_model: number of features.
        max_seq_len: number of positions in the table.
        device: the device of the table.
        dtype: the dtype of the vectors to which the table is added.
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
        """Add the table's row of its position to every vector of `x`.

        The leading axes of `token_positions` broadcast against those of `x`. The result has the
        dtype of `x`.

        Raises:
            IndexError: a position is `max_seq_len` or greater.
        """
        raise NotImplementedError("sinusoidal_positions: handout §5.4")
