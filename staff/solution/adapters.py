"""The adapters: each one runs your implementation with the given weights and inputs.

The tests call your code through these functions. An adapter builds your module, loads the weights
into it, calls it and returns the result; it should compute nothing itself. In an annotation, `...`
means any number of leading axes, also none.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from cs336_basics import accounting
from cs336_basics.adamw import AdamW
from cs336_basics.attention import MultiHeadSelfAttention, scaled_dot_product_attention
from cs336_basics.batch_norm import BatchNorm
from cs336_basics.batches import get_batch
from cs336_basics.causal_lm import CausalLM, TransformerTrunk, causal_lm_loss
from cs336_basics.checkpointing import load_checkpoint, save_checkpoint
from cs336_basics.compression import compression_ratio
from cs336_basics.config import make_config
from cs336_basics.cross_entropy import cross_entropy
from cs336_basics.decoding import decode
from cs336_basics.embedding import Embedding
from cs336_basics.feed_forward import SwiGLU, silu
from cs336_basics.gradient_clipping import clip_gradients
from cs336_basics.grouped_query_attention import GroupedQueryAttention
from cs336_basics.kv_cache import KVCache
from cs336_basics.layer_norm import LayerNorm
from cs336_basics.linear import Linear
from cs336_basics.lr_schedule import lr_cosine_schedule
from cs336_basics.mixture_of_experts import MixtureOfExperts
from cs336_basics.relu_feed_forward import ReLUFeedForward
from cs336_basics.rmsnorm import RMSNorm
from cs336_basics.rope import RotaryEmbedding
from cs336_basics.rope_conversion import adjacent_to_half_split, half_split_to_adjacent
from cs336_basics.rope_half_split import HalfSplitRotaryEmbedding
from cs336_basics.sinusoidal import SinusoidalPositions
from cs336_basics.softmax import softmax
from cs336_basics.tokenizer import Tokenizer
from cs336_basics.train_bpe import train_bpe
from cs336_basics.training import train
from cs336_basics.transformer import TransformerBlock, TransformerLM

_Module = TypeVar("_Module", bound=nn.Module)


def run_linear(
    d_in: int,
    d_out: int,
    weights: Float[Tensor, "d_out d_in"],
    in_features: Float[Tensor, "... d_in"],
) -> Float[Tensor, "... d_out"]:
    """Run your linear layer with the given weight."""
    linear = Linear(d_in, d_out, device=weights.device, dtype=weights.dtype)
    return _loaded(linear, {"weight": weights})(in_features)


def run_embedding(
    vocab_size: int,
    d_model: int,
    weights: Float[Tensor, "vocab_size d_model"],
    token_ids: Int[Tensor, "..."],
) -> Float[Tensor, "... d_model"]:
    """Look up the ids in your embedding with the given table."""
    embedding = Embedding(vocab_size, d_model, device=weights.device, dtype=weights.dtype)
    return _loaded(embedding, {"weight": weights})(token_ids)


def run_rmsnorm(
    d_model: int,
    eps: float,
    weights: Float[Tensor, " d_model"],
    in_features: Float[Tensor, "... d_model"],
) -> Float[Tensor, "... d_model"]:
    """Run your RMSNorm with the given gain; the result has the dtype of `in_features`."""
    norm = RMSNorm(d_model, eps, device=weights.device, dtype=weights.dtype)
    return _loaded(norm, {"weight": weights})(in_features)


def run_silu(in_features: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Apply your SiLU to every element."""
    return silu(in_features)


def run_swiglu(
    d_model: int,
    d_ff: int,
    w1_weight: Float[Tensor, "d_ff d_model"],
    w2_weight: Float[Tensor, "d_model d_ff"],
    w3_weight: Float[Tensor, "d_ff d_model"],
    in_features: Float[Tensor, "... d_model"],
) -> Float[Tensor, "... d_model"]:
    """Run your SwiGLU with the given weights."""
    swiglu = SwiGLU(d_model, d_ff, device=w1_weight.device, dtype=w1_weight.dtype)
    weights = {"w1.weight": w1_weight, "w2.weight": w2_weight, "w3.weight": w3_weight}
    return _loaded(swiglu, weights)(in_features)


def run_rope(
    d_k: int,
    theta: float,
    max_seq_len: int,
    in_query_or_key: Float[Tensor, "... seq d_k"],
    token_positions: Int[Tensor, "... seq"],
) -> Float[Tensor, "... seq d_k"]:
    """Rotate queries or keys with your RoPE, in which adjacent features are a pair."""
    rope = RotaryEmbedding(
        theta, d_k, max_seq_len, device=in_query_or_key.device, dtype=in_query_or_key.dtype
    )
    return rope(in_query_or_key, token_positions)


