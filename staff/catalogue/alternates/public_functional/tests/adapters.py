"""Adapters. My code is imported where it is used, so one broken file can't break all tests."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO, Any, BinaryIO

import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tests.common import pick_block


def run_linear(
    d_in: int,
    d_out: int,
    weights: Float[Tensor, " d_out d_in"],
    in_features: Float[Tensor, " ... d_in"],
) -> Float[Tensor, " ... d_out"]:
    """Linear map of the last axis."""
    from cs336_basics.ops import linear

    return linear(in_features, weights)


def run_embedding(
    vocab_size: int,
    d_model: int,
    weights: Float[Tensor, " vocab_size d_model"],
    token_ids: Int[Tensor, " ..."],
) -> Float[Tensor, " ... d_model"]:
    """Rows of the table."""
    from cs336_basics.ops import embed

    return embed(token_ids, weights)


def run_swiglu(
    d_model: int,
    d_ff: int,
    w1_weight: Float[Tensor, " d_ff d_model"],
    w2_weight: Float[Tensor, " d_model d_ff"],
    w3_weight: Float[Tensor, " d_ff d_model"],
    in_features: Float[Tensor, " ... d_model"],
) -> Float[Tensor, " ... d_model"]:
    """Gated feed-forward network."""
    from cs336_basics.ops import swiglu

    return swiglu(in_features, w1_weight, w2_weight, w3_weight)


def run_scaled_dot_product_attention(
    Q: Float[Tensor, " ... queries d_k"],
    K: Float[Tensor, " ... keys d_k"],
    V: Float[Tensor, " ... keys d_v"],
    mask: Bool[Tensor, " ... queries keys"] | None = None,
) -> Float[Tensor, " ... queries d_v"]:
    """Attention; the boolean mask is turned into an additive one."""
    from cs336_basics.ops import additive_mask, attention

    return attention(Q, K, V, None if mask is None else additive_mask(mask, Q.dtype))


def run_multihead_self_attention(
    d_model: int,
    num_heads: int,
    q_proj_weight: Float[Tensor, " d_model d_in"],
    k_proj_weight: Float[Tensor, " d_model d_in"],
    v_proj_weight: Float[Tensor, " d_model d_in"],
    o_proj_weight: Float[Tensor, " d_model d_v"],
    in_features: Float[Tensor, " ... sequence_length d_in"],
) -> Float[Tensor, " ... sequence_length d_out"]:
    """Causal self-attention without positions."""
    from cs336_basics.ops import causal_self_attention

    return causal_self_attention(
        in_features, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, num_heads
    )


def run_multihead_self_attention_with_rope(
    d_model: int,
    num_heads: int,
    max_seq_len: int,
    theta: float,
    q_proj_weight: Float[Tensor, " d_model d_in"],
    k_proj_weight: Float[Tensor, " d_model d_in"],
    v_proj_weight: Float[Tensor, " d_model d_in"],
    o_proj_weight: Float[Tensor, " d_model d_v"],
    in_features: Float[Tensor, " ... sequence_length d_in"],
    token_positions: Int[Tensor, " ... sequence_length"] | None = None,
) -> Float[Tensor, " ... sequence_length d_out"]:
    """Causal self-attention with RoPE; angles are computed on the fly, for any position."""
    from cs336_basics.ops import causal_self_attention

    return causal_self_attention(
        in_features,
        q_proj_weight,
        k_proj_weight,
        v_proj_weight,
        o_proj_weight,
        num_heads,
        theta=theta,
        positions=token_positions,
    )


def run_rope(
    d_k: int,
    theta: float,
    max_seq_len: int,
    in_query_or_key: Float[Tensor, " ... sequence_length d_k"],
    token_positions: Int[Tensor, " ... sequence_length"],
) -> Float[Tensor, " ... sequence_length d_k"]:
    """Rotary position embedding."""
    from cs336_basics.ops import rope

    return rope(in_query_or_key, token_positions, theta)


def run_transformer_block(
    d_model: int,
    num_heads: int,
    d_ff: int,
    max_seq_len: int,
    theta: float,
    weights: dict[str, Tensor],
    in_features: Float[Tensor, " batch sequence_length d_model"],
) -> Float[Tensor, " batch sequence_length d_model"]:
    """One pre-norm block."""
    from cs336_basics.lm import BlockWeights, transformer_block

    return transformer_block(in_features, BlockWeights(**pick_block(weights)), num_heads, theta)


def run_transformer_lm(
    vocab_size: int,
    context_length: int,
    d_model: int,
    num_layers: int,
    num_heads: int,
    d_ff: int,
    rope_theta: float,
    weights: dict[str, Tensor],
    in_indices: Int[Tensor, " batch_size sequence_length"],
) -> Float[Tensor, " batch_size sequence_length vocab_size"]:
    """Whole model, up to the logits."""
    from cs336_basics.lm import BlockWeights, transformer_lm

    return transformer_lm(
        in_indices,
        table=weights["token_embeddings.weight"],
        blocks=[BlockWeights(**pick_block(weights, f"layers.{i}.")) for i in range(num_layers)],
        final_norm=weights["ln_final.weight"],
        head=weights["lm_head.weight"],
        n_heads=num_heads,
        theta=rope_theta,
    )


def run_rmsnorm(
    d_model: int,
    eps: float,
    weights: Float[Tensor, " d_model"],
    in_features: Float[Tensor, " ... d_model"],
) -> Float[Tensor, " ... d_model"]:
    """RMSNorm over the last axis."""
    from cs336_basics.ops import rms_norm

    return rms_norm(in_features, weights, eps)


def run_silu(in_features: Float[Tensor, " ..."]) -> Float[Tensor, " ..."]:
    """SiLU."""
    from cs336_basics.ops import silu

    return silu(in_features)


def run_softmax(in_features: Float[Tensor, " ..."], dim: int) -> Float[Tensor, " ..."]:
    """Softmax along one axis."""
    from cs336_basics.ops import softmax

    return softmax(in_features, dim)


def run_get_batch(
    dataset: npt.NDArray, batch_size: int, context_length: int, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sample a batch of inputs and next-token targets."""
    from cs336_basics.train_ops import batch

    return batch(dataset, batch_size, context_length, device)


