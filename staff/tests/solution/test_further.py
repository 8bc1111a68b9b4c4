"""The solution's further pieces against PyTorch's modules, transformers, and closed formulas."""

import importlib
import math

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck

from adapters import run_batch_norm, run_layer_norm, run_relu_feed_forward
from cs336_basics.batch_norm import BatchNorm
from cs336_basics.compression import compression_ratio
from cs336_basics.layer_norm import LayerNorm
from cs336_basics.relu_feed_forward import ReLUFeedForward
from cs336_basics.rope import RotaryEmbedding
from cs336_basics.rope_conversion import adjacent_to_half_split, half_split_to_adjacent
from cs336_basics.rope_half_split import HalfSplitRotaryEmbedding
from cs336_basics.sinusoidal import SinusoidalPositions
from staff.tests.solution.checks import agree, normal, rotate_as_complex

F64 = torch.float64
HALVES = [torch.bfloat16, torch.float16]
LEADING = pytest.mark.parametrize("leading", [(), (5,), (2, 1, 3)], ids=str)


def halves_to_neighbours(x: Tensor) -> Tensor:
    """The features of two halves in the order of adjacent pairs, last axis."""
    half = x.shape[-1] // 2
    return torch.stack([x[..., :half], x[..., half:]], dim=-1).flatten(-2)


@LEADING
@pytest.mark.parametrize("dtype", [torch.float32, F64], ids=str)
@pytest.mark.parametrize("eps", [1e-5, 1e-1])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3])
def test_layer_norm(leading: tuple[int, ...], dtype: torch.dtype, eps: float, scale: float) -> None:
    """Catches an unbiased variance, eps in the wrong place, a wrong axis, a lost shift."""
    x = normal(*leading, 8, root=2, dtype=dtype) * scale
    theirs = nn.LayerNorm(8, eps, dtype=dtype)
    gain, shift = normal(8, root=3, dtype=dtype), normal(8, root=5, dtype=dtype)
    theirs.load_state_dict({"weight": gain, "bias": shift})
    agree(run_layer_norm(8, eps, gain, shift, x), theirs(x).detach())


def test_batch_norm_step_by_step() -> None:
    """Catches biased and unbiased variances exchanged, and a mode that leaks into the other."""
    settings = {"eps": 1e-3, "momentum": 0.3, "dtype": F64}
    ours, theirs = BatchNorm(5, **settings), nn.BatchNorm1d(5, **settings)
    start = {"weight": normal(5, root=3, dtype=F64), "bias": normal(5, root=5, dtype=F64)}
    for norm in (ours, theirs):
        norm.load_state_dict(start, strict=False)
    for step, size in enumerate((2, 7, 3, 1, 6)):
        x = 2 * normal(size, 5, root=7, dtype=F64) + step
        training = size > 1
        agree(ours.train(training)(x).detach(), theirs.train(training)(x).detach())
        agree(ours.running_mean, theirs.running_mean)
        agree(ours.running_var, theirs.running_var)


def test_batch_norm_adapter() -> None:
    """Catches an adapter that returns the statistics of before the call."""
    x = torch.tensor([[1.0], [5.0]])
    one, zero = torch.ones(1), torch.zeros(1)
    output, mean, variance = run_batch_norm(1, 0.0, 0.1, one, zero, zero, one, x, True)
    assert output.flatten().tolist() == [-1, 1]
    assert (mean.item(), variance.item()) == pytest.approx((0.3, 1.7))
    output, mean, _ = run_batch_norm(1, 0.0, 0.1, one, zero, mean, variance, x[:1] + 2, False)
    assert output.item() == pytest.approx(2.7 / math.sqrt(1.7))
    assert mean.item() == pytest.approx(0.3)


@pytest.mark.parametrize("size", [0, 1])
def test_batch_norm_of_too_few(size: int) -> None:
    """Catches a variance of NaN that is remembered."""
    norm = BatchNorm(3)
    with pytest.raises(ValueError, match=f"a batch of {size} has no variance"):
        norm(torch.ones(size, 3))
    assert norm.running_var.tolist() == [1, 1, 1]
    assert norm.eval()(torch.ones(size, 3)).shape == (size, 3)


@LEADING
def test_relu_feed_forward(leading: tuple[int, ...]) -> None:
    """Catches a bias that is lost or comes too late, and a ReLU too many."""
    x = normal(*leading, 4, root=2, dtype=F64)
    first, second = nn.Linear(4, 9, dtype=F64), nn.Linear(9, 4, dtype=F64)
    weights = (first.weight, first.bias, second.weight, second.bias)
    ours = run_relu_feed_forward(4, 9, *(w.detach() for w in weights), x)
    agree(ours.detach(), second(first(x).relu()).detach())


