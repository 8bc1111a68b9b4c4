"""The Transformer: blocks between an embedding and an output projection."""

from typing import NamedTuple

from torch import Tensor

from cs336_basics.ops import causal_self_attention, embed, linear, rms_norm, swiglu


class BlockWeights(NamedTuple):
    """All weights of one block."""

    norm1: Tensor
    wq: Tensor
    wk: Tensor
    wv: Tensor
    wo: Tensor
    norm2: Tensor
    w1: Tensor
    w2: Tensor
    w3: Tensor


def transformer_block(x: Tensor, w: BlockWeights, n_heads: int, theta: float) -> Tensor:
    """Pre-norm: each half normalises what it reads and adds what it finds."""
    h = rms_norm(x, w.norm1)
    x = x + causal_self_attention(h, w.wq, w.wk, w.wv, w.wo, n_heads, theta)
    return x + swiglu(rms_norm(x, w.norm2), w.w1, w.w2, w.w3)


def transformer_lm(
    token_ids: Tensor,
    table: Tensor,
    blocks: list[BlockWeights],
    final_norm: Tensor,
    head: Tensor,
    n_heads: int,
    theta: float,
) -> Tensor:
    """Logits for the token after each position."""
    x = embed(token_ids, table)
    for w in blocks:
        x = transformer_block(x, w, n_heads, theta)
    return linear(rms_norm(x, final_norm), head)
