"""The solution's loss, schedule, clipping and batches against PyTorch and closed formulas."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cs336_basics.batches import get_batch
from cs336_basics.cross_entropy import cross_entropy
from cs336_basics.gradient_clipping import clip_gradients
from cs336_basics.lr_schedule import lr_cosine_schedule
from staff.tests.solution.checks import agree, normal

F64 = torch.float64
HALVES = [torch.bfloat16, torch.float16]


def _targets(*leading: int, classes: int) -> Tensor:
    count = math.prod(leading)
    return (torch.arange(count).square() % classes).reshape(leading)


@pytest.mark.parametrize("leading", [(), (4,), (2, 3), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_cross_entropy(leading: tuple[int, ...], scale: float) -> None:
    """Catches a mean over the first axis alone, and exponentials that overflow."""
    logits, targets = scale * normal(*leading, 7, root=2, dtype=F64), _targets(*leading, classes=7)
    expected = F.cross_entropy(logits.reshape(-1, 7), targets.reshape(-1))
    torch.testing.assert_close(cross_entropy(logits, targets), expected, rtol=1e-12, atol=1e-12)


def test_cross_entropy_gradient() -> None:
    """Catches a gradient that is cut at the maximum: it is softmax minus one-hot, over the count.

    Logits are in the hundreds as well, so that the largest one decides.
    """
    logits = normal(3, 4, 5, root=3, dtype=F64) * torch.tensor([1.0, 30.0, 300.0, 0.0])[:, None]
    targets = _targets(3, 4, classes=5)
    logits.requires_grad_()
    cross_entropy(logits, targets).backward()
    expected = (F.softmax(logits.detach(), -1) - F.one_hot(targets, 5)) / 12
    agree(logits.grad, expected)


def test_cross_entropy_of_more_rows_than_a_piece() -> None:
    """Catches a mean of the pieces' means, of which the last is shorter, and rows left out."""
    logits, targets = normal(2, 150, 7, root=5, dtype=F64), _targets(2, 150, classes=7)
    logits.requires_grad_()
    expected = F.cross_entropy(logits.reshape(-1, 7), targets.reshape(-1))
    found = cross_entropy(logits, targets)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    (gradient,), (right,) = (torch.autograd.grad(loss, [logits]) for loss in (found, expected))
    agree(gradient, right)


def test_cross_entropy_gradient_anew() -> None:
    """Catches a backward pass that ignores what comes in, or that can't be taken twice."""
    logits, targets = normal(6, 7, root=2, dtype=F64).requires_grad_(), _targets(6, classes=7)
    loss = cross_entropy(logits, targets)
    first, second = (
        torch.autograd.grad(3 * loss, [logits], retain_graph=True)[0] for _ in range(2)
    )
    (right,) = torch.autograd.grad(3 * F.cross_entropy(logits, targets), [logits])
    agree(first, right)
    agree(second, right)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.autograd.grad(loss, [logits], create_graph=True)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_cross_entropy_of_half_logits(dtype: torch.dtype) -> None:
    """Catches a loss computed in half precision: a gap of 80000 is more than float16 holds."""
    logits = torch.tensor([[-40000.0, 40000.0], [1.0, 1.0]]).to(dtype)
    loss = cross_entropy(logits, torch.tensor([0, 1]))
    agree(loss, F.cross_entropy(logits.float(), torch.tensor([0, 1])))


@pytest.mark.parametrize("target", [-100, -1, 5, 1000])
def test_targets_outside_the_classes(target: int) -> None:
    """Catches a target that is clamped, counted from the end, or ignored as PyTorch does -100."""
    with pytest.raises(RuntimeError, match="out of bounds"):
        cross_entropy(normal(2, 5, root=2), torch.tensor([0, target]))


@pytest.mark.parametrize(("warm_up", "end"), [(7, 21), (0, 10), (10, 10), (0, 0), (1, 2)])
def test_schedule(warm_up: int, end: int) -> None:
    """Catches a wrong start, peak, slope or end, and a division by zero where a stage is empty."""
    highest, lowest = 3e-4, 1e-4
    found = [lr_cosine_schedule(it, highest, lowest, warm_up, end) for it in range(end + 5)]
    for it, rate in enumerate(found):
        if it < warm_up:
            expected = highest * it / warm_up
        elif it < end:
            half_turn = complex(-1) ** ((it - warm_up) / (end - warm_up))
            expected = (highest + lowest) / 2 + (highest - lowest) / 2 * half_turn.real
        else:
            expected = lowest
        assert math.isclose(rate, expected, rel_tol=1e-12, abs_tol=1e-19), it
        assert type(rate) is float


