"""The solution's multi-head self-attention against `torch.nn.functional`, without and with RoPE."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from adapters import run_multihead_self_attention, run_multihead_self_attention_with_rope
from staff.tests.solution.checks import agree, normal, rotate_as_complex

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
D_MODEL = 12
THETA = 500.0
Weights = tuple[Tensor, Tensor, Tensor, Tensor]


def _weight(root: int, dtype: torch.dtype) -> Tensor:
    return normal(D_MODEL, D_MODEL, root=root, dtype=dtype) / D_MODEL**0.5


def _weights(dtype: torch.dtype) -> Weights:
    """Give the weights of q, k, v and output."""
    return _weight(3, dtype), _weight(5, dtype), _weight(7, dtype), _weight(11, dtype)


def _expected_with_rope(x: Tensor, weights: Weights, heads: int, positions: Tensor) -> Tensor:
    """Rotate by complex numbers, attend by `F.scaled_dot_product_attention`."""
    q, k, v = (
        F.linear(x, weight).unflatten(-1, (heads, -1)).transpose(-2, -3) for weight in weights[:3]
    )
    positions = positions.unsqueeze(-2)
    q, k = rotate_as_complex(q, positions, THETA), rotate_as_complex(k, positions, THETA)
    joined = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(-2, -3).flatten(-2)
    return F.linear(joined, weights[3])


@DTYPES
@pytest.mark.parametrize("seq", [1, 2, 9])
@pytest.mark.parametrize("heads", [1, 2, 3, 12])
def test_without_rope(dtype: torch.dtype, seq: int, heads: int) -> None:
    """Catches heads split or joined in another order, the scale of d_model, and a wrong mask."""
    x = normal(2, seq, D_MODEL, root=2, dtype=dtype)
    q, k, v, output = _weights(dtype)
    # torch wants (seq, batch, d_model), and True where a query may *not* attend.
    by_seq = x.transpose(0, 1)
    expected, _ = F.multi_head_attention_forward(
        by_seq,
        by_seq,
        by_seq,
        embed_dim_to_check=D_MODEL,
        num_heads=heads,
        in_proj_weight=torch.cat([q, k, v]),
        in_proj_bias=None,
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=output,
        out_proj_bias=None,
        attn_mask=torch.ones(seq, seq, dtype=torch.bool).triu(1),
        need_weights=False,
    )
    answer = run_multihead_self_attention(D_MODEL, heads, q, k, v, output, x)
    agree(answer, expected.transpose(0, 1))


@DTYPES
@pytest.mark.parametrize("heads", [1, 2, 3, 6])
@pytest.mark.parametrize("leading", [(), (2,), (2, 3)], ids=str)
def test_with_rope(dtype: torch.dtype, heads: int, leading: tuple[int, ...]) -> None:
    """Catches rotated values, an unrotated key, and a rotation before the heads are split."""
    x = normal(*leading, 7, D_MODEL, root=2, dtype=dtype)
    weights = _weights(dtype)
    answer = run_multihead_self_attention_with_rope(D_MODEL, heads, 7, THETA, *weights, x)
    agree(answer, _expected_with_rope(x, weights, heads, torch.arange(7)))


@pytest.mark.parametrize("shape", [(5,), (3, 5), (1, 5), (2, 1, 5), (2, 3, 5)], ids=str)
def test_given_positions(shape: tuple[int, ...]) -> None:
    """Catches positions that are ignored, or that broadcast against heads in place of a batch."""
    x = normal(2, 3, 5, D_MODEL, root=2, dtype=torch.float64)
    positions = normal(*shape, root=13).mul(100).long() % 64
    weights = _weights(torch.float64)
    answer = run_multihead_self_attention_with_rope(
        D_MODEL, 3, 64, THETA, *weights, x, token_positions=positions
    )
    agree(answer, _expected_with_rope(x, weights, 3, positions))


@pytest.mark.parametrize("changed", [0, 3, 6])
def test_causality(changed: int) -> None:
    """Catches a mask that is missing, strict, reversed or off by one."""
    x = normal(7, D_MODEL, root=2, dtype=torch.float64)
    other = x.clone()
    other[changed] += 1
    weights = _weights(torch.float64)
    before, after = (
        run_multihead_self_attention_with_rope(D_MODEL, 3, 7, THETA, *weights, each)
        for each in (x, other)
    )
    moved = (before - after).abs().amax(-1) > 1e-6
    assert moved.tolist() == [position >= changed for position in range(7)]
