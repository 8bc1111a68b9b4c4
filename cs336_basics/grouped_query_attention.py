"""Grouped-query attention: several query heads share one head of keys and values."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cs336_basics.kv_cache import KVCache
from cs336_basics.rope import RotaryEmbedding


class GroupedQueryAttention(nn.Module):
    """Causal self-attention with `num_heads` query heads and `num_kv_heads` key/value heads.

    A head has `d_head = d_model / num_heads` features, whichever kind it is. Query head h attends
    with key/value head `h // (num_heads / num_kv_heads)`: neighbours share. The four linear layers
    have no bias: `q_proj` and `output_proj` from `d_model` to `d_model`, `k_proj` and `v_proj` from
    `d_model` to `num_kv_heads · d_head` (Ainslie et al. 2023, section 2.2).

    Args:
        d_model: number of features in and out.
        num_heads: number of query heads; divides `d_model`.
        num_kv_heads: number of key/value heads; divides `num_heads`.
        rope: rotates queries and keys of `d_head` features; None for no positions.
        device: where the weights live.
        dtype: the weights' dtype.

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

        `token_positions` are used by RoPE alone; their leading axes broadcast against those of `x`.
        With a `cache`, the tokens of `x` come after those that it holds: they attend to these as
        well, are kept in it too, and their positions default to `length … length+seq-1`. Without
        one these default to `0 … seq-1`.

        Raises:
            IndexError: with `rope`, a position is `max_seq_len` or greater; or the cache is full.
        """
        raise NotImplementedError("grouped_query_attention: handout §5.8")
