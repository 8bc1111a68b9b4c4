"""Grouped-query attention: several query heads share one head of keys and values."""

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from cs336_basics.attention import scaled_dot_product_attention
from cs336_basics.kv_cache import KVCache
from cs336_basics.linear import Linear
from cs336_basics.rope import RotaryEmbedding


class GroupedQueryAttention(nn.Module):
    """Causal self-attention with `num_heads` query heads and `num_kv_heads` key/value heads.

    Every head has `d_head = d_model / num_heads` features. Query head h uses key/value head
    `h // (num_heads / num_kv_heads)`, so neighbouring query heads share one. The four linear layers
    have no bias: `q_proj` and `output_proj` map `d_model` features to `d_model`, and `k_proj` and
    `v_proj` map `d_model` features to `num_kv_heads · d_head` (Ainslie et al. 2023, section 2.2).

    Args:
        d_model: number of features in and out.
        num_heads: number of query heads; divides `d_model`.
        num_kv_heads: number of key/value heads; divides `num_heads`.
        rope: rotates queries and keys of `d_head` features; None for no positions.
        device: the device of the weights.
        dtype: the dtype of the weights.

    Raises:
        ValueError: `num_heads` does not divide `d_model`, or `num_kv_heads` not `num_heads`.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        rope: RotaryEmbedding | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        for name, part, whole in (
            ("num_heads must divide d_model", num_heads, d_model),
            ("num_kv_heads must divide num_heads", num_kv_heads, num_heads),
        ):
            if whole % part:
                raise ValueError(f"{name}; {part} does not divide {whole}")
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        d_kv = d_model // num_heads * num_kv_heads
        self.q_proj = Linear(d_model, d_model, device=device, dtype=dtype)
        self.k_proj = Linear(d_model, d_kv, device=device, dtype=dtype)
        self.v_proj = Linear(d_model, d_kv, device=device, dtype=dtype)
        self.output_proj = Linear(d_model, d_model, device=device, dtype=dtype)
        self.rope = rope

    def forward(
        self,
        x: Float[Tensor, "... seq d_model"],
        token_positions: Int[Tensor, "... seq"] | None = None,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "... seq d_model"]:
        """Let every token attend to itself and to the tokens before it.

        Only RoPE uses `token_positions`. They default to `0 … seq-1`, and their leading axes
        broadcast against those of `x`. With a `cache`, the tokens of `x` come after the tokens in
        the cache: they attend to those too, are added to the cache, and their positions default to
        `length … length+seq-1`.

        Raises:
            IndexError: with `rope`, a position is `max_seq_len` or greater; or the cache is full.
        """
        seq, past = x.shape[-2], cache.length if cache is not None else 0
        Q = _heads(self.q_proj(x), self.num_heads)
        K = _heads(self.k_proj(x), self.num_kv_heads)
        V = _heads(self.v_proj(x), self.num_kv_heads)
        if self.rope is not None:
            if token_positions is None:
                token_positions = torch.arange(past, past + seq, device=x.device)
            positions = rearrange(token_positions, "... seq -> ... 1 seq")
            Q, K = self.rope(Q, positions), self.rope(K, positions)
        if cache is not None:
            K, V = cache.append(K, V)
        sharing = self.num_heads // self.num_kv_heads
        K, V = K.repeat_interleave(sharing, dim=-3), V.repeat_interleave(sharing, dim=-3)
        causal = torch.ones(seq, past + seq, dtype=torch.bool, device=x.device).tril(past)
        heads = scaled_dot_product_attention(Q, K, V, causal)
        return self.output_proj(rearrange(heads, "... heads seq d_head -> ... seq (heads d_head)"))


def _heads(
    x: Float[Tensor, "... seq heads*d_head"], heads: int
) -> Float[Tensor, "... heads seq d_head"]:
    return rearrange(x, "... seq (heads d_head) -> ... heads seq d_head", heads=heads)
