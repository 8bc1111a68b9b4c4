"""Edge cases that the solution's docstrings or the handout promise and no graded test checks."""

import math

import pytest
import torch
from torch import Tensor, nn

from adapters import run_causal_lm_loss
from cs336_basics.adamw import AdamW
from cs336_basics.batch_norm import BatchNorm
from cs336_basics.decoding import decode
from cs336_basics.gradient_clipping import clip_gradients
from cs336_basics.kv_cache import KVCache
from cs336_basics.lr_schedule import lr_cosine_schedule
from cs336_basics.mixture_of_experts import MixtureOfExperts
from cs336_basics.rope import RotaryEmbedding
from cs336_basics.rope_half_split import HalfSplitRotaryEmbedding
from cs336_basics.sinusoidal import SinusoidalPositions
from cs336_basics.softmax import softmax
from staff.tests.solution.checks import normal

F64 = torch.float64
HALVES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)


@HALVES
def test_softmax_of_half_precision(dtype: torch.dtype) -> None:
    """Catches a softmax that computes in half precision, with wrong small weights."""
    x = (4 * normal(64, 128, root=2)).to(dtype)
    weights = softmax(x, -1)
    errors = (weights.double() - x.double().softmax(-1)).abs() / weights.double()
    assert errors[weights > torch.finfo(dtype).tiny].max() < torch.finfo(dtype).eps


@HALVES
def test_positions_in_half_precision(dtype: torch.dtype) -> None:
    """Catches tables of positions that are rounded to half precision before they are used.

    The expected result is computed in float64 and rounded once.
    """
    x, at = normal(1, 1, 4, 8, root=2, dtype=dtype), torch.tensor([300, 2000, 4097, 8191])
    start = 8188
    found = {
        "rope": RotaryEmbedding(1e4, 8, 8192, dtype=dtype)(x, at),
        "sinusoidal": SinusoidalPositions(8, 8192, dtype=dtype)(x, at),
        "half-split": HalfSplitRotaryEmbedding(1e4, 8, dtype=dtype)(x, x, start)[1],
    }
    wide = x.double()
    exact = {
        "rope": RotaryEmbedding(1e4, 8, 8192, dtype=F64)(wide, at),
        "sinusoidal": SinusoidalPositions(8, 8192, dtype=F64)(wide, at),
        "half-split": HalfSplitRotaryEmbedding(1e4, 8, dtype=F64)(wide, wide, start)[1],
    }
    for name, answer in found.items():
        assert answer.dtype == dtype, name
        torch.testing.assert_close(answer, exact[name].to(dtype))
    for module in (SinusoidalPositions(8, 9, dtype=dtype), HalfSplitRotaryEmbedding(1e4, 8)):
        assert {buffer.dtype for buffer in module.buffers()} == {torch.float32}


def test_half_split_tables_are_kept() -> None:
    """Catches half-split RoPE tables that are rebuilt although they are long enough."""
    rope = HalfSplitRotaryEmbedding(100.0, 4)
    x = normal(1, 1, 20, 4, root=2)
    rope(x, x)
    table = rope.cos
    rope(x[:, :, :5], x[:, :, :5], 15)
    assert rope.cos is table
    assert rope.cos.shape == rope.sin.shape == (1, 1, 20, 4)


@pytest.mark.parametrize("size", [0, 1])
def test_batch_norm_of_too_few(size: int) -> None:
    """Catches NaN in BatchNorm's running statistics after a batch of fewer than two rows."""
    norm = BatchNorm(3)
    with pytest.raises(ValueError, match=f"a batch of {size} has no variance"):
        norm(torch.ones(size, 3))
    assert norm.running_mean.tolist() == [0, 0, 0]
    assert norm.running_var.tolist() == [1, 1, 1]
    assert norm.eval()(torch.ones(size, 3)).shape == (size, 3)


def test_a_causal_loss_of_nothing() -> None:
    """Catches NaN in the loss or gradient if all labels are ignored and logits are infinite."""
    logits = torch.full((2, 3, 4), torch.inf, requires_grad=True)
    loss = run_causal_lm_loss(logits, torch.full((2, 3), -100))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.item() == 0
    assert not gradient.any()


def test_defaults_of_adamw() -> None:
    """Catches a default of AdamW that differs from PyTorch's AdamW."""
    parameters = [nn.Parameter(torch.zeros(2))]
    ours, theirs = AdamW(parameters).defaults, torch.optim.AdamW(parameters).defaults
    assert ours == {name: theirs[name] for name in ours}


@pytest.mark.parametrize("it", [0, 1, 7])
def test_a_schedule_without_stages(it: int) -> None:
    """Catches a division by zero if neither warm-up nor cosine has an iteration."""
    assert lr_cosine_schedule(it, 1.0, 0.25, 0, 0) == 0.25


def test_rates_are_floats() -> None:
    """Catches a learning rate that is a tensor or a NumPy number in place of a float."""
    assert {type(lr_cosine_schedule(it, 1.0, 0.1, 3, 6)) for it in range(9)} == {float}


@pytest.mark.parametrize("dtype", [F64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_norm_of_gradients(dtype: torch.dtype) -> None:
    """Catches `clip_gradients` returning a half-precision norm, or failing without gradients."""
    parameter = nn.Parameter(torch.zeros(2, dtype=dtype))
    assert clip_gradients([parameter], 1.0) == 0
    assert clip_gradients(iter(()), 1.0) == 0
    parameter.grad = torch.tensor([3.0, 4.0], dtype=dtype)
    norm = clip_gradients([parameter], 1.0)
    assert norm == 5
    assert norm.dtype == torch.promote_types(dtype, torch.float32)


def test_decoding_has_its_own_generator() -> None:
    """Catches `decode` drawing from PyTorch's global generator, or setting its seed."""

    def next_logits(ids: Tensor) -> Tensor:
        return torch.zeros(1, 40)

    before = torch.random.get_rng_state()
    decode(next_logits, [0], 20, seed=4)
    decode(next_logits, [0], 20)
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_cache_carries_no_gradient() -> None:
    """Catches a cache that keeps the autograd graph of every token."""
    cache = KVCache(4)
    keys = torch.ones(1, 1, 2, 3, requires_grad=True)
    for _ in range(2):
        seen = cache.append(2 * keys, keys)
    assert not any(part.requires_grad for part in seen)
    assert seen[0].untyped_storage().data_ptr() == seen[1].untyped_storage().data_ptr()


def test_top_1_starves_the_router() -> None:
    """Catches a gradient from the output to the router if top_k is 1.

    Section 5.12 says that this gradient is 0: a single renormalised gate is always 1.
    """
    x, cotangent = normal(3, 7, 8, root=2, dtype=F64), normal(3, 7, 8, root=3, dtype=F64)
    for top_k, starved in ((1, True), (2, False)):
        layer = MixtureOfExperts(8, 6, 4, top_k, dtype=F64)
        with torch.no_grad():
            for i, parameter in enumerate(layer.parameters()):
                parameter.copy_(normal(*parameter.shape, root=3 + 4 * i, dtype=F64) / math.sqrt(8))
        weight = layer.get_parameter("router.weight")
        output, loss = layer(x)
        (pull,) = torch.autograd.grad((output * cotangent).sum(), weight, retain_graph=True)
        assert (pull.abs().max().item() < 1e-12) == starved
        (pull,) = torch.autograd.grad(loss, weight)
        assert pull.abs().max().item() > 1e-3
