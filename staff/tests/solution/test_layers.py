"""The solution's layers against `torch.nn.functional`, for several shapes and dtypes."""

import pytest
import torch
import torch.nn.functional as F

from adapters import run_embedding, run_linear, run_rmsnorm, run_silu, run_softmax, run_swiglu
from staff.tests.solution.checks import agree, normal

LEADING = pytest.mark.parametrize("leading", [(), (5,), (2, 3), (2, 1, 3)], ids=str)
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


@LEADING
@DTYPES
@pytest.mark.parametrize(("d_in", "d_out"), [(7, 5), (6, 6), (1, 4), (64, 1)])
def test_linear(leading: tuple[int, ...], dtype: torch.dtype, d_in: int, d_out: int) -> None:
    """Catches a transposed weight, which a square one alone would let through, and any scale."""
    x = normal(*leading, d_in, root=2, dtype=dtype)
    weight = normal(d_out, d_in, root=3, dtype=dtype)
    agree(run_linear(d_in, d_out, weight, x), F.linear(x, weight))


@LEADING
@DTYPES
def test_embedding(leading: tuple[int, ...], dtype: torch.dtype) -> None:
    """Catches any arithmetic on the rows, such as a factor sqrt(d_model) or a rounding."""
    table = normal(11, 4, root=2, dtype=dtype)
    ids = normal(*leading, root=3).mul(100).long() % 11
    assert torch.equal(run_embedding(11, 4, table, ids), F.embedding(ids, table))


@LEADING
@DTYPES
@pytest.mark.parametrize("eps", [1e-5, 1e-1])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3])
def test_rmsnorm(leading: tuple[int, ...], dtype: torch.dtype, eps: float, scale: float) -> None:
    """Catches eps left out, fixed or put outside the root, a lost gain, and a wrong axis."""
    x = normal(*leading, 8, root=2, dtype=dtype) * scale
    gain = normal(8, root=3, dtype=dtype)
    agree(run_rmsnorm(8, eps, gain, x), F.rms_norm(x, (8,), gain, eps))


@DTYPES
def test_silu(dtype: torch.dtype) -> None:
    """Catches zero for negative inputs, and the form exp(x)/(1+exp(x)) that ends in NaN."""
    x = torch.cat([torch.linspace(-8, 8, 33), torch.tensor([-1e4, -100.0, 100.0, 1e4])]).to(dtype)
    agree(run_silu(x), F.silu(x))


@LEADING
@DTYPES
@pytest.mark.parametrize(("d_model", "d_ff"), [(4, 10), (6, 6), (9, 3)])
def test_swiglu(leading: tuple[int, ...], dtype: torch.dtype, d_model: int, d_ff: int) -> None:
    """Catches w1 and w3 exchanged, a gate that is dropped or comes too late, and a d_ff ignored."""
    x = normal(*leading, d_model, root=2, dtype=dtype)
    w1 = normal(d_ff, d_model, root=3, dtype=dtype)
    w2 = normal(d_model, d_ff, root=5, dtype=dtype)
    w3 = normal(d_ff, d_model, root=7, dtype=dtype)
    expected = F.linear(F.silu(F.linear(x, w1)) * F.linear(x, w3), w2)
    agree(run_swiglu(d_model, d_ff, w1, w2, w3, x), expected)


@DTYPES
@pytest.mark.parametrize("dim", range(-3, 3))
def test_softmax_axes(dtype: torch.dtype, dim: int) -> None:
    """Catches an axis that is ignored, in the maximum or in the sum."""
    x = normal(3, 4, 5, root=2, dtype=dtype) * 4
    agree(run_softmax(x, dim), F.softmax(x, dim))


@DTYPES
def test_softmax_rows_far_apart(dtype: torch.dtype) -> None:
    """Catches one maximum for the whole tensor: the lower row becomes 0/0."""
    x = torch.tensor([[0.0, 1.0], [-1000.0, -999.0]], dtype=dtype)
    agree(run_softmax(x, -1), F.softmax(x, -1))


@DTYPES
def test_softmax_of_minus_infinity(dtype: torch.dtype) -> None:
    """Catches a softmax that no mask can be added to: -inf must get a probability of exactly 0."""
    x = torch.tensor([[-torch.inf, 1.0, 2.0], [3.0, -torch.inf, -torch.inf]], dtype=dtype)
    agree(run_softmax(x, -1), F.softmax(x, -1))
    assert torch.equal(run_softmax(x, -1) == 0, x == -torch.inf)
