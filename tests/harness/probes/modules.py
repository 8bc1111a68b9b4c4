"""Probes of modules: construct a module, call it, differentiate it, and describe the results."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn

from tests.harness.devices import Strangers
from tests.harness.plain import Plain, plain
from tests.harness.probes.symbols import resolve


def written(symbols: Sequence[str]) -> bool:
    """Return whether no function or method of `symbols` is still a stub."""
    return not any(_is_stub(f) for symbol in symbols for f in _functions(resolve(symbol)))


def module(
    symbol: str,
    arguments: Mapping[str, Plain],
    *,
    dtype: str | None = None,
    device: str | None = None,
    seed: int = 0,
    weights: Mapping[str, Tensor] | None = None,
    training: bool = True,
    warm_up: Sequence[Tensor] | None = None,
    inputs: Sequence[Tensor] | None = None,
    cotangent: Tensor | None = None,
    watched: bool = False,
    around: str | None = None,
    part: int | None = None,
) -> dict[str, Plain]:
    """Construct a module and describe it; with `inputs`, call it; with `cotangent`, differentiate.

    Args:
        symbol: the class, as `package.module:Name`.
        arguments: the keyword arguments of its constructor.
        dtype: the name of the constructor's dtype, such as `bfloat16`.
        device: the name of the constructor's device, such as `meta`.
        seed: the seed of torch's generator on the CPU, set before the construction.
        weights: a state dict to load (strictly) after the construction.
        training: whether the module is in training mode.
        warm_up: the positional arguments of a call before the observed one.
        inputs: the positional arguments of the observed call.
        cotangent: the gradient of a loss with respect to the output of that call.
        watched: report the operations that would mix devices on a GPU.
        around: a class that takes the module as its only argument, and is probed in its place.
        part: the index of the tensor that the cotangent belongs to, if the output is a tuple.
    """
    extra: dict[str, Any] = {} if dtype is None else {"dtype": getattr(torch, dtype)}
    if device is not None:
        extra["device"] = torch.device(device)
    torch.default_generator.manual_seed(seed)
    built: nn.Module = resolve(symbol)(**arguments, **extra)
    if around is not None:
        built = resolve(around)(built)
    if weights is not None:
        built.load_state_dict(weights, strict=True)
    seen: dict[str, Plain] = {
        "parameters": {name: _describe(p) for name, p in built.named_parameters()},
        "buffers": {name: _describe(b) for name, b in built.named_buffers()},
        "state": list(built.state_dict()),
    }
    if device != "meta":
        seen["values"] = {name: plain(p) for name, p in built.named_parameters()}
    built.train(training)
    if warm_up is not None:
        built(*warm_up)
    if inputs is not None:
        strangers = Strangers() if watched else None
        with strangers or contextlib.nullcontext():
            output = built(*inputs)
        if strangers:
            seen["strangers"] = strangers.met
        seen["output"] = plain(output)
        if cotangent is not None:
            output = output if part is None else output[part]
            if output.requires_grad:
                (output * cotangent).sum().backward()
            grads = {name: p.grad for name, p in built.named_parameters()}
            seen["gradients"] = {name: None if g is None else plain(g) for name, g in grads.items()}
    return seen


def _describe(tensor: Tensor) -> dict[str, Plain]:
    return {
        "shape": tuple(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": tensor.device.type,
        "requires_grad": tensor.requires_grad,
    }


def _functions(found: Any) -> list[FunctionType]:
    members = vars(found).values() if inspect.isclass(found) else [found]
    return [inspect.unwrap(m) for m in members if isinstance(m, FunctionType)]


def _is_stub(function: FunctionType) -> bool:
    """Return whether a function is a stub: NotImplementedError is the only name that it uses."""
    return function.__code__.co_names == ("NotImplementedError",)