def test_schedule_against_torch() -> None:
    """Catches a cosine of another length than PyTorch's own schedulers give it."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=14, eta_min=0.1)
    for it in range(7, 22):
        rate = lr_cosine_schedule(it, 1.0, 0.1, 7, 21)
        assert math.isclose(rate, optimizer.param_groups[0]["lr"], rel_tol=1e-12)
        optimizer.step()
        cosine.step()


def _with_gradients(dtype: torch.dtype = F64) -> list[nn.Parameter]:
    """Parameters of unlike shapes, one without a gradient."""
    shapes = [(3, 4), (5,), (), (2, 2, 2)]
    parameters = [nn.Parameter(torch.zeros(shape, dtype=dtype)) for shape in shapes]
    for root, parameter in zip((2, 3, 5), parameters, strict=False):
        parameter.grad = normal(*parameter.shape, root=root, dtype=dtype)
    return parameters


@pytest.mark.parametrize("dtype", [F64, torch.float32, *HALVES], ids=str)
@pytest.mark.parametrize("max_norm", [0.1, 1.0, 1e3])
def test_clipping(dtype: torch.dtype, max_norm: float) -> None:
    """Catches anything but one factor for all gradients, taken from their joint norm."""
    ours, theirs = _with_gradients(dtype), _with_gradients(dtype)
    before = [p.grad for p in ours]
    norm = clip_gradients(iter(ours), max_norm)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm)
    assert norm.dtype == torch.promote_types(dtype, torch.float32)
    torch.testing.assert_close(norm.to(dtype), expected)
    for mine, other, alias in zip(ours, theirs, before, strict=True):
        assert mine.grad is alias
        assert (mine.grad is None) == (other.grad is None)
        if mine.grad is not None and other.grad is not None:
            few = 4 * torch.finfo(dtype).eps
            torch.testing.assert_close(mine.grad, other.grad, rtol=few, atol=0)


def test_small_gradients_keep_every_bit() -> None:
    """Catches a factor of 0.999999 or of more than 1 where the norm is not above the maximum."""
    parameters = _with_gradients()
    before = [None if p.grad is None else p.grad.clone() for p in parameters]
    clip_gradients(parameters, 1e3)
    for parameter, gradient in zip(parameters, before, strict=True):
        assert gradient is None or torch.equal(parameter.grad, gradient)


def test_frozen_parameters_are_left_out() -> None:
    """Catches a stale gradient that makes all the others smaller."""
    frozen, live = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
    frozen.grad, live.grad = torch.full((2,), 1e6), torch.tensor([3.0, 4.0])
    frozen.requires_grad_(False)
    assert clip_gradients([frozen, live], 5.0) == 5.0
    assert torch.equal(frozen.grad, torch.full((2,), 1e6))
    assert torch.equal(live.grad, torch.tensor([3.0, 4.0]))


def test_nothing_to_clip() -> None:
    """Catches an error where no parameter has a gradient."""
    assert clip_gradients([nn.Parameter(torch.zeros(2))], 1.0) == 0
    assert clip_gradients(iter(()), 1.0) == 0


def test_batch_windows() -> None:
    """Catches windows that don't follow the text, and targets that aren't one token ahead."""
    dataset = np.arange(100, 150, dtype=np.int32)
    x, y = get_batch(dataset, 200, 7, "cpu")
    assert (x.dtype, y.dtype, x.shape, y.shape) == (torch.int64, torch.int64, (200, 7), (200, 7))
    assert torch.equal(x, x[:, :1] + torch.arange(7))
    assert torch.equal(y, x + 1)
    assert x.is_contiguous()
    assert y.is_contiguous()


def test_every_start_is_as_likely() -> None:
    """Catches a first or last window that is never drawn, or drawn more often than others.

    Each of 10 starts is expected 2000 times with standard deviation 42; six of those are allowed.
    """
    torch.manual_seed(0)
    x, _ = get_batch(np.arange(14, dtype=np.uint16), 20_000, 4, "cpu")
    counts = Counter(x[:, 0].tolist())
    assert sorted(counts) == list(range(10))
    assert all(abs(count - 2000) < 6 * 42 for count in counts.values())


def test_batches_repeat_with_the_seed() -> None:
    """Catches a generator that can't be seeded, and one that always gives the same."""
    dataset = np.arange(1000)
    torch.manual_seed(1)
    first, second = (get_batch(dataset, 8, 3, "cpu")[0] for _ in range(2))
    torch.manual_seed(1)
    assert torch.equal(get_batch(dataset, 8, 3, "cpu")[0], first)
    assert not torch.equal(first, second)


def test_large_ids_of_a_mapped_file(tmp_path: Path) -> None:
    """Catches ids that wrap around at 32768, and a file that is read as a whole."""
    file = tmp_path / "ids.bin"
    (65535 - np.arange(1000, dtype=np.uint16)).tofile(file)
    dataset = np.memmap(file, dtype=np.uint16, mode="r")
    x, y = get_batch(dataset, 50, 5, "cpu")
    assert torch.equal(y, x - 1)
    assert x.min() > 64000


def test_batch_device_and_short_datasets() -> None:
    """Catches a device that is ignored, the shortest dataset refused, and one too short taken."""
    x, y = get_batch(np.arange(6), 3, 5, "meta")
    assert (x.device.type, y.device.type) == ("meta", "meta")
    assert torch.equal(get_batch(np.arange(6), 3, 5, "cpu")[1], torch.arange(1, 6).expand(3, 5))
    with pytest.raises(ValueError, match="need 7; the dataset has 6"):
        get_batch(np.arange(6), 3, 6, "cpu")
