"""The solution's RoPE against complex numbers, and against what a rotation promises."""

import pytest
import torch

from cs336_basics.rope import RotaryEmbedding
from staff.tests.solution.checks import agree, normal, rotate_as_complex

F64 = torch.float64


@pytest.mark.parametrize("theta", [10000.0, 500000.0, 7.0])
@pytest.mark.parametrize("d_k", [2, 4, 10, 64])
def test_equals_complex_product(theta: float, d_k: int) -> None:
    """Catches a wrong pairing, sense, exponent or base of the angles."""
    x = normal(2, 3, 9, d_k, root=2, dtype=F64)
    positions = torch.tensor([0, 1, 2, 3, 5, 8, 13, 21, 34])
    rope = RotaryEmbedding(theta, d_k, 40, dtype=F64)
    agree(rope(x, positions), rotate_as_complex(x, positions, theta))


@pytest.mark.parametrize("shape", [(4,), (3, 4), (1, 4), (2, 1, 4), (2, 3, 4)], ids=str)
def test_positions_broadcast(shape: tuple[int, ...]) -> None:
    """Catches positions that must be 1-D, or are replaced by 0, 1, 2, …."""
    x = normal(2, 3, 4, 6, root=2, dtype=F64)
    positions = normal(*shape, root=3).mul(100).long() % 50
    rope = RotaryEmbedding(10000.0, 6, 50, dtype=F64)
    agree(rope(x, positions), rotate_as_complex(x, positions, 10000.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_far_positions(dtype: torch.dtype) -> None:
    """Catches angles or tables of less than float32's precision, as far out as position 8191."""
    positions = torch.tensor([300, 2000, 4097, 8191])
    x = normal(4, 16, root=2, dtype=dtype)
    rope = RotaryEmbedding(10000.0, 16, 8192, dtype=dtype)
    agree(rope(x, positions), rotate_as_complex(x, positions, 10000.0))


@pytest.mark.parametrize("shift", [1, 17, 400])
def test_scores_depend_on_distance_only(shift: int) -> None:
    """Catches a rotation of queries that is not the rotation of keys."""
    queries, keys = normal(5, 8, root=2, dtype=F64), normal(6, 8, root=3, dtype=F64)
    at_queries, at_keys = torch.arange(5) * 3, torch.arange(6) + 2
    rope = RotaryEmbedding(10000.0, 8, 512, dtype=F64)
    near = rope(queries, at_queries) @ rope(keys, at_keys).T
    far = rope(queries, at_queries + shift) @ rope(keys, at_keys + shift).T
    agree(far, near)


def test_scores_at_equal_distance() -> None:
    """Catches a score that knows absolute positions: (0, 2) and (1, 3) are both two apart."""
    query, key = normal(8, root=2).expand(2, 8), normal(8, root=3).expand(2, 8)
    rope = RotaryEmbedding(10000.0, 8, 4)
    scores = rope(query, torch.tensor([0, 1])) * rope(key, torch.tensor([2, 3]))
    first, second = scores.sum(-1)
    assert abs(first - second) < 1e-6 * query[0].norm() * key[0].norm()


def test_norm_of_every_pair_is_kept() -> None:
    """Catches a rotation that is none: pairs mixed with others, or cos² + sin² other than 1."""
    x = normal(3, 50, 12, root=2, dtype=F64)
    y = RotaryEmbedding(10000.0, 12, 50, dtype=F64)(x, torch.arange(50))
    agree(y.unflatten(-1, (6, 2)).norm(dim=-1), x.unflatten(-1, (6, 2)).norm(dim=-1))


def test_position_zero_changes_nothing() -> None:
    """Catches positions counted from one."""
    x = normal(3, 12, root=2)
    assert torch.equal(RotaryEmbedding(10000.0, 12, 5)(x, torch.zeros(3, dtype=torch.long)), x)


def test_rotations_add_up() -> None:
    """Catches an angle that does not grow in proportion to the position."""
    x = normal(7, 6, root=2, dtype=F64)
    rope = RotaryEmbedding(100.0, 6, 64, dtype=F64)
    m, n = torch.arange(7), torch.arange(7) * 8
    agree(rope(rope(x, m), n), rope(x, m + n))
