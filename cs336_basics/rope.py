"""Rotary position embedding: a token's position becomes a rotation of its queries and keys."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class RotaryEmbedding(nn.Module):
    """Rotates each adjacent pair `(x[2j], x[2j+1])` at position m by `m · theta^(-2j/d_k)`.

    The angle is in radians, and j counts from 0 to `d_k/2 - 1`. The rotation is counter-clockwise:
    `(1, 0)` becomes `(cos, sin)`. The tables of cosines and sines, `(max_seq_len, d_k/2)`, are
    buffers that are not saved with the model; nothing is learned. They are float64 if `dtype` is
    float64, and otherwise float32, since half precision is not precise enough: bfloat16 rounds
    position 257 to 256 (Su et al. 2021, eq. 34).

    Args:
        theta: the base of the angles.
        d_k: number of features of a query or key; even.
        max_seq_len: number of positions in the tables.
        device: the device of the tables.
        dtype: the dtype of the vectors to rotate.

    Raises:
        ValueError: `d_k` is odd.
    """

    cos: Float[Tensor, "max_seq_len d_pair"]
    sin: Float[Tensor, "max_seq_len d_pair"]

    def __init__(
        self,
        theta: float,
        d_k: int,
        max_seq_len: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        raise NotImplementedError("rope: handout §2.6")

    def forward(
        self, x: Float[Tensor, "... seq d_k"], token_positions: Int[Tensor, "... seq"]
    ) -> Float[Tensor, "... seq d_k"]:
        """Rotate every vector of `x` according to its position.

        The leading axes of `token_positions` broadcast against those of `x`, and there may be
        fewer of them. The result has the dtype of `x`.

        Raises:
            IndexError: a position is `max_seq_len` or greater.
        """
        raise NotImplementedError("rope: handout §2.6")
