"""What several test files need."""

from __future__ import annotations

from torch import Tensor

BLOCK_KEYS = {
    "norm1": "ln1.weight",
    "wq": "attn.q_proj.weight",
    "wk": "attn.k_proj.weight",
    "wv": "attn.v_proj.weight",
    "wo": "attn.output_proj.weight",
    "norm2": "ln2.weight",
    "w1": "ffn.w1.weight",
    "w2": "ffn.w2.weight",
    "w3": "ffn.w3.weight",
}


def pick_block(weights: dict[str, Tensor], prefix: str = "") -> dict[str, Tensor]:
    """Collect the weights of one block under the names that my functions use."""
    return {mine: weights[prefix + theirs] for mine, theirs in BLOCK_KEYS.items()}
