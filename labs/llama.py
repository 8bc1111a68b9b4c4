"""A Llama in the format of Hugging Face, in your own model.

    from labs.llama import load_hugging_face_llama
    load_hugging_face_llama(model, state_dict, num_heads=32, num_kv_heads=4)

Checkpoints of that format name their weights otherwise, and their RoPE pairs feature j of a head
with feature j + d_head/2 (§5.6). Everything else is the model of §2.12 or §5.10.
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
    """Load a Llama into a `CausalLM`, or into a `TransformerLM` where no head is shared.

    The model must have been made with the checkpoint's sizes, `rope_theta` and eps. A checkpoint
    without `lm_head.weight` has its head tied to the embedding; the head becomes a copy of it.

    Args:
        model: takes the weights.
        state_dict: the checkpoint's, as Hugging Face's `LlamaForCausalLM` names it.
        num_heads: number of query heads.
        num_kv_heads: number of key/value heads; None for as many.

    Raises:
        KeyError: the checkpoint holds a weight that the model has no place for.
        RuntimeError: a weight is missing or has another shape.
    """
    trunk = "trunk." if hasattr(model, "trunk") else ""
    head = state_dict.get("lm_head.weight", state_dict["model.embed_tokens.weight"])
    weights = {"lm_head.weight": head}
    for name, weight in state_dict.items():
        if name == "lm_head.weight" or name.endswith("rotary_emb.inv_freq"):
            continue  # the frequencies follow from theta; old checkpoints hold them all the same
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
        raise KeyError(f"no weight of our model is like {name}; is it a Llama without biases?")
    return f"layers.{layer}.{_BLOCK[rest]}"
