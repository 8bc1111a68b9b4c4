"""The solution's attention against `scaled_dot_product_attention`, and against its own formula."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from cs336_basics.attention import scaled_dot_product_attention
from staff.tests.solution.checks import agree, normal

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
LEADING = pytest.mark.parametrize("leading", [(), (3,), (2, 3), (2, 1, 3)], ids=str)
QUERIES, KEYS, D_K, D_V = 4, 6, 5, 7


def _qkv(*leading: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    return (
        normal(*leading, QUERIES, D_K, root=2, dtype=dtype),
        normal(*leading, KEYS, D_K, root=3, dtype=dtype),
        normal(*leading, KEYS, D_V, root=5, dtype=dtype),
    )


def _mask(*leading: int) -> Tensor:
    """Let every query see its own key and about half of the others."""
    own = torch.eye(QUERIES, KEYS, dtype=torch.bool)
    return own | (normal(*leading, QUERIES, KEYS, root=7) > 0)


@LEADING
@DTYPES
def test_without_mask(leading: tuple[int, ...], dtype: torch.dtype) -> None:
    """Catches a scale other than 1/sqrt(d_k), and a softmax over the queries."""
    q, k, v = _qkv(*leading, dtype=dtype)
    agree(scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v))


@LEADING
@DTYPES
def test_with_mask(leading: tuple[int, ...], dtype: torch.dtype) -> None:
    """Catches a mask that is inverted, transposed, or applied after the softmax."""
    q, k, v = _qkv(*leading, dtype=dtype)
    mask = _mask(*leading)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    agree(scaled_dot_product_attention(q, k, v, mask), expected)


@pytest.mark.parametrize("leading", [(), (3,), (1, 3), (2, 1), (2, 3)], ids=str)
def test_mask_broadcasts(leading: tuple[int, ...]) -> None:
    """Catches a mask that must have all axes of the scores."""
    q, k, v = _qkv(2, 3)
    mask = _mask(*leading)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    agree(scaled_dot_product_attention(q, k, v, mask), expected)


def test_masked_keys_might_as_well_be_absent() -> None:
    """Catches a finite fill such as -1e4 or -1e9: it beats the scores here, which are all lower."""
    q, k, v = _qkv()
    q, k = q.abs() * 1e10, -k.abs() * 1e10
    visible = torch.tensor([True, False, True, True, False, True])
    v[~visible] = 1e30
    masked = scaled_dot_product_attention(q, k, v, visible.expand(QUERIES, KEYS))
    agree(masked, F.scaled_dot_product_attention(q, k[visible], v[visible]))


def test_blind_query_gives_zeros() -> None:
    """Catches NaN, or the mean of all values, where a query may attend to nothing."""
    q, k, v = _qkv(2)
    mask = _mask(2)
    mask[0, 1] = mask[1, 3] = False
    seeing = mask.any(-1)
    answer = scaled_dot_product_attention(q, k, v, mask)
    assert torch.equal(answer[~seeing], torch.zeros(2, D_V, dtype=torch.float64))
    # The other rows by the formula, row by row: no library's view of blind rows comes in.
    for batch, row in seeing.nonzero().tolist():
        sees = mask[batch, row]
        weights = F.softmax(k[batch, sees] @ q[batch, row] / D_K**0.5, dim=-1)
        agree(answer[batch, row], weights @ v[batch, sees])


def test_one_key_is_copied() -> None:
    """Catches weights that don't sum to one: a query with one key to see returns its value."""
    q, k, v = _qkv(3)
    choice = torch.tensor([5, 0, 2, 2])
    answer = scaled_dot_product_attention(q, k, v, F.one_hot(choice, KEYS).bool())
    agree(answer, v[:, choice])


def test_equal_scores_give_the_mean() -> None:
    """Catches a normalisation by anything but the number of keys in sight."""
    q, k, v = _qkv(3)
    mask = _mask(3).to(torch.float64)
    expected = mask @ v / mask.sum(-1, keepdim=True)
    agree(scaled_dot_product_attention(torch.zeros_like(q), k, v, mask.bool()), expected)