def run_softmax(in_features: Float[Tensor, "..."], dim: int) -> Float[Tensor, "..."]:
    """Apply your softmax along the axis `dim`."""
    return softmax(in_features, dim)


def run_scaled_dot_product_attention(
    Q: Float[Tensor, "... queries d_k"],
    K: Float[Tensor, "... keys d_k"],
    V: Float[Tensor, "... keys d_v"],
    mask: Bool[Tensor, "... queries keys"] | None = None,
) -> Float[Tensor, "... queries d_v"]:
    """Run your attention; True in `mask` means that the query may attend to the key."""
    return scaled_dot_product_attention(Q, K, V, mask)


def run_multihead_self_attention(
    d_model: int,
    num_heads: int,
    q_proj_weight: Float[Tensor, "d_model d_model"],
    k_proj_weight: Float[Tensor, "d_model d_model"],
    v_proj_weight: Float[Tensor, "d_model d_model"],
    o_proj_weight: Float[Tensor, "d_model d_model"],
    in_features: Float[Tensor, "... seq d_model"],
) -> Float[Tensor, "... seq d_model"]:
    """Run your causal self-attention without RoPE; the weights stack the heads along `d_out`."""
    attention = MultiHeadSelfAttention(
        d_model, num_heads, device=q_proj_weight.device, dtype=q_proj_weight.dtype
    )
    weights = _projections(q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    return _loaded(attention, weights)(in_features)


def run_multihead_self_attention_with_rope(
    d_model: int,
    num_heads: int,
    max_seq_len: int,
    theta: float,
    q_proj_weight: Float[Tensor, "d_model d_model"],
    k_proj_weight: Float[Tensor, "d_model d_model"],
    v_proj_weight: Float[Tensor, "d_model d_model"],
    o_proj_weight: Float[Tensor, "d_model d_model"],
    in_features: Float[Tensor, "... seq d_model"],
    token_positions: Int[Tensor, "... seq"] | None = None,
) -> Float[Tensor, "... seq d_model"]:
    """Run your causal self-attention with RoPE; the positions default to `0 … seq-1`."""
    device, dtype = q_proj_weight.device, q_proj_weight.dtype
    rope = RotaryEmbedding(theta, d_model // num_heads, max_seq_len, device=device, dtype=dtype)
    attention = MultiHeadSelfAttention(d_model, num_heads, rope, device=device, dtype=dtype)
    weights = _projections(q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    return _loaded(attention, weights)(in_features, token_positions)


def run_transformer_block(
    d_model: int,
    num_heads: int,
    d_ff: int,
    max_seq_len: int,
    theta: float,
    weights: Mapping[str, Tensor],
    in_features: Float[Tensor, "batch seq d_model"],
) -> Float[Tensor, "batch seq d_model"]:
    """Run your pre-norm block with RoPE.

    `weights` holds `attn.q_proj.weight`, `attn.k_proj.weight`, `attn.v_proj.weight` and
    `attn.output_proj.weight`, each `(d_model, d_model)`; `ln1.weight` and `ln2.weight`,
    `(d_model,)`; `ffn.w1.weight` and `ffn.w3.weight`, `(d_ff, d_model)`; `ffn.w2.weight`,
    `(d_model, d_ff)`.
    """
    block = TransformerBlock(
        d_model,
        num_heads,
        d_ff,
        max_seq_len,
        theta,
        device=in_features.device,
        dtype=in_features.dtype,
    )
    return _loaded(block, weights)(in_features)


def run_transformer_lm(
    vocab_size: int,
    context_length: int,
    d_model: int,
    num_layers: int,
    num_heads: int,
    d_ff: int,
    rope_theta: float,
    weights: Mapping[str, Tensor],
    in_indices: Int[Tensor, "batch seq"],
) -> Float[Tensor, "batch seq vocab_size"]:
    """Run your language model and return its logits.

    `weights` holds `token_embeddings.weight`, `(vocab_size, d_model)`; for each layer i the
    weights of a block as in `run_transformer_block`, with `layers.{i}.` before their names;
    `ln_final.weight`, `(d_model,)`; `lm_head.weight`, `(vocab_size, d_model)`.
    """
    table = weights["token_embeddings.weight"]
    model = TransformerLM(
        vocab_size,
        context_length,
        d_model,
        num_layers,
        num_heads,
        d_ff,
        rope_theta,
        device=table.device,
        dtype=table.dtype,
    )
    return _loaded(model, weights)(in_indices)


def run_cross_entropy(
    inputs: Float[Tensor, "... vocab_size"], targets: Int[Tensor, "..."]
) -> Float[Tensor, ""]:
    """Compute your cross-entropy of the logits `inputs`, averaged over all targets."""
    return cross_entropy(inputs, targets)


def get_adamw_cls() -> type[torch.optim.Optimizer]:
    """Return your AdamW class; the tests call it with `lr`, `betas`, `eps` and `weight_decay`."""
    return AdamW


def run_get_lr_cosine_schedule(
    it: int,
    max_learning_rate: float,
    min_learning_rate: float,
    warmup_iters: int,
    cosine_cycle_iters: int,
) -> float:
    """Return your learning rate of iteration `it`."""
    return lr_cosine_schedule(
        it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters
    )


def run_gradient_clipping(parameters: Iterable[nn.Parameter], max_l2_norm: float) -> None:
    """Clip the gradients of the parameters with your function, in place."""
    clip_gradients(parameters, max_l2_norm)


def run_get_batch(
    dataset: npt.NDArray[np.integer], batch_size: int, context_length: int, device: str
) -> tuple[Int[Tensor, "batch context"], Int[Tensor, "batch context"]]:
    """Sample inputs and targets with your function."""
    return get_batch(dataset, batch_size, context_length, device)


def run_save_checkpoint(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    iteration: int,
    out: str | os.PathLike[str] | IO[bytes],
) -> None:
    """Write a checkpoint with your function."""
    save_checkpoint(model, optimizer, iteration, out)


def run_load_checkpoint(
    src: str | os.PathLike[str] | IO[bytes], model: nn.Module, optimizer: torch.optim.Optimizer
) -> int:
    """Load a checkpoint with your function, and return its iteration."""
    return load_checkpoint(src, model, optimizer)


def run_training(
    token_ids: Int[np.ndarray, " n"],
    config: dict[str, object],
    out_dir: str | os.PathLike[str],
    resume: bool = False,
) -> dict[int, dict[str, float]]:
    """Train with the fields in `config`, and return the measurements of each logged step.

    The measurements are `train_loss`, `learning_rate`, `gradient_norm` and, at some steps,
    `validation_loss`.
    """
    return train(token_ids, make_config(config), out_dir, resume=resume)


def run_decode(
    next_logits: Callable[[Int[Tensor, "batch seq"]], Float[Tensor, "batch vocab_size"]],
    prompt: list[int],
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop_token: int | None = None,
    seed: int | None = None,
) -> list[int]:
    """Continue the prompt; return only the new tokens, without the stop token."""
    return decode(next_logits, prompt, max_new_tokens, temperature, top_k, top_p, stop_token, seed)


def count_parameters(
    vocab_size: int, context_length: int, d_model: int, num_layers: int, num_heads: int, d_ff: int
) -> int:
    """Count the trainable parameters of your language model."""
    return accounting.count_parameters(
        vocab_size, context_length, d_model, num_layers, num_heads, d_ff
    )


def count_flops(
    vocab_size: int,
    context_length: int,
    d_model: int,
    num_layers: int,
    num_heads: int,
    d_ff: int,
    batch_size: int,
    sequence_length: int,
) -> int:
    """Count the operations in the matrix products of one forward pass."""
    return accounting.count_flops(
        vocab_size,
        context_length,
        d_model,
        num_layers,
        num_heads,
        d_ff,
        batch_size,
        sequence_length,
    )


def run_train_bpe(
    input_path: str | os.PathLike[str], vocab_size: int, special_tokens: list[str], **kwargs: Any
) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    """Train your tokenizer on a file; return its vocabulary and its merges.

    `kwargs` are further arguments of your function, such as `num_processes`.
    """
    return train_bpe(input_path, vocab_size, special_tokens, **kwargs)


def get_tokenizer(
    vocab: dict[int, bytes],
    merges: list[tuple[bytes, bytes]],
    special_tokens: list[str] | None = None,
) -> Tokenizer:
    """Build your tokenizer from a vocabulary and merges."""
    return Tokenizer(vocab, merges, special_tokens)


def run_layer_norm(
    d_model: int,
    eps: float,
    weight: Float[Tensor, " d_model"],
    bias: Float[Tensor, " d_model"],
    in_features: Float[Tensor, "... d_model"],
) -> Float[Tensor, "... d_model"]:
    """Run your LayerNorm with the given gain and shift."""
    norm = LayerNorm(d_model, eps, device=weight.device, dtype=weight.dtype)
    return _loaded(norm, {"weight": weight, "bias": bias})(in_features)


def run_batch_norm(
    num_features: int,
    eps: float,
    momentum: float,
    weight: Float[Tensor, " num_features"],
    bias: Float[Tensor, " num_features"],
    running_mean: Float[Tensor, " num_features"],
    running_var: Float[Tensor, " num_features"],
    in_features: Float[Tensor, "batch num_features"],
    training: bool,
) -> tuple[
    Float[Tensor, "batch num_features"],
    Float[Tensor, " num_features"],
    Float[Tensor, " num_features"],
]:
    """Run your BatchNorm once, in training or in evaluation mode.

    Return the output, and the running mean and variance after the call.
    """
    norm = BatchNorm(num_features, eps, momentum, device=weight.device, dtype=weight.dtype)
    learned = {"weight": weight, "bias": bias}
    running = {"running_mean": running_mean, "running_var": running_var}
    output = _loaded(norm, learned | running).train(training)(in_features)
    return output, norm.running_mean, norm.running_var


def run_relu_feed_forward(
    d_model: int,
    d_ff: int,
    w1_weight: Float[Tensor, "d_ff d_model"],
    w1_bias: Float[Tensor, " d_ff"],
    w2_weight: Float[Tensor, "d_model d_ff"],
    w2_bias: Float[Tensor, " d_model"],
    in_features: Float[Tensor, "... d_model"],
) -> Float[Tensor, "... d_model"]:
    """Run your ReLU feed-forward layer with the given weights and biases."""
    layer = ReLUFeedForward(d_model, d_ff, device=w1_weight.device, dtype=w1_weight.dtype)
    first = {"w1.weight": w1_weight, "b1": w1_bias}
    second = {"w2.weight": w2_weight, "b2": w2_bias}
    return _loaded(layer, first | second)(in_features)


def run_sinusoidal_positions(
    d_model: int,
    max_seq_len: int,
    in_features: Float[Tensor, "... seq d_model"],
    token_positions: Int[Tensor, "... seq"],
) -> Float[Tensor, "... seq d_model"]:
    """Add the sines and cosines of your sinusoidal positions to `in_features`."""
    positions = SinusoidalPositions(
        d_model, max_seq_len, device=in_features.device, dtype=in_features.dtype
    )
    return positions(in_features, token_positions)


def run_rope_half_split(
    head_dim: int,
    theta: float,
    in_query: Float[Tensor, "batch heads seq head_dim"],
    in_key: Float[Tensor, "batch kv_heads seq head_dim"],
    start_position: int,
) -> tuple[Float[Tensor, "batch heads seq head_dim"], Float[Tensor, "batch kv_heads seq head_dim"]]:
    """Rotate queries and keys with your RoPE, in which features j and j + head_dim/2 are a pair."""
    rope = HalfSplitRotaryEmbedding(theta, head_dim, device=in_query.device, dtype=in_query.dtype)
    return rope(in_query, in_key, start_position)


def run_adjacent_to_half_split(
    weight: Float[Tensor, "d_out ..."], num_heads: int
) -> Float[Tensor, "d_out ..."]:
    """Convert query or key weights from adjacent pairs to halves with your function."""
    return adjacent_to_half_split(weight, num_heads)


def run_half_split_to_adjacent(
    weight: Float[Tensor, "d_out ..."], num_heads: int
) -> Float[Tensor, "d_out ..."]:
    """Convert query or key weights from halves to adjacent pairs with your function."""
    return half_split_to_adjacent(weight, num_heads)


def run_compression_ratio(text: str, token_ids: list[int]) -> float:
    """Return your number of bytes per token."""
    return compression_ratio(text, token_ids)


def run_grouped_query_attention(
    d_model: int,
    num_heads: int,
    num_kv_heads: int,
    q_proj_weight: Float[Tensor, "d_model d_model"],
    k_proj_weight: Float[Tensor, "d_kv d_model"],
    v_proj_weight: Float[Tensor, "d_kv d_model"],
    o_proj_weight: Float[Tensor, "d_model d_model"],
    in_features: Float[Tensor, "... seq d_model"],
    max_seq_len: int,
    theta: float,
    token_positions: Int[Tensor, "... seq"] | None = None,
) -> Float[Tensor, "... seq d_model"]:
    """Run your grouped-query attention with RoPE; the weights stack the heads along `d_out`."""
    device, dtype = q_proj_weight.device, q_proj_weight.dtype
    d_head = d_model // num_heads
    rope = RotaryEmbedding(theta, d_head, max_seq_len, device=device, dtype=dtype)
    attention = GroupedQueryAttention(
        d_model, num_heads, num_kv_heads, rope, device=device, dtype=dtype
    )
    weights = _projections(q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    return _loaded(attention, weights)(in_features, token_positions)


def run_causal_lm_loss(
    logits: Float[Tensor, "... seq vocab_size"],
    labels: Int[Tensor, "... seq"],
    ignore_index: int = -100,
) -> Float[Tensor, ""]:
    """Compute your loss of the logits and the labels, which are not shifted."""
    return causal_lm_loss(logits, labels, ignore_index)


def run_causal_lm(
    vocab_size: int,
    context_length: int,
    d_model: int,
    num_layers: int,
    num_heads: int,
    num_kv_heads: int,
    d_ff: int,
    rope_theta: float,
    weights: Mapping[str, Tensor],
    token_ids: Int[Tensor, "batch seq"],
    logits_to_keep: int = 0,
    labels: Int[Tensor, "batch seq"] | None = None,
) -> tuple[Float[Tensor, "batch kept vocab_size"], Float[Tensor, ""] | None]:
    """Run your trunk and head; return the logits, and the loss or None.

    `weights` holds `trunk.token_embeddings.weight`, `(vocab_size, d_model)`; for each layer i,
    with `trunk.layers.{i}.` before their names, the weights of a block as in
    `run_transformer_block`, but `attn.k_proj.weight` and `attn.v_proj.weight` are
    `(num_kv_heads * d_head, d_model)`; `trunk.ln_final.weight`, `(d_model,)`; `lm_head.weight`,
    `(vocab_size, d_model)`.
    """
    table = weights["trunk.token_embeddings.weight"]
    trunk = TransformerTrunk(
        vocab_size,
        context_length,
        d_model,
        num_layers,
        num_heads,
        num_kv_heads,
        d_ff,
        rope_theta,
        device=table.device,
        dtype=table.dtype,
    )
    return _loaded(CausalLM(trunk), weights)(token_ids, labels, logits_to_keep)


def run_cached_forward(
    vocab_size: int,
    context_length: int,
    d_model: int,
    num_layers: int,
    num_heads: int,
    num_kv_heads: int,
    d_ff: int,
    rope_theta: float,
    weights: Mapping[str, Tensor],
    token_ids: Int[Tensor, "batch seq"],
    chunk_sizes: list[int],
    max_cached: int,
    earlier_ids: Int[Tensor, "earlier_batch earlier_seq"] | None = None,
) -> Float[Tensor, "batch seq vocab_size"]:
    """Run your causal language model with caches, chunk by chunk; return the logits of all tokens.

    The first chunk has `chunk_sizes[0]` tokens, the next one `chunk_sizes[1]`, and so on. Each
    cache can hold `max_cached` tokens. If there are `earlier_ids`, the model first gets all of
    these in one call with the same caches, which are then reset. `weights` are those of
    `run_causal_lm`.
    """
    table = weights["trunk.token_embeddings.weight"]
    trunk = TransformerTrunk(
        vocab_size,
        context_length,
        d_model,
        num_layers,
        num_heads,
        num_kv_heads,
        d_ff,
        rope_theta,
        device=table.device,
        dtype=table.dtype,
    )
    model = _loaded(CausalLM(trunk), weights)
    caches = [KVCache(max_cached) for _ in range(num_layers)]
    if earlier_ids is not None:
        model(earlier_ids, caches=caches)
        for cache in caches:
            cache.reset()
    chunks = token_ids.split(chunk_sizes, dim=1)
    return torch.cat([model(chunk, caches=caches)[0] for chunk in chunks], dim=1)


def run_mixture_of_experts(
    d_model: int,
    d_ff: int,
    num_experts: int,
    top_k: int,
    weights: Mapping[str, Tensor],
    in_features: Float[Tensor, "... d_model"],
) -> tuple[Float[Tensor, "... d_model"], Float[Tensor, ""]]:
    """Run your mixture of experts; return its output and its load-balancing loss.

    `weights` holds `router.weight`, `(num_experts, d_model)`, and for each expert i
    `experts.{i}.w1.weight` and `experts.{i}.w3.weight`, `(d_ff, d_model)`, and
    `experts.{i}.w2.weight`, `(d_model, d_ff)`.
    """
    router = weights["router.weight"]
    mixture = MixtureOfExperts(
        d_model, d_ff, num_experts, top_k, device=router.device, dtype=router.dtype
    )
    return _loaded(mixture, weights)(in_features)


def _loaded(module: _Module, weights: Mapping[str, Tensor]) -> _Module:
    module.load_state_dict(weights, strict=True)
    return module


def _projections(q: Tensor, k: Tensor, v: Tensor, output: Tensor) -> dict[str, Tensor]:
    return {
        "q_proj.weight": q,
        "k_proj.weight": k,
        "v_proj.weight": v,
        "output_proj.weight": output,
    }
