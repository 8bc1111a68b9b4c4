"""The solution's whole model, compared with Hugging Face's Llama on the same weights.

The two models differ in one thing: Hugging Face's Llama rotates feature k with feature k + d/2, and
the solution rotates feature 2k with 2k + 1. So the rows of query and key weights are reordered
within each head.
"""

import importlib
import logging
from types import ModuleType

import pytest
import torch
from torch import Tensor

from cs336_basics.transformer import TransformerLM
from staff.tests.solution.checks import normal

VOCAB, CONTEXT, D_MODEL, LAYERS, HEADS, D_FF, EPS = 97, 40, 64, 2, 4, 176, 1e-5
LOGGER = logging.getLogger(__name__)  # `--log-cli-level=info` shows the measured errors
LIMIT = 1e-5  # float32 error after two layers, as a share of the greatest logit
NAMES = {
    "input_layernorm": "ln1",
    "self_attn.q_proj": "attn.q_proj",
    "self_attn.k_proj": "attn.k_proj",
    "self_attn.v_proj": "attn.v_proj",
    "self_attn.o_proj": "attn.output_proj",
    "post_attention_layernorm": "ln2",
    "mlp.gate_proj": "ffn.w1",
    "mlp.down_proj": "ffn.w2",
    "mlp.up_proj": "ffn.w3",
}


@pytest.fixture(scope="module")
def llama() -> ModuleType:
    """Hugging Face's Llama module, imported here since the import takes seconds."""
    return importlib.import_module("transformers.models.llama.modeling_llama")


def _ids() -> Tensor:
    return normal(2, 32, root=29).mul(1000).long() % VOCAB


def _solution(theta: float, embedding_scale: float) -> TransformerLM:
    """Return a model in which all parameters, including the gains, have different values."""
    model = TransformerLM(VOCAB, CONTEXT, D_MODEL, LAYERS, HEADS, D_FF, theta)
    flat = normal(sum(p.numel() for p in model.parameters()), root=2)
    parts = flat.split([p.numel() for p in model.parameters()])
    with torch.no_grad():
        for parameter, part in zip(model.parameters(), parts, strict=True):
            values = part.reshape(parameter.shape)
            is_gain = parameter.ndim == 1
            parameter.copy_(1 + values / 4 if is_gain else values / parameter.shape[-1] ** 0.5)
        model.get_parameter("token_embeddings.weight").mul_(embedding_scale * D_MODEL**0.5)
    return model


def _half_split(weight: Tensor) -> Tensor:
    """Move the rows 2k and 2k + 1 of every head to k and k + d/2."""
    return weight.reshape(HEADS, -1, 2, D_MODEL).transpose(1, 2).reshape(D_MODEL, D_MODEL)


def _as_llama(ours: dict[str, Tensor], *, convert_rope: bool = True) -> dict[str, Tensor]:
    theirs = {
        "model.embed_tokens.weight": ours["token_embeddings.weight"],
        "model.norm.weight": ours["ln_final.weight"],
        "lm_head.weight": ours["lm_head.weight"],
    }
    for layer in range(LAYERS):
        for their_name, our_name in NAMES.items():
            weight = ours[f"layers.{layer}.{our_name}.weight"]
            if convert_rope and our_name in ("attn.q_proj", "attn.k_proj"):
                weight = _half_split(weight)
            theirs[f"model.layers.{layer}.{their_name}.weight"] = weight
    return theirs


def _llama_logits(llama: ModuleType, theta: float, weights: dict[str, Tensor]) -> Tensor:
    config = llama.LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=D_MODEL,
        intermediate_size=D_FF,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=CONTEXT,
        rms_norm_eps=EPS,
        rope_theta=theta,
        attn_implementation="eager",
    )
    model = llama.LlamaForCausalLM(config).eval()
    model.load_state_dict(weights, strict=True)
    with torch.no_grad():
        return model(_ids(), use_cache=False).logits


def _relative_error(actual: Tensor, expected: Tensor) -> float:
    assert actual.shape == expected.shape == (2, 32, VOCAB)
    return ((actual - expected).abs().max() / expected.abs().max()).item()


@pytest.mark.parametrize("theta", [10000.0, 500000.0, 50.0])
@pytest.mark.parametrize("embedding_scale", [1.0, 3e-3], ids=["usual", "size-of-eps"])
def test_same_logits(llama: ModuleType, theta: float, embedding_scale: float) -> None:
    """Catches logits that differ from Llama's on the same weights.

    With small embeddings, a wrong eps changes the logits visibly.
    """
    ours = _solution(theta, embedding_scale)
    expected = _llama_logits(llama, theta, _as_llama(ours.state_dict()))
    with torch.no_grad():
        error = _relative_error(ours(_ids()), expected)
    LOGGER.info("%.1e of the greatest logit, at theta %g, x %g", error, theta, embedding_scale)
    assert error <= LIMIT


def test_the_comparison_sees_rope(llama: ModuleType) -> None:
    """Catches a comparison of logits that passes although the RoPE layouts differ."""
    ours = _solution(10000.0, 1.0)
    unlike = _llama_logits(llama, 10000.0, _as_llama(ours.state_dict(), convert_rope=False))
    with torch.no_grad():
        assert _relative_error(ours(_ids()), unlike) > 1000 * LIMIT