@pytest.mark.parametrize("d_model", [1, 2, 7, 16])
def test_sinusoidal_rows(d_model: int) -> None:
    """Catches halves for pairs, positions from one, and an odd width that changes the angles."""
    positions = torch.tensor([[0, 1, 9], [40, 2, 41]])
    rows = SinusoidalPositions(d_model, 42, dtype=F64)(
        torch.zeros(2, 3, d_model).double(), positions
    )
    for place in range(6):
        for feature in range(d_model):
            angle = positions.flatten()[place].item() / 10000 ** (feature // 2 * 2 / d_model)
            wave = (math.sin, math.cos)[feature % 2](angle)
            assert rows.reshape(6, d_model)[place, feature].item() == pytest.approx(wave, abs=1e-12)


def test_sinusoidal_positions_are_rotations() -> None:
    """Catches any table without the property it was made for: k positions on is a fixed turn."""
    rows = SinusoidalPositions(8, 60, dtype=F64)(torch.zeros(50, 8).double(), torch.arange(50))
    pairs = torch.complex(rows[:, 1::2], rows[:, 0::2])  # cos + i sin
    steps = pairs[1:] / pairs[:-1]
    agree(steps, steps[:1].expand_as(steps))


@pytest.mark.parametrize(("theta", "head_dim"), [(10000.0, 8), (500000.0, 64), (7.0, 2)])
@pytest.mark.parametrize("start", [0, 1, 30])
def test_half_split_against_complex_numbers(theta: float, head_dim: int, start: int) -> None:
    """Catches a wrong pairing, sense, exponent, base or start."""
    q, k = (
        normal(2, 3, 5, head_dim, root=2, dtype=F64),
        normal(2, 1, 5, head_dim, root=3, dtype=F64),
    )
    rope = HalfSplitRotaryEmbedding(theta, head_dim, dtype=F64)
    positions = torch.arange(start, start + 5)
    for ours, x in zip(rope(q, k, start), (q, k), strict=True):
        expected = rotate_as_complex(halves_to_neighbours(x), positions, theta)
        agree(halves_to_neighbours(ours), expected)


@pytest.mark.parametrize("start", [0, 5, 300])
def test_half_split_against_transformers(start: int) -> None:
    """Catches another layout than that of the Llama whose weights are to be loaded."""
    llama = importlib.import_module("transformers.models.llama.modeling_llama")
    config = llama.LlamaConfig(hidden_size=32, num_attention_heads=2, head_dim=16, rope_theta=500.0)
    q, k = normal(2, 2, 6, 16, root=2), normal(2, 1, 6, 16, root=3)
    cos, sin = llama.LlamaRotaryEmbedding(config)(q, torch.arange(start, start + 6)[None])
    theirs = llama.apply_rotary_pos_emb(q, k, cos, sin)
    ours = HalfSplitRotaryEmbedding(500.0, 16)(q, k, start)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-4 if start > 100 else 1e-5)


def test_half_split_tables_grow() -> None:
    """Catches tables that are stale, too short, or made anew where they need not be."""
    rope = HalfSplitRotaryEmbedding(100.0, 4, dtype=F64)
    x = normal(1, 1, 20, 4, root=2, dtype=F64)
    whole, _ = HalfSplitRotaryEmbedding(100.0, 4, dtype=F64)(x, x)
    for start, end in ((0, 3), (3, 4), (10, 20), (4, 10), (0, 20)):
        piece, _ = rope(x[:, :, start:end], x[:, :, start:end], start)
        agree(piece, whole[:, :, start:end])
    assert rope.cos.shape == rope.sin.shape == (1, 1, 20, 4)
    table = rope.cos
    rope(x[:, :, :5], x[:, :, :5], 15)
    assert rope.cos is table
    assert not rope.state_dict()


@pytest.mark.parametrize(("heads", "d_head"), [(1, 2), (3, 6), (2, 8), (4, 10)])
def test_conversion_makes_one_rope_of_the_other(heads: int, d_head: int) -> None:
    """Catches rows that leave their head, and the two directions exchanged."""
    weight = normal(heads * d_head, 7, root=2, dtype=F64)
    x = normal(5, 7, root=3, dtype=F64)
    converted = adjacent_to_half_split(weight, heads)
    assert torch.equal(half_split_to_adjacent(converted, heads), weight)
    assert torch.equal(adjacent_to_half_split(half_split_to_adjacent(weight, heads), heads), weight)

    def queries(w: Tensor) -> Tensor:
        return (x @ w.T).unflatten(-1, (heads, d_head)).transpose(0, 1)[None]

    adjacent = RotaryEmbedding(50.0, d_head, 5, dtype=F64)(queries(weight), torch.arange(5))
    halves, _ = HalfSplitRotaryEmbedding(50.0, d_head, dtype=F64)(
        queries(converted), queries(converted)
    )
    agree(halves_to_neighbours(halves), adjacent)


