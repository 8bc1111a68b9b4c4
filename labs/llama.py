"""Load a Llama checkpoint in Hugging Face's format into your own model.

    from labs.llama import load_hugging_face_llama
    load_hugging_face_llama(model, state_dict, num_heads=32, num_kv_heads=4)

Such checkpoints use other names for the weights, and their RoPE pairs feature j of a head with
feature j + d_head/2 (§5.6). Everything else is as in the model of §2.12 or §5.10.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from cs336_basics.rope_conversion import half_split_to_adjacent

_TOP = {
    "model.embed_tokens.weight": "token_embeddings.weight",
    "model.norm.weight": "ln_final.weight",
}
_BLOCK = {
    "input_layernorm.weight": "ln1.weight",
    "self_attn.q_proj.weight": "attn.q_proj.weight",
    "self_attn.k_proj.weight": "attn.k_proj.weight",
    "self_attn.v_proj.weight": "attn.v_proj.weight",
    "self_attn.o_proj.weight": "attn.output_proj.weight",
    "post_attention_layernorm.weight": "ln2.weight",
    "mlp.gate_proj.weight": "ffn.w1.weight",
    "mlp.down_proj.weight": "ffn.w2.weight",
    "mlp.up_proj.weight": "ffn.w3.weight",
}


def load_hugging_face_llama(
    model: nn.Module,
    state_dict: Mapping[str, Tensor],
    num_heads: int,
    num_kv_heads: int | None = None,
) -> None:
    """Load a Llama into a `CausalLM`, or into a `TransformerLM` if no head is shared.

    The model must have been made with the checkpoint's sizes, `rope_theta` and eps. In a
    checkpoint without `lm_head.weight` the head is tied to the embedding; here the head becomes a
    copy of the embedding.

    Args:
        model: the model that gets the weights.
        state_dict: the checkpoint, with the names of Hugging Face's `LlamaForCausalLM`.
        num_heads: number of query heads.
        num_kv_heads: number of key/value heads; None means `num_heads`.

    Raises:
        KeyError: the checkpoint holds a weight that the model doesn't have.
        RuntimeError: a weight is missing or has another shape.
    """
    trunk = "trunk." if hasattr(model, "trunk") else ""
    head = state_dict.get("lm_head.weight", state_dict["model.embed_tokens.weight"])
    weights = {"lm_head.weight": head}
    for name, weight in state_dict.items():
        if name == "lm_head.weight" or name.endswith("rotary_emb.inv_freq"):
            continue  # old checkpoints hold the frequencies, which theta already determines
        if name.endswith("q_proj.weight"):
            weight = half_split_to_adjacent(weight, num_heads)
        elif name.endswith("k_proj.weight"):
            weight = half_split_to_adjacent(weight, num_kv_heads or num_heads)
        weights[trunk + _renamed(name)] = weight
    model.load_state_dict(weights, strict=True)


def _renamed(name: str) -> str:
    if name in _TOP:
        return _TOP[name]
    layer, _, rest = name.removeprefix("model.layers.").partition(".")
    if not layer.isdecimal() or rest not in _BLOCK:
        raise KeyError(
            f"our model has no weight for {name}; only a Llama without biases can be loaded"
        )
    return f"layers.{layer}.{_BLOCK[rest]}"
