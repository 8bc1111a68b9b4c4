"""The numbers the solution starts from, against the closed formulas of a truncated normal.

Nothing is seeded: a limit of six standard errors is passed by chance once in 500 million runs.
"""

import math

import pytest
import torch
from torch import Tensor

from cs336_basics.embedding import Embedding
from cs336_basics.linear import Linear
from cs336_basics.rmsnorm import RMSNorm
from cs336_basics.transformer import TransformerLM

CUT = 3.0
INSIDE = math.erf(CUT / math.sqrt(2))  # the mass of a normal within ±3 standard deviations
DENSITY = math.exp(-(CUT**2) / 2) / math.sqrt(2 * math.pi)
VARIANCE = 1 - 2 * CUT * DENSITY / INSIDE  # of what is left when the tails are cut: 0.973
FOURTH_MOMENT = 3 * VARIANCE - 2 * CUT**3 * DENSITY / INSIDE
STANDARD_ERRORS = 6


def _check(weight: Tensor, std: float) -> None:
    """Compare mean, variance, the mass within one `std` and the cut with those of the theory."""
    z = weight.detach().double().flatten() / std
    error = STANDARD_ERRORS / math.sqrt(z.numel())
    assert abs(z.mean().item()) < error * math.sqrt(VARIANCE)
    spread = math.sqrt(FOURTH_MOMENT - VARIANCE**2)
    assert abs(z.square().mean().item() - VARIANCE) < error * spread
    within = math.erf(1 / math.sqrt(2)) / INSIDE
    counted = (z.abs() < 1).double().mean().item()
    assert abs(counted - within) < error * math.sqrt(within * (1 - within))
    # The cut is rounded to the weight's dtype, and a sample this large must come near it.
    assert 0.95 * CUT < z.abs().max().item() <= CUT * (1 + torch.finfo(weight.dtype).eps)


@pytest.mark.parametrize(("d_in", "d_out"), [(1000, 300), (300, 1000), (512, 512)])
def test_linear(d_in: int, d_out: int) -> None:
    """Catches the variance in place of its root, a cut at ±3 rather than ±3 std, and no cut."""
    _check(Linear(d_in, d_out).weight, math.sqrt(2 / (d_in + d_out)))


def test_embedding() -> None:
    """Catches a standard deviation that depends on the size, and a normal that isn't cut."""
    _check(Embedding(2000, 200).weight, 1.0)


def test_rmsnorm() -> None:
    """Catches a gain that starts anywhere but at ones."""
    assert torch.equal(RMSNorm(7).weight, torch.ones(7))


def test_model() -> None:
    """Catches layers that start from equal numbers, a re-initialisation, and tied weights."""
    d_model, d_ff, vocab = 64, 192, 500
    model = TransformerLM(vocab, 8, d_model, 2, 4, d_ff, 10000.0)
    stds = dict.fromkeys(("w1", "w2", "w3"), math.sqrt(2 / (d_model + d_ff)))
    for name in ("q_proj", "k_proj", "v_proj", "output_proj"):
        stds[name] = math.sqrt(1 / d_model)
    _check(model.token_embeddings.weight, 1.0)
    _check(model.lm_head.weight, math.sqrt(2 / (d_model + vocab)))
    for layer in model.layers:
        for name, parameter in layer.named_parameters():
            if parameter.ndim == 2:
                _check(parameter, stds[name.split(".")[-2]])
    starts = {tuple(p.flatten()[:4].tolist()) for p in model.parameters() if p.ndim == 2}
    assert len(starts) == 2 + 2 * 7
