"""The adapters: how the tests call my code."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO, Any, BinaryIO

import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cs336_basics import loop_utils, nn_utils, optim
from cs336_basics.bpe import BPE, learn_bpe
from cs336_basics.model import (
    Block,
    CausalMHSA,
    GatedFFN,
    LanguageModel,
    Lin,
    RootMeanSquareNorm,
    RotaryPositionalEmbedding,
    TokenEmbedding,
)

from .common import weights_under


def _block_state(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename the weights of a block to the names of my modules."""
    qkv = [weights[f"attn.{name}_proj.weight"] for name in "qkv"]
    return {
        "norm_attn.gain": weights["ln1.weight"],
        "mhsa.W_qkv.W": torch.cat(qkv, dim=0),
        "mhsa.W_o.W": weights["attn.output_proj.weight"],
        "norm_ffn.gain": weights["ln2.weight"],
        "mlp.gate.W": weights["ffn.w1.weight"],
        "mlp.up.W": weights["ffn.w3.weight"],
        "mlp.down.W": weights["ffn.w2.weight"],
    }


def run_linear(
    d_in: int,
    d_out: int,
    weights: Float[Tensor, " d_out d_in"],
    in_features: Float[Tensor, " ... d_in"],
) -> Float[Tensor, " ... d_out"]:
    """Linear layer with the given weights."""
    lin = Lin(d_in, d_out, device=weights.device, dtype=weights.dtype)
    lin.load_state_dict({"W": weights})
    return lin(in_features)


def run_embedding(
    vocab_size: int,
    d_model: int,
    weights: Float[Tensor, " vocab_size d_model"],
    token_ids: Int[Tensor, " ..."],
) -> Float[Tensor, " ... d_model"]:
    """Embedding lookup."""
    embedding = TokenEmbedding(vocab_size, d_model, device=weights.device, dtype=weights.dtype)
    embedding.load_state_dict({"table": weights})
    return embedding(token_ids)


def run_swiglu(
    d_model: int,
    d_ff: int,
    w1_weight: Float[Tensor, " d_ff d_model"],
    w2_weight: Float[Tensor, " d_model d_ff"],
    w3_weight: Float[Tensor, " d_ff d_model"],
    in_features: Float[Tensor, " ... d_model"],
) -> Float[Tensor, " ... d_model"]:
    """SwiGLU feed-forward network."""
    ffn = GatedFFN(d_model, d_ff, device=w1_weight.device, dtype=w1_weight.dtype)
    ffn.load_state_dict({"gate.W": w1_weight, "up.W": w3_weight, "down.W": w2_weight})
    return ffn(in_features)


def run_scaled_dot_product_attention(
    Q: Float[Tensor, " ... queries d_k"],
    K: Float[Tensor, " ... keys d_k"],
    V: Float[Tensor, " ... keys d_v"],
    mask: Bool[Tensor, " ... queries keys"] | None = None,
) -> Float[Tensor, " ... queries d_v"]:
    """Scaled dot-product attention."""
    return nn_utils.attend(Q, K, V, mask)


