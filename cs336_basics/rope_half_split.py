"""Rotary position embedding in the half-split layout, with tables that grow as they are needed."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class HalfSplitRotaryEmbedding(nn.Module):
    """Rotates each pair `(x[j], x[j + head_dim/2])` at position m by `m · theta^(-2j/head_dim)`.

    The angle is in radians, and j counts from 0 to `head_dim/2 - 1`. If x1 and x2 are the two
    halves of a vector x, then `rotate_half([x1, x2]) = [-x2, x1]`, and x becomes
    `x · cos + rotate_half(x) · sin`. The frequencies `inv_freq`, `(head_dim/2,)`, and the tables
    are buffers that are not saved with the model; nothing is learned. They are float64 if `dtype`
    is float64, and otherwise float32 (Su et al. 2021, eq. 34, in the layout of the Llama models in
    Hugging Face's format).

    Args:
        theta: the base of the angles.
        head_dim: number of features of a query or key; even.
        device: the device of the buffers.
        dtype: the dtype of the vectors to rotate.

    Raises:
        ValueError: `head_dim` is odd.
    """

    inv_freq: Float[Tensor, " d_pair"]
    cos: Float[Tensor, "1 1 cached head_dim"]
    sin: Float[Tensor, "1 1 cached head_dim"]

    def __init__(
        self,
        theta: float,
        head_dim: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        raise NotImplementedError("rope_half_split: handout §5.5")

    def forward(
        self,
        q: Float[Tensor, "batch heads seq head_dim"],
        k: Float[Tensor, "batch kv_heads seq head_dim"],
        start_position: int = 0,
    ) -> tuple[
        Float[Tensor, "batch heads seq head_dim"], Float[Tensor, "batch kv_heads seq head_dim"]
    ]:
        """Rotate queries and keys at the positions `start_position`, `start_position + 1`, ….

        `start_position` has no upper limit, since the tables grow as they are needed. The results
        have the dtypes of `q` and `k`.

        Raises:
            ValueError: `start_position` is negative.
        """
        raise NotImplementedError("rope_half_split: handout §5.5")
