"""The solution's AdamW against PyTorch's, in float64."""

import copy
import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from cs336_basics.adamw import AdamW
from staff.tests.solution.checks import agree, normal

F64 = torch.float64
SHAPES = [(3, 4), (5,), (), (2, 2, 2)]
SETTINGS = [
    {},
    {"lr": 0.3, "betas": (0.5, 0.9), "eps": 0.1, "weight_decay": 0.5},
    {"lr": 0.01, "betas": (0.0, 0.0), "weight_decay": 0.0},
    {"lr": 0.0, "weight_decay": 0.1},
]
Make = Callable[..., torch.optim.Optimizer]


def _parameters(dtype: torch.dtype = F64) -> list[nn.Parameter]:
    return [nn.Parameter(normal(*shape, root=2, dtype=dtype)) for shape in SHAPES]


def _give_gradients(parameters: list[nn.Parameter], step: int) -> None:
    """Give gradients that change with the step; the second parameter gets one now and then."""
    for i, parameter in enumerate(parameters):
        scale = 1 + step % 3
        gradient = scale * normal(*parameter.shape, root=3, dtype=F64) * (-1) ** (step // (i + 1))
        parameter.grad = None if i == 1 and step % 3 else gradient.to(parameter.dtype)


def _run(make: Make, steps: int, change: Callable[..., None] | None = None) -> list[Tensor]:
    parameters = _parameters()
    optimizer = make(parameters)
    for step in range(steps):
        _give_gradients(parameters, step)
        if change:
            change(optimizer, step)
        optimizer.step()
    return [p.detach() for p in parameters]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_many_steps(settings: dict) -> None:
    """Catches a wrong moment, correction, eps or decay, and a counter shared by all parameters."""
    for steps in (1, 2, 300):
        ours = _run(lambda p: AdamW(p, **settings), steps)
        theirs = _run(lambda p: torch.optim.AdamW(p, **settings), steps)
        for mine, other in zip(ours, theirs, strict=True):
            agree(mine, other)


def test_defaults_are_those_of_torch() -> None:
    """Catches a default that surprises those who know PyTorch's."""
    theirs = torch.optim.AdamW(_parameters()).defaults
    assert {name: theirs[name] for name in AdamW(_parameters()).defaults} == AdamW(
        _parameters()
    ).defaults


def test_settings_changed_on_the_way() -> None:
    """Catches settings that are read once, when the optimizer is made."""

    def change(optimizer: torch.optim.Optimizer, step: int) -> None:
        group = optimizer.param_groups[0]
        group["lr"] = 0.1 / (step + 1)
        group["betas"] = (0.9, 0.99) if step < 5 else (0.5, 0.8)
        group["weight_decay"] = 0.1 * step

    pairs = zip(_run(AdamW, 20, change), _run(torch.optim.AdamW, 20, change), strict=True)
    for mine, other in pairs:
        agree(mine, other)


def test_groups() -> None:
    """Catches settings of one group that are used for all."""

    def grouped(make: Make) -> Make:
        return lambda p: make(
            [{"params": p[:2], "lr": 0.5}, {"params": p[2:], "weight_decay": 0.7, "eps": 0.3}]
        )

    for mine, other in zip(
        _run(grouped(AdamW), 10), _run(grouped(torch.optim.AdamW), 10), strict=True
    ):
        agree(mine, other)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_state_has_the_dtype_of_its_parameter(dtype: torch.dtype) -> None:
    """Catches a parameter that changes its dtype, and a state that a reload would round."""
    parameters = _parameters(dtype)
    optimizer = AdamW(iter(parameters), lr=0.1)
    assert not optimizer.state
    _give_gradients(parameters, 1)
    optimizer.step()
    assert parameters[1] not in optimizer.state
    for parameter in (parameters[0], *parameters[2:]):
        assert parameter.dtype == dtype
        assert parameter.isfinite().all()
        moments = [x for x in optimizer.state[parameter].values() if isinstance(x, Tensor)]
        assert [x.dtype for x in moments] == [dtype, dtype]


def test_closure() -> None:
    """Catches a closure that is not called, runs without gradients, or whose loss is lost."""
    parameter = nn.Parameter(torch.tensor(3.0))
    optimizer = AdamW([parameter], lr=0.1)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = parameter.square()
        loss.backward()
        return loss

    assert optimizer.step(closure) == 9.0
    assert parameter < 3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, F64], ids=str)
def test_state_dict_round_trip(dtype: torch.dtype) -> None:
    """Catches state that is lost or rounded on its way through a state dict."""
    parameters = _parameters(dtype)
    optimizer = AdamW(parameters, lr=0.1)
    for step in range(4):
        _give_gradients(parameters, step)
        optimizer.step()
    others = [nn.Parameter(p.detach().clone()) for p in parameters]
    restored = AdamW(others)
    restored.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for step in range(4, 8):
        for these, make in ((parameters, optimizer), (others, restored)):
            _give_gradients(these, step)
            make.step()
    for one, other in zip(parameters, others, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *itertools.product(["lr", "eps", "weight_decay"], [-1e-9, float("nan")]),
        ("betas", (1.0, 0.9)),
        ("betas", (0.9, 1.0)),
        ("betas", (-0.1, 0.9)),
    ],
)
def test_bad_settings_are_refused(name: str, value: object) -> None:
    """Catches a setting with which the parameters would run away."""
    with pytest.raises(ValueError, match=name):
        AdamW(_parameters(), **{name: value})
