"""Grouped queries, loss, dropout, cache and mixture against PyTorch and Hugging Face."""

import importlib
import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck

from adapters import run_cached_forward, run_causal_lm_loss
from cs336_basics.causal_lm import CausalLM, TransformerTrunk
from cs336_basics.grouped_query_attention import GroupedQueryAttention
from cs336_basics.kv_cache import KVCache
from cs336_basics.mixture_of_experts import MixtureOfExperts
from cs336_basics.rope import RotaryEmbedding
from staff.tests.solution.checks import agree, normal, rotate_as_complex

F64 = torch.float64


def _fill(module: torch.nn.Module, root: int = 2) -> None:
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            values = normal(*parameter.shape, root=root + 4 * i + 1, dtype=parameter.dtype)
            gain = parameter.ndim == 1
            parameter.copy_(1 + values / 4 if gain else values / parameter.shape[-1] ** 0.5)


def _model(dtype: torch.dtype = F64) -> CausalLM:
    model = CausalLM(TransformerTrunk(11, 12, 16, 2, 4, 2, 12, 100.0, dtype=dtype))
    _fill(model)
    return model.eval()


@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (4, 1), (6, 3)], ids=str)
def test_grouped_queries(heads: tuple[int, int]) -> None:
    """Catches another order of sharing, by PyTorch's own (`enable_gqa`), and gradients cut."""
    (num_heads, num_kv_heads), d_model, theta = heads, 24, 50.0
    rope = RotaryEmbedding(theta, d_model // num_heads, 9, dtype=F64)
    layer = GroupedQueryAttention(d_model, num_heads, num_kv_heads, rope, dtype=F64)
    _fill(layer)
    x, positions = normal(2, 5, d_model, root=3, dtype=F64), torch.tensor([0, 2, 3, 7, 8])
    q, k, v = (
        F.linear(x, proj.weight).unflatten(-1, (n, -1)).transpose(1, 2)
        for proj, n in (
            (layer.q_proj, num_heads),
            (layer.k_proj, num_kv_heads),
            (layer.v_proj, num_kv_heads),
        )
    )
    q, k = (rotate_as_complex(part, positions, theta) for part in (q, k))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    expected = F.linear(mixed.transpose(1, 2).flatten(2), layer.output_proj.weight)
    agree(layer(x, positions), expected)
    assert gradcheck(layer, (x[:1, :2].detach().requires_grad_(),))


@pytest.mark.parametrize("heads", [(3, 1), (4, 3), (2, 4)], ids=str)
def test_heads_that_cannot_be_shared(heads: tuple[int, int]) -> None:
    """Catches features or heads that are cut off without a word."""
    with pytest.raises(ValueError, match=r"must divide (d_model|num_heads); \d does not divide"):
        GroupedQueryAttention(8, *heads)


@pytest.mark.parametrize("dtype", [F64, torch.float32, torch.bfloat16], ids=str)
def test_the_loss_of_hugging_face(dtype: torch.dtype) -> None:
    """Catches another shift, another mean, or a loss in half precision."""
    theirs = importlib.import_module("transformers.loss.loss_utils").ForCausalLMLoss
    logits = (3 * normal(3, 6, 9, root=2)).to(dtype)
    labels = normal(3, 6, root=3).mul(100).long() % 9
    labels[1, 2:4] = -100
    found = run_causal_lm_loss(logits, labels)
    assert found.dtype == torch.promote_types(dtype, torch.float32)
    torch.testing.assert_close(found.float(), theirs(logits, labels, vocab_size=9))


def test_a_loss_of_nothing() -> None:
    """Catches the NaN of a mean over nothing, also where a logit is infinite."""
    logits = torch.full((2, 3, 4), torch.inf, requires_grad=True)
    loss = run_causal_lm_loss(logits, torch.full((2, 3), -100))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.item() == 0
    assert not gradient.any()


@pytest.mark.parametrize("cuts", range(32))
@torch.no_grad()
def test_every_way_to_cut_six_tokens(cuts: int) -> None:
    """Catches a mask or a position that is right for some sizes of chunks only, in float64."""
    model = _model()
    ids = normal(2, 6, root=3).mul(100).long() % 11
    starts = [0, *(i + 1 for i in range(5) if cuts >> i & 1), 6]
    sizes = [stop - start for start, stop in itertools.pairwise(starts)]
    settings = (11, 12, 16, 2, 4, 2, 12, 100.0)
    found = run_cached_forward(*settings, model.state_dict(), ids, sizes, max_cached=6)
    agree(found, model(ids)[0])


def test_a_cache_without_gradients() -> None:
    """Catches a graph that grows with every token, and with it the memory."""
    cache = KVCache(4)
    keys = torch.ones(1, 1, 2, 3, requires_grad=True)
    for _ in range(2):
        seen = cache.append(2 * keys, keys)
    assert not any(part.requires_grad for part in seen)
    assert seen[0].untyped_storage().data_ptr() == seen[1].untyped_storage().data_ptr()


def test_another_batch_without_a_reset() -> None:
    """Catches rows that are spread over another batch, or dropped."""
    cache = KVCache(4)
    cache.append(torch.ones(3, 2, 1, 4), torch.ones(3, 2, 1, 4))
    other = torch.ones(1, 2, 1, 4)
    with pytest.raises(ValueError, match="reset it before another batch"):
        cache.append(other, other)
    assert cache.length == 1
    with pytest.raises(IndexError, match="room for 4 tokens and holds 1; 4 more don't fit"):
        cache.append(torch.ones(3, 2, 4, 4), torch.ones(3, 2, 4, 4))


def test_dropout_keeps_the_mean() -> None:
    """Catches what is kept left unscaled: over many draws the embeddings' mean stays 1."""
    trunk = TransformerTrunk(3, 4, 200, 0, 2, 1, 8, 100.0, dropout=0.3, norm_eps=1e8)
    with torch.no_grad():
        trunk.token_embeddings.weight.fill_(1)
    torch.manual_seed(0)
    values = trunk(torch.zeros(100, 4, dtype=torch.long)).detach() * 1e4
    assert values.mean().item() == pytest.approx(1, abs=0.01)
    assert (values == 0).double().mean().item() == pytest.approx(0.3, abs=0.01)
    assert torch.equal(trunk.eval()(torch.tensor([[0]])) > 0, torch.ones(1, 1, 200) > 0)


def _mixture(
    num_experts: int, top_k: int, dtype: torch.dtype = torch.float32
) -> tuple[MixtureOfExperts, Tensor]:
    layer = MixtureOfExperts(8, 6, num_experts, top_k, dtype=dtype)
    _fill(layer)
    return layer, normal(3, 7, 8, root=2, dtype=dtype)


@pytest.mark.parametrize("sizes", [(4, 2), (5, 1), (3, 3)], ids=str)
@torch.no_grad()
def test_the_mixture_of_mixtral(sizes: tuple[int, int]) -> None:
    """Catches other gates, other experts, and a loss other than Mixtral's divided by top_k."""
    mixtral = importlib.import_module("transformers.models.mixtral.modeling_mixtral")
    num_experts, top_k = sizes
    layer, x = _mixture(num_experts, top_k)
    config = mixtral.MixtralConfig(
        hidden_size=8,
        intermediate_size=6,
        num_local_experts=num_experts,
        num_experts_per_tok=top_k,
        experts_implementation="eager",
    )
    theirs = mixtral.MixtralSparseMoeBlock(config).eval()
    theirs.gate.weight.copy_(layer.router.weight)
    for i, expert in enumerate(layer.experts):
        both = torch.cat([expert.w1.weight, expert.w3.weight])
        theirs.experts.gate_up_proj[i].copy_(both)
        theirs.experts.down_proj[i].copy_(expert.w2.weight)
    output, loss = layer(x)
    expected = theirs(x)
    torch.testing.assert_close(output, expected[0] if isinstance(expected, tuple) else expected)
    scores = (F.linear(x, layer.router.weight).flatten(0, 1),)
    balance = mixtral.load_balancing_loss_func(scores, num_experts, top_k)
    torch.testing.assert_close(loss, balance / top_k)


def test_top_1_with_renormalisation_starves_the_router() -> None:
    """Catches a handout that claims what isn't so: with one expert the gate is 1, its slope 0."""
    for top_k, starved in ((1, True), (2, False)):
        layer, x = _mixture(4, top_k, F64)
        output, loss = layer(x)
        weight = layer.router.weight
        pulled = (output * normal(3, 7, 8, root=3, dtype=F64)).sum()
        (gradient,) = torch.autograd.grad(pulled, weight, retain_graph=True)
        assert (gradient.abs().max().item() < 1e-12) == starved
        (gradient,) = torch.autograd.grad(loss, weight)
        assert gradient.abs().max().item() > 1e-3


@pytest.mark.parametrize("top_k", [0, -1, 5])
def test_top_k_outside_the_experts(top_k: int) -> None:
    """Catches a mixture of nothing, and a choice of more experts than there are."""
    with pytest.raises(ValueError, match=f"top_k must be between 1 and 4; it is {top_k}"):
        MixtureOfExperts(8, 6, 4, top_k)
