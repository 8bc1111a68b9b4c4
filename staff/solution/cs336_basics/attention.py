"""Attention: each token gets a weighted mean of the values of the tokens it may attend to."""

import math

import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from cs336_basics.linear import Linear
from cs336_basics.rope import RotaryEmbedding
from cs336_basics.softmax import softmax


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
    scores = einsum(Q, K, "... queries d_k, ... keys d_k -> ... queries keys")
    scores = scores / math.sqrt(Q.shape[-1])
    if mask is None:
        return softmax(scores, dim=-1) @ V
    # The softmax of scores that are all −∞ is NaN. So a query that may attend to no key ("blind")
    # attends to all keys here, and zeros replace its result.
    blind = ~mask.any(dim=-1, keepdim=True)
    scores = torch.where(mask | blind, scores, -math.inf)
    return torch.where(blind, 0.0, softmax(scores, dim=-1) @ V)


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
        super().__init__()
        if d_model % num_heads:
            raise ValueError(
                f"num_heads must divide d_model; {num_heads} does not divide {d_model}"
            )
        self.num_heads = num_heads
        self.q_proj = Linear(d_model, d_model, device=device, dtype=dtype)
        self.k_proj = Linear(d_model, d_model, device=device, dtype=dtype)
        self.v_proj = Linear(d_model, d_model, device=device, dtype=dtype)
        self.output_proj = Linear(d_model, d_model, device=device, dtype=dtype)
        self.rope = rope

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
        seq = x.shape[-2]
        Q, K, V = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        Q, K, V = (
            rearrange(part, "... seq (heads d_head) -> ... heads seq d_head", heads=self.num_heads)
            for part in (Q, K, V)
        )
        if self.rope is not None:
            if token_positions is None:
                token_positions = torch.arange(seq, device=x.device)
            positions = rearrange(token_positions, "... seq -> ... 1 seq")
            Q, K = self.rope(Q, positions), self.rope(K, positions)
        causal = torch.ones(seq, seq, dtype=torch.bool, device=x.device).tril()
        heads = scaled_dot_product_attention(Q, K, V, causal)
        return self.output_proj(rearrange(heads, "... heads seq d_head -> ... seq (heads d_head)"))
