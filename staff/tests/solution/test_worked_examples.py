"""The solution on examples that the handout and its sources compute by hand."""

import math

import pytest
import torch

from adapters import run_linear, run_rmsnorm, run_softmax
from cs336_basics.attention import MultiHeadSelfAttention
from cs336_basics.rope import RotaryEmbedding
from cs336_basics.transformer import TransformerLM
from staff.tests.solution.checks import agree, normal

TABLE = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def test_rmsnorm_table() -> None:
    """Catches LayerNorm, BatchNorm or a norm over all six numbers in place of RMSNorm.

    By hand: the mean squares are 14/3 and 77/3, so the roots are 2.160 and 5.066.
    """
    printed = torch.tensor([[0.463, 0.926, 1.389], [0.790, 0.987, 1.184]])
    y = run_rmsnorm(3, 0.0, torch.ones(3), TABLE)
    torch.testing.assert_close(y, printed, rtol=0, atol=5e-4)  # half of the last printed digit
    agree(y, TABLE / torch.tensor([[14 / 3], [77 / 3]]).sqrt())


def test_price() -> None:
    """Catches a bias or a transposed weight in a linear layer that computes the price of a flat.

    By hand: 100 m², 10 years old, 3rd floor, at 5, -2 and 0.5 each: 500 - 20 + 1.5 = 481.5.
    """
    price = run_linear(3, 1, torch.tensor([[5.0, -2.0, 0.5]]), torch.tensor([100.0, 10.0, 3.0]))
    assert price.tolist() == [481.5]


def test_softmax_of_large_numbers() -> None:
    """Catches a softmax of [1, 5, 100, 10000] that overflows: it is [0, 0, 0, 1]."""
    assert run_softmax(torch.tensor([1.0, 5.0, 100.0, 10000.0]), 0).tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("shift", [-1e4, 1e4])
def test_softmax_ignores_a_shift(shift: float) -> None:
    """Catches a softmax of [0, 1, 2] that changes when 10000 is added or subtracted."""
    total = 1 + math.e + math.e**2
    expected = torch.tensor([1 / total, math.e / total, math.e**2 / total])
    agree(run_softmax(torch.tensor([0.0, 1.0, 2.0]) + shift, 0), expected)


@pytest.mark.parametrize("m", [0, 1, 2, 127])
def test_rope_angles_of_four_features(m: int) -> None:
    """Catches frequencies other than 1 and 1/100 for four features, or a reversed rotation."""
    rope = RotaryEmbedding(10000.0, 4, 128, dtype=torch.float64)
    vectors = torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]], dtype=torch.float64)
    expected = [
        [math.cos(m), math.sin(m), math.cos(m / 100), math.sin(m / 100)],
        [-math.sin(m), math.cos(m), -math.sin(m / 100), math.cos(m / 100)],
    ]
    agree(rope(vectors, torch.tensor([m, m])), torch.tensor(expected, dtype=torch.float64))


def test_smoke_test_of_the_model() -> None:
    """Catches num_layers and num_heads exchanged, an ignored d_ff, or a softmax on the logits."""
    vocab, context, d_model, layers, heads, d_ff = 10000, 128, 128, 4, 8, 512
    model = TransformerLM(vocab, context, d_model, layers, heads, d_ff, 10000.0)
    attentions = [m for m in model.modules() if isinstance(m, MultiHeadSelfAttention)]
    counted = sum(parameter.numel() for parameter in model.parameters())
    block = 4 * d_model**2 + 3 * d_model * d_ff + 2 * d_model
    assert counted == 2 * vocab * d_model + layers * block + d_model
    assert [m.num_heads for m in attentions] == [heads] * layers
    with torch.no_grad():
        logits = model((normal(2, 16, root=2) * 1e4).long() % vocab)
    assert logits.shape == (2, 16, vocab)
    assert logits.isfinite().all()
    assert logits.min() < 0 < logits.max()