def test_conversion_is_that_of_hugging_face() -> None:
    """Catches a permutation other than the one by which Llama's weights were published.

    Its script takes `(heads, d_head/2, 2, d_in)` and exchanges the middle axes.
    """
    weight = normal(12, 5, root=2)
    published = weight.view(2, 3, 2, 5).transpose(1, 2).reshape(12, 5)
    assert torch.equal(adjacent_to_half_split(weight, 2), published)
    assert torch.equal(adjacent_to_half_split(weight[:, 0], 2), published[:, 0])


@pytest.mark.parametrize(("rows", "heads"), [(10, 4), (9, 3), (6, 2)])
def test_rows_that_are_no_pairs(rows: int, heads: int) -> None:
    """Catches rows that are left over, or an error that doesn't say how many."""
    for convert in (adjacent_to_half_split, half_split_to_adjacent):
        with pytest.raises(ValueError, match=f"^{rows} rows don't divide into {heads} heads"):
            convert(torch.ones(rows, 2), heads)


def test_compression_ratio() -> None:
    """Catches characters for bytes, a division that rounds, and an answer without tokens."""
    assert compression_ratio("naïve 🦊", [5, 5, 70000, 1]) == 11 / 4
    assert compression_ratio("", [1]) == 0
    with pytest.raises(ValueError, match="there are no tokens"):
        compression_ratio("a", [])


@pytest.mark.parametrize("position", [5, 1000])
def test_sinusoidal_position_outside_the_table(position: int) -> None:
    """Catches a position that is clamped or taken modulo the length of the table."""
    positions = SinusoidalPositions(4, 5)
    positions(torch.ones(1, 4), torch.tensor([4]))
    with pytest.raises(IndexError):
        positions(torch.ones(1, 4), torch.tensor([position]))


def test_half_split_refuses() -> None:
    """Catches a feature without a partner, and a start that counts from the end."""
    with pytest.raises(ValueError, match="head_dim must be even; it is 7"):
        HalfSplitRotaryEmbedding(10000.0, 7)
    x = torch.ones(1, 1, 3, 4)
    with pytest.raises(ValueError, match="start_position is -2"):
        HalfSplitRotaryEmbedding(10000.0, 4)(x, x, -2)


MODULES = {
    "layer norm": (lambda **kw: LayerNorm(6, **kw), (3, 6)),
    "batch norm": (lambda **kw: BatchNorm(6, **kw), (3, 6)),
    "relu feed-forward": (lambda **kw: ReLUFeedForward(6, 9, **kw), (3, 6)),
}


@pytest.mark.parametrize("name", MODULES)
def test_gradients(name: str) -> None:
    """Catches statistics or a layer that count as constants, by finite differences."""
    build, shape = MODULES[name]
    module = build(dtype=F64)
    values = [normal(*p.shape, root=5, dtype=F64).requires_grad_() for p in module.parameters()]
    names = [name for name, _ in module.named_parameters()]
    x = normal(*shape, root=2, dtype=F64).requires_grad_()

    def call(x: Tensor, *parameters: Tensor) -> Tensor:
        given = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(module, given, (x,))

    assert gradcheck(call, (x, *values))


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, F64], ids=str)
@pytest.mark.parametrize("name", MODULES)
def test_dtypes_and_devices(name: str, dtype: torch.dtype) -> None:
    """Catches a parameter that promotes the result, or stays behind on another device."""
    build, shape = MODULES[name]
    y = build(dtype=dtype)(300 * normal(*shape, root=2, dtype=dtype))
    assert y.dtype == dtype
    assert y.isfinite().all()
    module = build(dtype=dtype, device="meta")
    assert all(p.is_meta and p.dtype == dtype for p in module.parameters())
    assert all(buffer.is_meta for buffer in module.buffers())
    assert module(torch.empty(shape, dtype=dtype, device="meta")).is_meta


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_positions_of_half_precision(dtype: torch.dtype) -> None:
    """Catches tables of half precision: the sum and the turn are rounded once, at the end."""
    x, at = normal(1, 1, 4, 8, root=2, dtype=dtype), torch.arange(4) + 2000
    added = SinusoidalPositions(8, 2004, dtype=dtype)(x, at)
    exact = SinusoidalPositions(8, 2004, dtype=F64)(x.double(), at)
    torch.testing.assert_close(added, exact.to(dtype))
    turned, _ = HalfSplitRotaryEmbedding(1e4, 8, dtype=dtype)(x, x, 2000)
    exact, _ = HalfSplitRotaryEmbedding(1e4, 8, dtype=F64)(x.double(), x.double(), 2000)
    torch.testing.assert_close(turned, exact.to(dtype))
    for module in (SinusoidalPositions(8, 9, dtype=dtype), HalfSplitRotaryEmbedding(1e4, 8)):
        assert not list(module.parameters())
        assert not module.state_dict()
        assert all(b.dtype == torch.float32 for b in module.buffers())
