"""Functions and layers of the solution, compared with those of Hugging Face transformers."""

import importlib
from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from adapters import run_causal_lm_loss
from cs336_basics.decoding import decode
from cs336_basics.mixture_of_experts import MixtureOfExperts
from cs336_basics.rope_conversion import adjacent_to_half_split
from cs336_basics.rope_half_split import HalfSplitRotaryEmbedding
from staff.tests.solution.checks import normal

LOGITS = normal(40, root=3) * 2
DRAWS = 4000


@pytest.mark.parametrize("start", [0, 5, 300])
def test_half_split_rope(start: int) -> None:
    """Catches half-split RoPE that differs from the RoPE of Hugging Face's Llama."""
    llama = importlib.import_module("transformers.models.llama.modeling_llama")
    config = llama.LlamaConfig(hidden_size=32, num_attention_heads=2, head_dim=16, rope_theta=500.0)
    q, k = normal(2, 2, 6, 16, root=2), normal(2, 1, 6, 16, root=3)
    cos, sin = llama.LlamaRotaryEmbedding(config)(q, torch.arange(start, start + 6)[None])
    theirs = llama.apply_rotary_pos_emb(q, k, cos, sin)
    ours = HalfSplitRotaryEmbedding(500.0, 16)(q, k, start)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-4 if start > 100 else 1e-5)


def test_conversion_of_weights() -> None:
    """Catches a row order that differs from the order of Llama's published weights.

    The script that converted them views a weight as `(heads, d_head/2, 2, d_in)` and exchanges
    the two middle axes.
    """
    weight = normal(12, 5, root=2)
    published = weight.view(2, 3, 2, 5).transpose(1, 2).reshape(12, 5)
    assert torch.equal(adjacent_to_half_split(weight, 2), published)
    assert torch.equal(adjacent_to_half_split(weight[:, 0], 2), published[:, 0])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_causal_loss(dtype: torch.dtype) -> None:
    """Catches a loss that differs from Hugging Face's in its shift, its mean or its precision."""
    theirs = importlib.import_module("transformers.loss.loss_utils").ForCausalLMLoss
    logits = (3 * normal(3, 6, 9, root=2)).to(dtype)
    labels = normal(3, 6, root=3).mul(100).long() % 9
    labels[1, 2:4] = -100
    found = run_causal_lm_loss(logits, labels)
    assert found.dtype == torch.promote_types(dtype, torch.float32)
    torch.testing.assert_close(found.float(), theirs(logits, labels, vocab_size=9))


@pytest.mark.parametrize("sizes", [(4, 2), (5, 1), (3, 3)], ids=str)
@torch.no_grad()
def test_mixture_of_mixtral(sizes: tuple[int, int]) -> None:
    """Catches an output that differs from Mixtral's, or a loss that isn't Mixtral's / top_k."""
    mixtral = importlib.import_module("transformers.models.mixtral.modeling_mixtral")
    num_experts, top_k = sizes
    layer, x = MixtureOfExperts(8, 6, num_experts, top_k), normal(3, 7, 8, root=2)
    config = mixtral.MixtralConfig(
        hidden_size=8,
        intermediate_size=6,
        num_local_experts=num_experts,
        num_experts_per_tok=top_k,
        experts_implementation="eager",
    )
    theirs = mixtral.MixtralSparseMoeBlock(config).eval()
    router = layer.get_parameter("router.weight")
    theirs.gate.weight.copy_(router)
    for i in range(num_experts):
        w1, w2, w3 = (layer.get_parameter(f"experts.{i}.w{n}.weight") for n in (1, 2, 3))
        theirs.experts.gate_up_proj[i].copy_(torch.cat([w1, w3]))
        theirs.experts.down_proj[i].copy_(w2)
    output, loss = layer(x)
    expected = theirs(x)
    torch.testing.assert_close(output, expected[0] if isinstance(expected, tuple) else expected)
    scores = (F.linear(x, router).flatten(0, 1),)
    balance = mixtral.load_balancing_loss_func(scores, num_experts, top_k)
    torch.testing.assert_close(loss, balance / top_k)


def _processed(temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
    """Return the distribution that transformers samples from, with its own processors."""
    process = importlib.import_module("transformers.generation.logits_process")
    scores, ids = LOGITS.double().unsqueeze(0), torch.zeros(1, 1, dtype=torch.long)
    processors = [process.TemperatureLogitsWarper(temperature)]
    processors += [process.TopKLogitsWarper(top_k)] if top_k else []
    processors += [process.TopPLogitsWarper(top_p)] if top_p else []
    for processor in processors:
        scores = processor(ids, scores)
    return scores.softmax(-1)[0]


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, None, None), (0.5, None, None), (2.0, 7, None), (1.5, None, 0.7), (1.3, 9, 0.8)],
)
def test_decoding(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Catches `decode` drawing other tokens or frequencies than Hugging Face transformers."""
    expected = _processed(temperature, top_k, top_p)
    drawn = decode(lambda _: LOGITS.unsqueeze(0), [0], DRAWS, temperature, top_k, top_p, seed=11)
    counts = torch.tensor([Counter(drawn)[i] for i in range(40)])
    assert set(drawn) <= set(expected.nonzero().flatten().tolist())
    deviation = (counts - DRAWS * expected).abs()
    assert (deviation <= 5.5 * (DRAWS * expected * (1 - expected)).sqrt() + 3).all()
