"""The errors that the solution's docstrings promise, and the limits at which they begin."""

from pathlib import Path

import pytest
import torch

import adapters
import cs336_basics
from cs336_basics.attention import MultiHeadSelfAttention
from cs336_basics.embedding import Embedding
from cs336_basics.rope import RotaryEmbedding
from cs336_basics.transformer import TransformerLM


def test_the_solution_is_what_is_tested() -> None:
    """Catches a path on which the student's stubs, or an installed package, come first."""
    solution = Path(__file__).resolve().parents[1] / "solution"
    assert Path(cs336_basics.__file__).resolve().is_relative_to(solution)
    assert Path(adapters.__file__).resolve().is_relative_to(solution)


@pytest.mark.parametrize("token", [5, 6, 1000])
def test_embedding_id_outside_the_table(token: int) -> None:
    """Catches an id that is clamped or wrapped to a row that is there."""
    table = Embedding(5, 2)
    assert torch.equal(table(torch.tensor(4)), table.weight[4])
    with pytest.raises(IndexError):
        table(torch.tensor([0, token]))


@pytest.mark.parametrize("position", [5, 6, 1000])
def test_rope_position_outside_the_tables(position: int) -> None:
    """Catches a position that is clamped, or taken modulo the length of the tables."""
    rope = RotaryEmbedding(10000.0, 2, 5)
    rope(torch.ones(1, 2), torch.tensor([4]))
    with pytest.raises(IndexError):
        rope(torch.ones(1, 2), torch.tensor([position]))


@pytest.mark.parametrize("d_k", [1, 3, 7])
def test_rope_of_odd_size(d_k: int) -> None:
    """Catches a last feature that is silently left out of the pairs."""
    with pytest.raises(ValueError, match=f"d_k must be even; it is {d_k}"):
        RotaryEmbedding(10000.0, d_k, 5)


@pytest.mark.parametrize("num_heads", [3, 5, 16])
def test_heads_that_do_not_divide_the_model(num_heads: int) -> None:
    """Catches features that are cut off when the heads are split."""
    with pytest.raises(ValueError, match=f"{num_heads} does not divide 8"):
        MultiHeadSelfAttention(8, num_heads)


def test_model_takes_the_context_and_no_more() -> None:
    """Catches a model that makes positions up beyond its context."""
    model = TransformerLM(11, 6, 8, 1, 2, 12, 10000.0)
    assert model(torch.arange(6)[None]).shape == (1, 6, 11)
    with pytest.raises(IndexError):
        model(torch.arange(7)[None])


def test_model_id_outside_the_vocabulary() -> None:
    """Catches an id that is clamped on its way to the table."""
    model = TransformerLM(11, 6, 8, 1, 2, 12, 10000.0)
    with pytest.raises(IndexError):
        model(torch.tensor([[11]]))
