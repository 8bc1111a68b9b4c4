"""Attention: each token gets a weighted mean of the values of the tokens it may attend to."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from cs336_basics.rope import RotaryEmbedding


def scaled_dot_product_attention(
    Q: Float[Tensor, "... queries d_k"],
    K: Float[Tensor, "... keys d_k"],
    V: Float[Tensor, "... keys d_v"],
    mask: Bool[Tensor, "... queries keys"] | None = None,
) -> Float[Tensor, "... queries d_v"]:
    """Compute `softmax(Q Kᵀ / sqrt(d_k) + M) V`; M is 0 where `mask` is True and −∞ elsewhere.

    True means that the query may attend to the key. Without a mask, every query attends to every
    key. The mask's leading axes broadcast against those of Q, K and V. If a query may attend to no
    key, its output and its gradients are zeros (Vaswani et al. 2017, eq. 1).
    """
    raise NotImplementedError("attention: handout §2.8")


class MultiHeadSelfAttention(nn.Module):
    """Causal self-attention with `num_heads` heads of `d_head = d_model / num_heads` features each.

    The four linear layers `q_proj`, `k_proj`, `v_proj` and `output_proj` map `d_model` features to
    `d_model` and have no bias. Head h uses the features `h·d_head` to `(h+1)·d_head - 1` of a
    projection. With `rope`, the queries and keys of each head are rotated in the same way; values
    are not rotated (Vaswani et al. 2017, section 3.2.2).

    Args:
        d_model: number of features in and out.
        num_heads: number of heads; divides `d_model`.
        rope: rotates queries and keys of `d_model / num_heads` features; None for no positions.
        device: the device of the weights.
        dtype: the dtype of the weights.

    Raises:
        ValueError: `num_heads` does not divide `d_model`.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        rope: RotaryEmbedding | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        raise NotImplementedError("multihead_attention: handout §2.9")

    def forward(
        self,
        x: Float[Tensor, "... seq d_model"],
        token_positions: Int[Tensor, "... seq"] | None = None,
    ) -> Float[Tensor, "... seq d_model"]:
        """Let every token attend to itself and to the tokens before it.

        Only RoPE uses `token_positions`. They default to `0 … seq-1`, and their leading axes
        broadcast against those of `x`. The causal mask depends on the order of the tokens in the
        sequence, not on `token_positions`.

        Raises:
            IndexError: with `rope`, a position is `max_seq_len` or greater.
        """
        raise NotImplementedError("multihead_attention: handout §2.9")
