"""What the solution's modules save, load and learn."""

import pytest
import torch
from torch import Tensor

from adapters import run_transformer_lm
from cs336_basics.rope import RotaryEmbedding
from cs336_basics.transformer import TransformerLM
from staff.tests.solution.checks import normal

VOCAB, CONTEXT, D_MODEL, LAYERS, HEADS, D_FF = 11, 6, 8, 2, 2, 12
ARGUMENTS = (VOCAB, CONTEXT, D_MODEL, LAYERS, HEADS, D_FF, 10000.0)


def _shapes() -> dict[str, tuple[int, ...]]:
    """Give the names and shapes of the adapter contract, written out."""
    block = {
        "attn.q_proj.weight": (D_MODEL, D_MODEL),
        "attn.k_proj.weight": (D_MODEL, D_MODEL),
        "attn.v_proj.weight": (D_MODEL, D_MODEL),
        "attn.output_proj.weight": (D_MODEL, D_MODEL),
        "ln1.weight": (D_MODEL,),
        "ln2.weight": (D_MODEL,),
        "ffn.w1.weight": (D_FF, D_MODEL),
        "ffn.w2.weight": (D_MODEL, D_FF),
        "ffn.w3.weight": (D_FF, D_MODEL),
    }
    shapes = {f"layers.{i}.{name}": shape for i in range(LAYERS) for name, shape in block.items()}
    ends = {"token_embeddings.weight": (VOCAB, D_MODEL), "lm_head.weight": (VOCAB, D_MODEL)}
    return shapes | ends | {"ln_final.weight": (D_MODEL,)}


def _weights() -> dict[str, Tensor]:
    return {name: normal(*shape, root=2) for name, shape in _shapes().items()}


def test_names_and_shapes() -> None:
    """Catches a renamed weight, a bias, a saved RoPE table, and layers that share their weights."""
    model = TransformerLM(*ARGUMENTS)
    saved = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    learned = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert saved == learned == _shapes()
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_rope_saves_and_learns_nothing() -> None:
    """Catches tables that are parameters or persistent buffers: an old checkpoint couldn't load."""
    rope = RotaryEmbedding(10000.0, 4, 6)
    assert not rope.state_dict()
    assert not list(rope.parameters())
    assert list(rope.buffers())


def test_every_weight_matters() -> None:
    """Catches a weight that is loaded and then not used: each must move the logits by itself."""
    ids = torch.tensor([[1, 7, 3, 10]])
    logits = run_transformer_lm(*ARGUMENTS, _weights(), ids)
    for name in _shapes():
        weights = _weights()
        weights[name] = weights[name] * 1.5 + 0.1
        assert not torch.allclose(run_transformer_lm(*ARGUMENTS, weights, ids), logits), name


@pytest.mark.parametrize("name", ["lm_head.weight", "layers.1.ffn.w2.weight", "ln_final.weight"])
def test_missing_weight_is_an_error(name: str) -> None:
    """Catches loading that isn't strict: a missing weight would be left at random numbers."""
    weights = _weights()
    del weights[name]
    with pytest.raises(RuntimeError, match=f'Missing key.*"{name}"'):
        run_transformer_lm(*ARGUMENTS, weights, torch.tensor([[0]]))


def test_surplus_weight_is_an_error() -> None:
    """Catches loading that drops what it doesn't know, such as the third of two layers."""
    weights = _weights() | {"layers.2.ln1.weight": torch.ones(D_MODEL)}
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"layers\.2\.ln1\.weight"'):
        run_transformer_lm(*ARGUMENTS, weights, torch.tensor([[0]]))


def test_saved_weights_give_the_same_model() -> None:
    """Catches state that is not saved: a second model with the first one's weights must agree."""
    first, second = TransformerLM(*ARGUMENTS), TransformerLM(*ARGUMENTS)
    ids = torch.tensor([[1, 7, 3, 10]])
    assert not torch.allclose(first(ids), second(ids))
    second.load_state_dict(first.state_dict(), strict=True)
    assert torch.equal(first(ids), second(ids))