def run_multihead_self_attention(
    d_model: int,
    num_heads: int,
    q_proj_weight: Float[Tensor, " d_model d_in"],
    k_proj_weight: Float[Tensor, " d_model d_in"],
    v_proj_weight: Float[Tensor, " d_model d_in"],
    o_proj_weight: Float[Tensor, " d_model d_v"],
    in_features: Float[Tensor, " ... sequence_length d_in"],
) -> Float[Tensor, " ... sequence_length d_out"]:
    """Causal multi-head self-attention without RoPE."""
    mhsa = CausalMHSA(d_model, num_heads, device=q_proj_weight.device, dtype=q_proj_weight.dtype)
    stacked = torch.cat([q_proj_weight, k_proj_weight, v_proj_weight], dim=0)
    mhsa.load_state_dict({"W_qkv.W": stacked, "W_o.W": o_proj_weight})
    return mhsa(in_features)


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
    """Causal multi-head self-attention with RoPE."""
    device, dtype = q_proj_weight.device, q_proj_weight.dtype
    rope = RotaryPositionalEmbedding(theta, d_model // num_heads, max_seq_len, device=device)
    mhsa = CausalMHSA(d_model, num_heads, rope, device=device, dtype=dtype)
    stacked = torch.cat([q_proj_weight, k_proj_weight, v_proj_weight], dim=0)
    mhsa.load_state_dict({"W_qkv.W": stacked, "W_o.W": o_proj_weight})
    return mhsa(in_features, token_positions)


def run_rope(
    d_k: int,
    theta: float,
    max_seq_len: int,
    in_query_or_key: Float[Tensor, " ... sequence_length d_k"],
    token_positions: Int[Tensor, " ... sequence_length"],
) -> Float[Tensor, " ... sequence_length d_k"]:
    """Rotary position embedding."""
    rope = RotaryPositionalEmbedding(theta, d_k, max_seq_len, device=in_query_or_key.device)
    return rope(in_query_or_key, token_positions)


def run_transformer_block(
    d_model: int,
    num_heads: int,
    d_ff: int,
    max_seq_len: int,
    theta: float,
    weights: dict[str, Tensor],
    in_features: Float[Tensor, " batch sequence_length d_model"],
) -> Float[Tensor, " batch sequence_length d_model"]:
    """Pre-norm Transformer block with RoPE."""
    device, dtype = in_features.device, in_features.dtype
    rope = RotaryPositionalEmbedding(theta, d_model // num_heads, max_seq_len, device=device)
    block = Block(d_model, num_heads, d_ff, rope, device=device, dtype=dtype)
    block.load_state_dict(_block_state(weights))
    return block(in_features)


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
    """Logits of the language model."""
    state = {
        "embed.table": weights["token_embeddings.weight"],
        "norm_out.gain": weights["ln_final.weight"],
        "unembed.W": weights["lm_head.weight"],
    }
    for i in range(num_layers):
        layer = _block_state(weights_under(weights, f"layers.{i}."))
        state.update({f"blocks.{i}.{name}": weight for name, weight in layer.items()})
    model = LanguageModel(
        vocab_size,
        context_length,
        d_model,
        num_layers,
        num_heads,
        d_ff,
        rope_theta,
        device=state["embed.table"].device,
        dtype=state["embed.table"].dtype,
    )
    model.load_state_dict(state)
    return model(in_indices)


def run_rmsnorm(
    d_model: int,
    eps: float,
    weights: Float[Tensor, " d_model"],
    in_features: Float[Tensor, " ... d_model"],
) -> Float[Tensor, " ... d_model"]:
    """RMSNorm with the given gain."""
    norm = RootMeanSquareNorm(d_model, eps, device=weights.device, dtype=weights.dtype)
    norm.load_state_dict({"gain": weights})
    return norm(in_features)


def run_silu(in_features: Float[Tensor, " ..."]) -> Float[Tensor, " ..."]:
    """SiLU, elementwise."""
    return nn_utils.silu(in_features)


def run_softmax(in_features: Float[Tensor, " ..."], dim: int) -> Float[Tensor, " ..."]:
    """Softmax over `dim`."""
    return nn_utils.stable_softmax(in_features, dim)


def run_get_batch(
    dataset: npt.NDArray, batch_size: int, context_length: int, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sample a batch of inputs and next-token targets."""
    return loop_utils.sample(dataset, batch_size, context_length, device)


def run_cross_entropy(
    inputs: Float[Tensor, " batch_size vocab_size"], targets: Int[Tensor, " batch_size"]
) -> Float[Tensor, ""]:
    """Average cross-entropy over the batch."""
    return loop_utils.nll(inputs, targets)


def run_gradient_clipping(parameters: Iterable[torch.nn.Parameter], max_l2_norm: float) -> None:
    """Scale the gradients in place so that their joint norm is at most max_l2_norm."""
    optim.clip_grad(parameters, max_l2_norm)


def get_adamw_cls() -> Any:
    """Return the AdamW optimizer class."""
    return optim.AdamW


def run_get_lr_cosine_schedule(
    it: int,
    max_learning_rate: float,
    min_learning_rate: float,
    warmup_iters: int,
    cosine_cycle_iters: int,
) -> float:
    """Learning rate at iteration `it`."""
    return optim.cosine_lr(
        it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters
    )


def run_save_checkpoint(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    iteration: int,
    out: str | os.PathLike | BinaryIO | IO[bytes],
) -> None:
    """Write model, optimizer and iteration to `out`."""
    loop_utils.save(model, optimizer, iteration, out)


def run_load_checkpoint(
    src: str | os.PathLike | BinaryIO | IO[bytes],
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
) -> int:
    """Restore model and optimizer from `src` and return the iteration."""
    return loop_utils.load(src, model, optimizer)


def get_tokenizer(
    vocab: dict[int, bytes],
    merges: list[tuple[bytes, bytes]],
    special_tokens: list[str] | None = None,
) -> Any:
    """Build a BPE tokenizer from a vocabulary and merges."""
    return BPE(vocab, merges, special_tokens)


def run_train_bpe(
    input_path: str | os.PathLike, vocab_size: int, special_tokens: list[str], **kwargs: Any
) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    """Train BPE on the file at `input_path`; returns vocabulary and merges."""
    return learn_bpe(input_path, vocab_size, special_tokens)
