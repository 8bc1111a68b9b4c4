"""Checks of properties that hold for many tasks and need no saved answers."""

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
UNLIKE_ANSWERS = "two calls with equal arguments give different answers"


def check_memory(adapter: Adapter, arguments: Arguments, *names: str) -> None:
    """Check that an adapter treats its inputs as memory that belongs to the caller.

    The call changes no input tensor. A second call gives the same answer. The memory layout of
    the inputs `names` does not change the answer. A dict may lose or gain names, but the tensors
    in it must not change.
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
    """Check that an answer equals an earlier one; lists, tuples and dicts item by item."""
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
    why = f"the answer changes if `{name}` is not contiguous in memory"
    _check_same(strided, answer, why)
    expanded = adapter(**{**arguments, name: Expanded(tensor[:1], tuple(tensor.shape))})
    whole = adapter(**{**arguments, name: tensor[:1].expand(tensor.shape).clone()})
    why = f"the answer changes if `{name}` is an expanded view instead of a copy"
    _check_same(expanded, whole, why)


def check_rows_alone(adapter: Adapter, arguments: Arguments, *names: str) -> None:
    """Check that each item of a batch gets the same answer alone as in the batch.

    Args:
        adapter: the adapter.
        arguments: its arguments.
        names: the arguments that have a batch axis, which is their first axis.
    """
    together = adapter(**arguments)
    ranked = isinstance(together, Tensor) and together.ndim > 0
    check(ranked, "the answer is not a tensor with a leading axis")
    for i in range(len(arguments[names[0]])):
        alone = adapter(**{**arguments, **{name: arguments[name][i] for name in names}})
        check_close(alone, together[i], f"item {i} gets another answer alone than in its batch")


def check_gradients(
    adapter: Adapter, arguments: Arguments, reference: Callable[..., Tensor], *wrt: str
) -> None:
    """Check that the gradients of the arguments `wrt` are those of `reference` in float64."""
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
    """Check that bfloat16 and float16 inputs give outputs of the same dtype, all finite.

    Args:
        adapter: the adapter.
        arguments: its arguments.
        names: the arguments that are converted.
    """
    for dtype in (torch.bfloat16, torch.float16):
        half = {name: arguments[name].to(dtype) for name in names}
        output = adapter(**{**arguments, **half})
        check(isinstance(output, Tensor), "the answer is not a tensor")
        check(output.dtype == dtype, f"inputs of {dtype} give an output of {output.dtype}")
        check(bool(output.isfinite().all()), f"inputs of {dtype} give NaN or infinity")


def check_weights(seen: Mapping[str, Plain], expected: Mapping[str, tuple[int, ...]]) -> None:
    """Check that a probed module has exactly these parameters and saves nothing else."""
    check_parameters(seen["parameters"], expected)
    extra = set(seen["state"]) - set(expected)
    check(not extra, f"the state dict holds more than the weights: {sorted(extra)}")


def check_parameters(
    parameters: Mapping[str, Plain], expected: Mapping[str, tuple[int, ...]]
) -> None:
    """Check that a probed module has exactly these parameters, and that all require gradients.

    Args:
        parameters: the parameters that the probe described.
        expected: the shapes by name.
    """
    found = {name: tuple(p["shape"]) for name, p in parameters.items()}
    check(found == dict(expected), f"the parameters are {found}, expected {dict(expected)}")
    frozen = [f"`{name}`" for name, p in parameters.items() if not p["requires_grad"]]
    check(not frozen, f"{', '.join(frozen)} has requires_grad=False")


def value_of(seen: Mapping[str, Plain], name: str) -> Tensor:
    """Return the values of one parameter of a probed module.

    Raises:
        WrongAnswer: the module has no parameter of that name.
    """
    values: dict[str, Tensor] = seen["values"]
    found = ", ".join(values) or "none"
    check(name in values, f"no parameter is called `{name}`; the parameters are: {found}")
    return values[name]


def check_gradients_reach(gradients: Mapping[str, Tensor | None]) -> None:
    """Check that every parameter of a probed module gets a gradient that is not zero."""
    for name, gradient in gradients.items():
        reached = gradient is not None and bool((gradient != 0).any())
        check(reached, f"no gradient reaches `{name}`")


def check_placed(described: Mapping[str, Plain], *, device: str, dtype: str | None = None) -> None:
    """Check that every parameter or buffer of a probed module has the requested device and dtype.

    Args:
        described: the parameters or buffers that the probe described.
        device: the type of the device.
        dtype: the name of the dtype; None means any.
    """
    asked = {"device": device} if dtype is None else {"device": device, "dtype": dtype}
    for what, wanted in asked.items():
        wrong = [f"`{name}`" for name, tensor in described.items() if tensor[what] != wanted]
        why = f"{what} {wanted} was requested, but these have another {what}: {', '.join(wrong)}"
        check(not wrong, why)


def check_no_strangers(met: Sequence[str]) -> None:
    """Check that a probed module never mixes a tensor made without `device` with its input.

    Args:
        met: the names of the operations that did so.
    """
    where = ", ".join(dict.fromkeys(met))
    why = f"{where} mixes the input with a tensor made without `device`: on a GPU this fails"
    check(not met, why)


def check_truncated_normal(values: Tensor, std: float) -> None:
    """Check that values follow a normal distribution, truncated at three standard deviations.

    The distribution has mean 0 and standard deviation `std` before it is truncated. The largest
    gap between the empirical and the theoretical distribution function must not exceed a
    Kolmogorov-Smirnov bound. Values that are drawn correctly exceed it once in ten million times.
    """
    drawn = torch.from_numpy(np.sort(values.double().flatten().numpy())) / std
    count = drawn.numel()
    furthest = drawn.abs().max().item()
    why = "a value is {:.2f} standard deviations away from 0, and 3 are allowed"
    check(furthest <= 3 + 1e-6, why, furthest)
    often = int(torch.unique_consecutive(drawn, return_counts=True)[1].max())
    check(often <= 10, f"one value occurs {often} times, so it is not drawn at random")
    inside = torch.erf(torch.tensor(3 / 2**0.5, dtype=torch.float64))
    theory = 0.5 + 0.5 * torch.erf(drawn / 2**0.5) / inside
    steps = torch.arange(count + 1, dtype=torch.float64) / count
    gap = torch.maximum((steps[1:] - theory).abs(), (theory - steps[:-1]).abs()).max().item()
    bound = (torch.log(torch.tensor(2e7)) / (2 * count)).sqrt().item()
    measured = values.double().std().item()
    why = "the values have std {:.4g}: they do not follow a truncated normal with std {:.4g}"
    check(gap <= bound, why, measured, std)
