"""The glue: each adapter runs your implementation on the weights and inputs it is given.

The tests reach your code through these functions and nothing else. Build your module, load the
weights into it, call it, return what it gives; there should be nothing clever here. `...` in an
annotation stands for any number of leading axes, also none.
"""

import os
from collections.abc import Mapping
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor

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
    """Look the ids up in your embedding, whose table is given."""
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
    """Rotate queries or keys by their positions, adjacent features being a pair."""
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
    """The same with RoPE on queries and keys; the positions default to `0 … seq-1`."""
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


def run_train_bpe(
    input_path: str | os.PathLike[str], vocab_size: int, special_tokens: list[str], **kwargs: Any
) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    """Train your tokenizer on a file; give its vocabulary and its merges.

    `kwargs` are further arguments of your own, such as `num_processes`.
    """
    raise NotImplementedError("train_bpe: handout §4.2")


def get_tokenizer(
    vocab: dict[int, bytes],
    merges: list[tuple[bytes, bytes]],
    special_tokens: list[str] | None = None,
) -> Tokenizer:
    """Build your tokenizer from a vocabulary and merges."""
    raise NotImplementedError("tokenizer: handout §4.3")
