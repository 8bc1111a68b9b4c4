"""Grouped-query attention: several query heads share one head of keys and values."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cs336_basics.kv_cache import KVCache
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
        raise NotImplementedError("grouped_query_attention: handout §5.8")

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
        raise NotImplementedError("grouped_query_attention: handout §5.8")
