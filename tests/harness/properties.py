"""Properties that hold for many tasks and need no saved answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from tests.harness.bridge import Adapter
from tests.harness.compare import check, check_close, check_equal
from tests.harness.plain import Plain
from tests.harness.recipes import Expanded, Strided

Arguments = Mapping[str, Plain]
UNLIKE_ANSWERS = "two equal calls give unlike answers"


def check_memory(adapter: Adapter, arguments: Arguments, *names: str) -> None:
    """Inputs stay, two calls agree, and the inputs `names` may lie in memory as they like.

    A dict that is passed in may lose names or get new ones; the tensors in it stay as they were.
    """
    first = adapter.answer(arguments)
    _check_kept(first.inputs, arguments)
    _check_same(adapter(**arguments), first.output, UNLIKE_ANSWERS, limit=0.0)
    for name in names:
        _check_layouts(adapter, arguments, name, first.output)


def _check_kept(after: Plain, before: Mapping[str, Plain]) -> None:
    for name, value in before.items():
        if not isinstance(after, dict) or name not in after:
            continue
        if isinstance(value, dict):
            _check_kept(after[name], value)
        elif isinstance(value, Tensor):
            check_close(after[name], value, f"`{name}` was changed by the call", limit=0.0)


def _check_same(got: Plain, expected: Plain, why: str, *, limit: float = 1.0) -> None:
    """Hold an answer, or each item of one that has several, against an earlier answer."""
    if isinstance(expected, Tensor):
        check_close(got, expected, why, limit=limit)
    elif isinstance(expected, list | tuple):
        check(type(got) is type(expected) and len(got) == len(expected), why)
        for one, other in zip(got, expected, strict=True):
            _check_same(one, other, why, limit=limit)
    elif isinstance(expected, dict):
        check(isinstance(got, dict) and got.keys() == expected.keys(), why)
        for key, other in expected.items():
            _check_same(got[key], other, why, limit=limit)
    else:
        check_equal(got, expected, why)


def _check_layouts(adapter: Adapter, arguments: Arguments, name: str, answer: Plain) -> None:
    tensor: Tensor = arguments[name]
    strided = adapter(**{**arguments, name: Strided(tensor)})
    why = f"with `{name}` not contiguous, the answer is not the one with it contiguous"
    _check_same(strided, answer, why)
    expanded = adapter(**{**arguments, name: Expanded(tensor[:1], tuple(tensor.shape))})
    whole = adapter(**{**arguments, name: tensor[:1].expand(tensor.shape).clone()})
    why = f"with `{name}` an expanded view, the answer is not the one with a copy of it"
    _check_same(expanded, whole, why)


def check_rows_alone(adapter: Adapter, arguments: Arguments, *names: str) -> None:
    """Each item along the first axis of the arguments `names` gets the same answer on its own."""
    together = adapter(**arguments)
    check(isinstance(together, Tensor) and together.ndim > 0, "the answer has no leading axis")
    for i in range(len(arguments[names[0]])):
        alone = adapter(**{**arguments, **{name: arguments[name][i] for name in names}})
        check_close(alone, together[i], f"alone, item {i} gets another answer than in its batch")


def check_gradients(
    adapter: Adapter, arguments: Arguments, reference: Callable[..., Tensor], *wrt: str
) -> None:
    """Gradients reach the arguments `wrt`, and are those of `reference` in float64."""
    leaves = {name: arguments[name].double().requires_grad_() for name in wrt}
    expected = reference(**leaves)
    generator = torch.Generator().manual_seed(expected.numel())
    cotangent = torch.randn(expected.shape, generator=generator)
    gradients = torch.autograd.grad((expected * cotangent).sum(), list(leaves.values()))
    answer = adapter.answer(arguments, cotangent, wrt)
    for name, gradient in zip(wrt, gradients, strict=True):
        found = answer.gradients[name]
        check(found is not None, f"no gradient reaches `{name}`: is something detached on the way?")
        check_close(found, gradient, f"the gradient of `{name}` is wrong", dtype=torch.float32)


def check_dtype_kept(adapter: Adapter, arguments: Arguments, *names: str) -> None:
    """bfloat16 and float16 in, the same dtype out, and every value finite."""
    for dtype in (torch.bfloat16, torch.float16):
        half = {name: arguments[name].to(dtype) for name in names}
        output = adapter(**{**arguments, **half})
        check(isinstance(output, Tensor), "returned no tensor")
        check(output.dtype == dtype, f"{dtype} in gives {output.dtype} out")
        check(bool(output.isfinite().all()), f"{dtype} in gives NaN or infinity")


def check_weights(seen: Mapping[str, Plain], expected: Mapping[str, tuple[int, ...]]) -> None:
    """A probed module has exactly these parameters, and nothing else is saved with it."""
    check_parameters(seen["parameters"], expected)
    extra = set(seen["state"]) - set(expected)
    check(not extra, f"the state dict holds more than the weights: {sorted(extra)}")


def check_parameters(
    parameters: Mapping[str, Plain], expected: Mapping[str, tuple[int, ...]]
) -> None:
    """A probed module has exactly these parameters, by name and shape, and all are trained."""
    found = {name: tuple(p["shape"]) for name, p in parameters.items()}
    check(found == dict(expected), f"the parameters are {found}, expected {dict(expected)}")
    frozen = [f"`{name}`" for name, p in parameters.items() if not p["requires_grad"]]
    check(not frozen, f"{', '.join(frozen)} has requires_grad=False")


def value_of(seen: Mapping[str, Plain], name: str) -> Tensor:
    """The values of a probed module's parameter.

    Raises:
        WrongAnswer: there is none of that name.
    """
    values: dict[str, Tensor] = seen["values"]
    found = ", ".join(values) or "none"
    check(name in values, f"no parameter is called `{name}`; there are: {found}")
    return values[name]


def check_gradients_reach(gradients: Mapping[str, Tensor | None]) -> None:
    """No parameter of a probed module is left without a gradient."""
    for name, gradient in gradients.items():
        reached = gradient is not None and bool((gradient != 0).any())
        check(reached, f"no gradient reaches `{name}`")


def check_placed(described: Mapping[str, Plain], *, device: str, dtype: str | None = None) -> None:
    """Every parameter or buffer of a probed module is where, and what, it was asked to be."""
    asked = {"device": device} if dtype is None else {"device": device, "dtype": dtype}
    for what, wanted in asked.items():
        wrong = [f"`{name}`" for name, tensor in described.items() if tensor[what] != wanted]
        check(not wrong, f"{what} {wanted} was asked for and not given to {', '.join(wrong)}")


def check_no_strangers(met: Sequence[str]) -> None:
    """No tensor that was made without a device meets the input's in a probed module."""
    where = ", ".join(dict.fromkeys(met))
    check(
        not met, f"a tensor made without `device` meets the input in {where}: on a GPU they differ"
    )


