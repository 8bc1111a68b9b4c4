"""Attention: masks and positions that broadcast, and gradients of fully masked queries."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from adapters import run_multihead_self_attention_with_rope
from cs336_basics.attention import scaled_dot_product_attention
from staff.tests.solution.checks import agree, normal, rotate_as_complex

F64 = torch.float64
QUERIES, KEYS, D_MODEL, HEADS, THETA = 4, 6, 12, 3, 500.0


def _qkv(*leading: int) -> tuple[Tensor, Tensor, Tensor]:
    return (
        normal(*leading, QUERIES, 5, root=2, dtype=F64),
        normal(*leading, KEYS, 5, root=3, dtype=F64),
        normal(*leading, KEYS, 7, root=5, dtype=F64),
    )


def _mask(*leading: int) -> Tensor:
    """Return a mask in which every query sees its own key and about half of the others."""
    own = torch.eye(QUERIES, KEYS, dtype=torch.bool)
    return own | (normal(*leading, QUERIES, KEYS, root=7) > 0)


@pytest.mark.parametrize("leading", [(3,), (1, 3), (2, 1), (2, 3)], ids=str)
def test_mask_broadcasts(leading: tuple[int, ...]) -> None:
    """Catches a mask with fewer or smaller leading axes that isn't broadcast to the scores."""
    q, k, v = _qkv(2, 3)
    mask = _mask(*leading)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    agree(scaled_dot_product_attention(q, k, v, mask), expected)


@pytest.mark.parametrize("shape", [(3, 5), (1, 5), (2, 1, 5), (2, 3, 5)], ids=str)
def test_positions_broadcast(shape: tuple[int, ...]) -> None:
    """Catches token positions that are broadcast against the heads, not against the batch."""
    x = normal(2, 3, 5, D_MODEL, root=2, dtype=F64)
    positions = normal(*shape, root=13).mul(100).long() % 64
    Wq, Wk, Wv, Wo = normal(4, D_MODEL, D_MODEL, root=3, dtype=F64) / D_MODEL**0.5
    answer = run_multihead_self_attention_with_rope(
        D_MODEL, HEADS, 64, THETA, Wq, Wk, Wv, Wo, x, token_positions=positions
    )
    q, k, v = (F.linear(x, w).unflatten(-1, (HEADS, -1)).transpose(-2, -3) for w in (Wq, Wk, Wv))
    q, k = (rotate_as_complex(part, positions.unsqueeze(-2), THETA) for part in (q, k))
    heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    agree(answer, F.linear(heads.transpose(-2, -3).flatten(-2), Wo))


def test_a_blind_query_might_as_well_be_absent() -> None:
    """Catches a fully masked query that changes a gradient of queries, keys or values."""
    q, k, v = (part.requires_grad_() for part in _qkv(2))
    mask = _mask()
    mask[1] = False
    gradients = torch.autograd.grad(scaled_dot_product_attention(q, k, v, mask).sum(), (q, k, v))
    seeing = mask.any(-1)
    alone = F.scaled_dot_product_attention(q[:, seeing], k, v, attn_mask=mask[seeing])
    wanted = torch.autograd.grad(alone.sum(), (q, k, v))
    for gradient, expected in zip(gradients, wanted, strict=True):
        agree(gradient, expected)
    assert torch.equal(gradients[0][:, 1], torch.zeros(2, 5, dtype=F64))