def run_cross_entropy(
    inputs: Float[Tensor, " batch_size vocab_size"], targets: Int[Tensor, " batch_size"]
) -> Float[Tensor, ""]:
    """Average cross-entropy over the batch."""
    from cs336_basics.train_ops import xent

    return xent(inputs, targets)


def run_gradient_clipping(parameters: Iterable[torch.nn.Parameter], max_l2_norm: float) -> None:
    """Scale the gradients in place so that their joint norm is at most max_l2_norm."""
    from cs336_basics.train_ops import clip

    clip(parameters, max_l2_norm)


def get_adamw_cls() -> Any:
    """Return the AdamW optimizer class."""
    from cs336_basics.train_ops import Adam

    return Adam


def run_get_lr_cosine_schedule(
    it: int,
    max_learning_rate: float,
    min_learning_rate: float,
    warmup_iters: int,
    cosine_cycle_iters: int,
) -> float:
    """Learning rate at iteration `it`."""
    from cs336_basics.train_ops import schedule

    return schedule(
        it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters
    )


def run_save_checkpoint(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    iteration: int,
    out: str | os.PathLike | BinaryIO | IO[bytes],
) -> None:
    """Write model, optimizer and iteration to `out`."""
    from cs336_basics.train_ops import dump

    dump(model, optimizer, iteration, out)


def run_load_checkpoint(
    src: str | os.PathLike | BinaryIO | IO[bytes],
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
) -> int:
    """Restore model and optimizer from `src` and return the iteration."""
    from cs336_basics.train_ops import restore

    return restore(src, model, optimizer)


def get_tokenizer(
    vocab: dict[int, bytes],
    merges: list[tuple[bytes, bytes]],
    special_tokens: list[str] | None = None,
) -> Any:
    """Build a BPE tokenizer from a vocabulary and merges."""
    from cs336_basics.text import Codec

    return Codec(vocab, merges, special_tokens)


def run_train_bpe(
    input_path: str | os.PathLike, vocab_size: int, special_tokens: list[str], **kwargs: Any
) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    """Train BPE on the file at `input_path`; returns vocabulary and merges."""
    from cs336_basics.text import train

    return train(input_path, vocab_size, special_tokens)