def check_truncated_normal(values: Tensor, std: float) -> None:
    """Many values look drawn from a normal of mean 0 and `std`, cut at three standard deviations.

    The largest gap between the empirical and the theoretical distribution is held against the
    Kolmogorov-Smirnov bound that a right answer exceeds once in ten million draws.
    """
    drawn = torch.from_numpy(np.sort(values.double().flatten().numpy())) / std
    count = drawn.numel()
    furthest = drawn.abs().max().item()
    check(furthest <= 3 + 1e-6, "a value lies {:.2f} standard deviations out", furthest)
    often = int(torch.unique_consecutive(drawn, return_counts=True)[1].max())
    check(often <= 10, f"one value stands there {often} times, so it was not drawn")
    inside = torch.erf(torch.tensor(3 / 2**0.5, dtype=torch.float64))
    theory = 0.5 + 0.5 * torch.erf(drawn / 2**0.5) / inside
    steps = torch.arange(count + 1, dtype=torch.float64) / count
    gap = torch.maximum((steps[1:] - theory).abs(), (theory - steps[:-1]).abs()).max().item()
    bound = (torch.log(torch.tensor(2e7)) / (2 * count)).sqrt().item()
    measured = values.double().std().item()
    why = "the values have std {:.4g}, unlike a truncated normal of std {:.4g}"
    check(gap <= bound, why, measured, std)
