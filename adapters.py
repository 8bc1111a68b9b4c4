"""The adapters: each one runs your implementation with the given weights and inputs.

The tests call your code through these functions. An adapter builds your module, loads the weights
into it, calls it and returns the result; it should compute nothing itself. In an annotation, `...`
means any number of leading axes, also none.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from cs336_basics.tokenizer import Tokenizer


def run_linear(
    d_in: int,
    d_out: int,
    weights: Float[Tensor, "d_out d_in"],
    in_features: Float[Tensor, "... d_in"],
) -> Float[Tensor, "... d_out"]:
    """Run your linear layer with the given weight."""
    raise NotImplementedError("linear: handout §2.1")


def run_embedding(
    vocab_size: int,
    d_model: int,
    weights: Float[Tensor, "vocab_size d_model"],
    token_ids: Int[Tensor, "..."],
) -> Float[Tensor, "... d_model"]:
    """Look up the ids in your embedding with the given table."""
    raise NotImplementedError("embedding: handout §2.2")


def run_rmsnorm(
    d_model: int,
    eps: float,
    weights: Float[Tensor, " d_model"],
    in_features: Float[Tensor, "... d_model"],
) -> Float[Tensor, "... d_model"]:
    """Run your RMSNorm with the given gain; the result has the dtype of `in_features`."""
    raise NotImplementedError("rmsnorm: handout §2.3")


def run_silu(in_features: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Apply your SiLU to every element."""
    raise NotImplementedError("silu: handout §2.4")


def run_swiglu(
    d_model: int,
    d_ff: int,
    w1_weight: Float[Tensor, "d_ff d_model"],
    w2_weight: Float[Tensor, "d_model d_ff"],
    w3_weight: Float[Tensor, "d_ff d_model"],
    in_features: Float[Tensor, "... d_model"],
) -> Float[Tensor, "... d_model"]:
    """Run your SwiGLU with the given weights."""
    raise NotImplementedError("swiglu: handout §2.5")


def run_rope(
    d_k: int,
    theta: float,
    max_seq_len: int,
    in_query_or_key: Float[Tensor, "... seq d_k"],
    token_positions: Int[Tensor, "... seq"],
) -> Float[Tensor, "... seq d_k"]:
    """Rotate queries or keys with your RoPE, in which adjacent features are a pair."""
    raise NotImplementedError("rope: handout §2.6")


def run_softmax(in_features: Float[Tensor, "..."], dim: int) -> Float[Tensor, "..."]:
    """Apply your softmax along the axis `dim`."""
    raise NotImplementedError("softmax: handout §2.7")


def run_scaled_dot_product_attention(
    Q: Float[Tensor, "... queries d_k"],
    K: Float[Tensor, "... keys d_k"],
    V: Float[Tensor, "... keys d_v"],
    mask: Bool[Tensor, "... queries keys"] | None = None,
) -> Float[Tensor, "... queries d_v"]:
    """Run your attention; True in `mask` means that the query may attend to the key."""
    raise NotImplementedError("attention: handout §2.8")


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
    raise NotImplementedError("multihead_attention: handout §2.9")


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
    raise NotImplementedError("multihead_attention_rope: handout §2.10")


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
    raise NotImplementedError("transformer_block: handout §2.11")


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
    raise NotImplementedError("transformer_lm: handout §2.12")


def run_cross_entropy(
    inputs: Float[Tensor, "... vocab_size"], targets: Int[Tensor, "..."]
) -> Float[Tensor, ""]:
    """Compute your cross-entropy of the logits `inputs`, averaged over all targets."""
    raise NotImplementedError("cross_entropy: handout §3.1")


def get_adamw_cls() -> type[torch.optim.Optimizer]:
    """Return your AdamW class; the tests call it with `lr`, `betas`, `eps` and `weight_decay`."""
    raise NotImplementedError("adamw: handout §3.2")


def run_get_lr_cosine_schedule(
    it: int,
    max_learning_rate: float,
    min_learning_rate: float,
    warmup_iters: int,
    cosine_cycle_iters: int,
) -> float:
    """Return your learning rate of iteration `it`."""
    raise NotImplementedError("lr_schedule: handout §3.3")


def run_gradient_clipping(parameters: Iterable[nn.Parameter], max_l2_norm: float) -> None:
    """Clip the gradients of the parameters with your function, in place."""
    raise NotImplementedError("gradient_clipping: handout §3.4")


def run_get_batch(
    dataset: npt.NDArray[np.integer], batch_size: int, context_length: int, device: str
) -> tuple[Int[Tensor, "batch context"], Int[Tensor, "batch context"]]:
    """Sample inputs and targets with your function."""
    raise NotImplementedError("get_batch: handout §3.5")


