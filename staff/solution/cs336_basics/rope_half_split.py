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
        super().__init__()
        if head_dim % 2:
            raise ValueError(f"RoPE rotates pairs, so head_dim must be even; it is {head_dim}")
        table_dtype = torch.promote_types(dtype or torch.float32, torch.float32)
        inv_freq = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
        self.register_buffer("inv_freq", inv_freq.to(device, table_dtype), persistent=False)
        self.register_buffer("cos", self.inv_freq.new_empty(1, 1, 0, head_dim), persistent=False)
        self.register_buffer("sin", self.inv_freq.new_empty(1, 1, 0, head_dim), persistent=False)

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
        if start_position < 0:
            raise ValueError(f"positions count from 0; start_position is {start_position}")
        end = start_position + q.shape[-2]
        if end > self.cos.shape[-2]:
            self._grow(end)
        cos, sin = (table[:, :, start_position:end] for table in (self.cos, self.sin))
        return (
            (q * cos + _rotate_half(q) * sin).to(q.dtype),
            (k * cos + _rotate_half(k) * sin).to(k.dtype),
        )

    def _grow(self, length: int) -> None:
        """Make tables for the positions up to `length - 1`."""
        positions = torch.arange(length, device=self.inv_freq.device, dtype=self.inv_freq.dtype)
        angles = torch.outer(positions, self.inv_freq)
        angles = torch.cat([angles, angles], dim=-1)[None, None]
        self.cos, self.sin = angles.cos(), angles.sin()


def _rotate_half(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)
