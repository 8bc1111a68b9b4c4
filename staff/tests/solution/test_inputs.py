"""How the solution treats its inputs: leading axes, memory layout, and whose tensors they are."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from cs336_basics.attention import MultiHeadSelfAttention, scaled_dot_product_attention
from cs336_basics.embedding import Embedding
from cs336_basics.feed_forward import SwiGLU, silu
from cs336_basics.linear import Linear
from cs336_basics.rmsnorm import RMSNorm
from cs336_basics.rope import RotaryEmbedding
from cs336_basics.softmax import softmax
from cs336_basics.transformer import TransformerBlock, TransformerLM
from staff.tests.solution.checks import agree, normal

F64 = torch.float64


def _attend(x: Tensor) -> Tensor:
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    mask[1] = False
    return scaled_dot_product_attention(x, x, x, mask)


def _rotate(x: Tensor) -> Tensor:
    return RotaryEmbedding(10000.0, 8, 5, dtype=F64)(x, torch.arange(5))


def _attention() -> MultiHeadSelfAttention:
    return MultiHeadSelfAttention(8, 2, RotaryEmbedding(10000.0, 4, 5, dtype=F64), dtype=F64)


# Each builds a function that takes `(…, 5, 8)`.
BUILD: dict[str, Callable[[], Callable[[Tensor], Tensor]]] = {
    "linear": lambda: Linear(8, 3, dtype=F64),
    "rmsnorm": lambda: RMSNorm(8, dtype=F64),
    "silu": lambda: silu,
    "swiglu": lambda: SwiGLU(8, 12, dtype=F64),
    "softmax": lambda: lambda x: softmax(x, -1),
    "softmax over rows": lambda: lambda x: softmax(x, -2),
    "rope": lambda: _rotate,
    "attention function": lambda: _attend,
    "attention": _attention,
    "block": lambda: TransformerBlock(8, 2, 12, 5, 10000.0, dtype=F64),
}
EACH = pytest.mark.parametrize("name", BUILD)


@EACH
@torch.no_grad()
def test_leading_axes(name: str) -> None:
    """Catches a sequence length read from axis 1, and statistics that reach across the batch."""
    function = BUILD[name]()
    x = normal(2, 3, 5, 8, root=2, dtype=F64)
    at_once = function(x)
    assert at_once.shape[:3] == (2, 3, 5)
    agree(function(x[1]), at_once[1])
    agree(function(x[1, 2]), at_once[1, 2])


@EACH
@torch.no_grad()
def test_memory_layout(name: str) -> None:
    """Catches `view` on a tensor that isn't contiguous, or memory read in the wrong order."""
    function = BUILD[name]()
    x = normal(3, 5, 8, root=2, dtype=F64)
    strided = torch.empty(8, 3, 10, dtype=F64).permute(1, 2, 0)[:, ::2].copy_(x)
    assert not strided.is_contiguous()
    agree(function(strided), function(x))
    agree(function(x[:1].expand(3, 5, 8)), function(x[:1].repeat(3, 1, 1)))


@EACH
def test_inputs_and_weights_stay_as_they_were(name: str) -> None:
    """Catches arithmetic in place, such as `x -= max` in the softmax or `x +=` in the block."""
    function = BUILD[name]()
    x = normal(3, 5, 8, root=2, dtype=F64)
    weights = dict(getattr(function, "named_parameters", dict)())
    before = {name: weight.detach().clone() for name, weight in weights.items()}
    with torch.no_grad():
        function(x)
    assert torch.equal(x, normal(3, 5, 8, root=2, dtype=F64))
    assert all(torch.equal(weights[name], before[name]) for name in before)


def test_mask_and_positions_stay_as_they_were() -> None:
    """Catches a mask that is inverted in place, and positions that are shifted in place."""
    x, mask, positions = normal(5, 8, root=2), torch.zeros(5, 5, dtype=torch.bool), torch.arange(5)
    mask[0, 0] = True
    before = mask.clone()
    scaled_dot_product_attention(x, x, x, mask)
    RotaryEmbedding(10000.0, 8, 5)(x, positions)
    assert torch.equal(mask, before)
    assert torch.equal(positions, torch.arange(5))


@torch.no_grad()
def test_model_leading_axes_and_lengths() -> None:
    """Catches ids that must be 2-D, and logits of a prefix that depend on what follows it."""
    model = TransformerLM(11, 6, 8, 2, 2, 12, 10000.0, dtype=F64)
    ids = (normal(2, 3, 6, root=2) * 100).long() % 11
    logits = model(ids)
    agree(model(ids[1]), logits[1])
    for length in range(1, 7):
        agree(model(ids[1, 2, :length]), logits[1, 2, :length])


def test_embedding_rows_are_copies_of_the_table() -> None:
    """Catches an id that changes its row, whatever shape and integer dtype the ids have."""
    table = Embedding(11, 8)
    ids = torch.tensor([[0, 10], [3, 3]])
    rows = torch.stack([torch.stack([table.weight[i] for i in row]) for row in ids.tolist()])
    assert torch.equal(table(ids), rows)
    assert torch.equal(table(ids.int()), rows)
    assert torch.equal(table(ids[None]), rows[None])