def run_save_checkpoint(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    iteration: int,
    out: str | os.PathLike[str] | IO[bytes],
) -> None:
    """Write a checkpoint with your function."""
    raise NotImplementedError("checkpointing: handout §3.6")


def run_load_checkpoint(
    src: str | os.PathLike[str] | IO[bytes], model: nn.Module, optimizer: torch.optim.Optimizer
) -> int:
    """Load a checkpoint with your function, and return its iteration."""
    raise NotImplementedError("checkpointing: handout §3.6")


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
    raise NotImplementedError("training_loop: handout §3.7")


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
    raise NotImplementedError("decoding: handout §3.8")


def count_parameters(
    vocab_size: int, context_length: int, d_model: int, num_layers: int, num_heads: int, d_ff: int
) -> int:
    """Count the trainable parameters of your language model."""
    raise NotImplementedError("count_parameters: handout §3.9")


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
    raise NotImplementedError("count_flops: handout §3.9")


def run_train_bpe(
    input_path: str | os.PathLike[str], vocab_size: int, special_tokens: list[str], **kwargs: Any
) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    """Train your tokenizer on a file; return its vocabulary and its merges.

    `kwargs` are further arguments of your function, such as `num_processes`.
    """
    raise NotImplementedError("train_bpe: handout §4.2")


def get_tokenizer(
    vocab: dict[int, bytes],
    merges: list[tuple[bytes, bytes]],
    special_tokens: list[str] | None = None,
) -> Tokenizer:
    """Build your tokenizer from a vocabulary and merges."""
    raise NotImplementedError("tokenizer: handout §4.3")


def run_layer_norm(
    d_model: int,
    eps: float,
    weight: Float[Tensor, " d_model"],
    bias: Float[Tensor, " d_model"],
    in_features: Float[Tensor, "... d_model"],
) -> Float[Tensor, "... d_model"]:
    """Run your LayerNorm with the given gain and shift."""
    raise NotImplementedError("layer_norm: handout §5.1")


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
    raise NotImplementedError("batch_norm: handout §5.2")


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
    raise NotImplementedError("relu_feed_forward: handout §5.3")


def run_sinusoidal_positions(
    d_model: int,
    max_seq_len: int,
    in_features: Float[Tensor, "... seq d_model"],
    token_positions: Int[Tensor, "... seq"],
) -> Float[Tensor, "... seq d_model"]:
    """Add the sines and cosines of your sinusoidal positions to `in_features`."""
    raise NotImplementedError("sinusoidal_positions: handout §5.4")


def run_rope_half_split(
    head_dim: int,
    theta: float,
    in_query: Float[Tensor, "batch heads seq head_dim"],
    in_key: Float[Tensor, "batch kv_heads seq head_dim"],
    start_position: int,
) -> tuple[Float[Tensor, "batch heads seq head_dim"], Float[Tensor, "batch kv_heads seq head_dim"]]:
    """Rotate queries and keys with your RoPE, in which features j and j + head_dim/2 are a pair."""
    raise NotImplementedError("rope_half_split: handout §5.5")


def run_adjacent_to_half_split(
    weight: Float[Tensor, "d_out ..."], num_heads: int
) -> Float[Tensor, "d_out ..."]:
    """Convert query or key weights from adjacent pairs to halves with your function."""
    raise NotImplementedError("rope_conversion: handout §5.6")


def run_half_split_to_adjacent(
    weight: Float[Tensor, "d_out ..."], num_heads: int
) -> Float[Tensor, "d_out ..."]:
    """Convert query or key weights from halves to adjacent pairs with your function."""
    raise NotImplementedError("rope_conversion: handout §5.6")


def run_compression_ratio(text: str, token_ids: list[int]) -> float:
    """Return your number of bytes per token."""
    raise NotImplementedError("compression_ratio: handout §5.7")


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
    raise NotImplementedError("grouped_query_attention: handout §5.8")


def run_causal_lm_loss(
    logits: Float[Tensor, "... seq vocab_size"],
    labels: Int[Tensor, "... seq"],
    ignore_index: int = -100,
) -> Float[Tensor, ""]:
    """Compute your loss of the logits and the labels, which are not shifted."""
    raise NotImplementedError("causal_lm_loss: handout §5.9")


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
    raise NotImplementedError("causal_lm: handout §5.10")


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
    raise NotImplementedError("kv_cache: handout §5.11")


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
    raise NotImplementedError("mixture_of_experts: handout §5.12")
