"""Checkpoints in the format of Hugging Face, loaded into the solution's models and compared.

The weights come from Hugging Face's own model, so the expected logits don't depend on our
conversion.
"""

import importlib
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cs336_basics.cached_decoding import cached_next_logits
from cs336_basics.causal_lm import CausalLM, TransformerTrunk
from cs336_basics.decoding import decode
from cs336_basics.transformer import TransformerLM
from labs.llama import load_hugging_face_llama
from staff.tests.solution.checks import normal

LIMIT = 1e-5  # the largest allowed error, as a share of the greatest logit
SHARED: dict[str, Any] = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
MINIMIND: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 352,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 6400,
    "rope_theta": 1e6,
    "rms_norm_eps": 1e-6,
}
SHAPES = {
    "one key head for two": SHARED,
    "one key head for all": {**SHARED, "num_key_value_heads": 1, "rope_theta": 500.0},
    "a key head for each": {**SHARED, "num_key_value_heads": 4},
    "MiniMind": MINIMIND,
}


@pytest.fixture(scope="module")
def llama() -> ModuleType:
    """Hugging Face's Llama module, imported here since the import takes seconds."""
    return importlib.import_module("transformers.models.llama.modeling_llama")


def _theirs(llama: ModuleType, shape: dict[str, Any]) -> Any:
    usual = {
        "vocab_size": 97,
        "intermediate_size": 176,
        "num_hidden_layers": 2,
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "attn_implementation": "eager",
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    model = llama.LlamaForCausalLM(llama.LlamaConfig(**{**usual, **shape})).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            values = torch.randn(parameter.shape, generator=generator)
            is_gain = parameter.ndim == 1
            parameter.copy_(1 + values / 4 if is_gain else values / parameter.shape[-1] ** 0.5)
    return model


def _sizes(theirs: Any) -> dict[str, Any]:
    config = theirs.config
    return {
        "vocab_size": config.vocab_size,
        "context_length": config.max_position_embeddings,
        "d_model": config.hidden_size,
        "num_layers": config.num_hidden_layers,
        "num_heads": config.num_attention_heads,
        "d_ff": config.intermediate_size,
        "rope_theta": config.rope_parameters["rope_theta"],
    }


def _ours(theirs: Any) -> CausalLM:
    config = theirs.config
    trunk = TransformerTrunk(
        **_sizes(theirs), num_kv_heads=config.num_key_value_heads, norm_eps=config.rms_norm_eps
    )
    model = CausalLM(trunk).eval()
    load_hugging_face_llama(
        model, theirs.state_dict(), config.num_attention_heads, config.num_key_value_heads
    )
    return model


def _ids(theirs: Any, batch: int = 2, seq: int = 48) -> Tensor:
    return normal(batch, seq, root=29).mul(10000).long() % theirs.config.vocab_size


def _relative_error(ours: Tensor, expected: Tensor) -> float:
    assert ours.shape == expected.shape
    return ((ours - expected).abs().max() / expected.abs().max()).item()


@pytest.mark.parametrize("shape", SHAPES)
@torch.no_grad()
def test_same_logits(llama: ModuleType, shape: str) -> None:
    """Catches wrongly shared heads, an unconverted RoPE layout, or an ignored eps or theta."""
    theirs = _theirs(llama, SHAPES[shape])
    ids = _ids(theirs)
    logits, loss = _ours(theirs)(ids, labels=ids)
    expected = theirs(ids, labels=ids, use_cache=False)
    assert _relative_error(logits, expected.logits) <= LIMIT
    torch.testing.assert_close(loss, expected.loss)


@torch.no_grad()
def test_transformer_lm_takes_a_llama_too(llama: ModuleType) -> None:
    """Catches a loader that works for `CausalLM` but not for `TransformerLM`."""
    theirs = _theirs(llama, SHAPES["a key head for each"])
    model = TransformerLM(**_sizes(theirs))
    load_hugging_face_llama(model, theirs.state_dict(), 4)
    expected = theirs(_ids(theirs), use_cache=False).logits
    assert _relative_error(model(_ids(theirs)), expected) <= LIMIT


@torch.no_grad()
def test_the_comparison_sees_the_layout(llama: ModuleType) -> None:
    """Catches a comparison of logits that passes although weight rows are wrongly ordered."""
    theirs = _theirs(llama, SHARED)
    model = _ours(theirs)
    load_hugging_face_llama(model, theirs.state_dict(), 4, 4)
    expected = theirs(_ids(theirs), use_cache=False).logits
    assert _relative_error(model(_ids(theirs))[0], expected) > 1000 * LIMIT


@pytest.mark.parametrize("shape", ["one key head for two", "MiniMind"])
@torch.no_grad()
def test_greedy_text_of_64_tokens(llama: ModuleType, shape: str) -> None:
    """Catches cached decoding with other tokens than those of Hugging Face's `generate`."""
    theirs = _theirs(llama, SHAPES[shape])
    prompt = _ids(theirs, 1, 9)
    expected = theirs.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=64,
        do_sample=False,
        use_cache=True,
    )[0, 9:].tolist()
    assert len(expected) == 64
    assert len(set(expected)) > 3
    next_logits = cached_next_logits(_ours(theirs))
    assert decode(next_logits, prompt[0].tolist(), 64, temperature=0) == expected


def test_a_tied_head_becomes_a_copy(llama: ModuleType) -> None:
    """Catches an output head that stays random if the checkpoint ties it to the embedding."""
    theirs = _theirs(llama, SHARED)
    state = {name: w for name, w in theirs.state_dict().items() if name != "lm_head.weight"}
    model = _ours(theirs)
    load_hugging_face_llama(model, state, 4, 2)
    head, table = model.lm_head.weight, model.trunk.token_embeddings.weight
    assert torch.equal(head, table)
    assert head is not table
    assert isinstance(head, nn.Parameter)


@pytest.mark.parametrize("name", ["model.layers.0.self_attn.q_proj.bias", "model.layers.x.mlp"])
def test_weights_without_a_place(llama: ModuleType, name: str) -> None:
    """Catches a loader that skips a weight of the checkpoint without an error."""
    theirs = _theirs(llama, SHARED)
    with pytest.raises(KeyError, match=f"our model has no weight for {name}"):
        load_hugging_face_llama(_ours(theirs), {**theirs.state_dict(), name: torch.ones(64)}, 4, 2)
    state = {**theirs.state_dict(), "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(8)}
    load_hugging_face_llama(_ours(theirs), state, 4, 2)
