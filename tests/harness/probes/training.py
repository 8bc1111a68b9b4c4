"""Probes of training: the optimizer, the schedule, gradient clipping and batches.

The probes make their own parameters, files and arrays, and call the adapters with them.
"""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.overrides import TorchFunctionMode

from tests.harness.plain import Plain, plain
from tests.harness.probes.symbols import resolve

Settings = Mapping[str, Plain]
Gradients = Sequence[Sequence[Tensor | None]]


def leave_the_compiler_out() -> None:
    """Let PyTorch's optimizers work without its compiler, whose import is slower than the suite.

    PyTorch decorates the methods of optimizers so that their first call imports the compiler. The
    mark that is set here prevents this import.
    """
    for method in vars(Optimizer).values():
        inner = getattr(method, "__wrapped__", None)
        if inner is not None and not hasattr(inner, "__dynamo_disable"):
            setattr(inner, "__dynamo_disable", inner)


def adamw(adapters: ModuleType, **given: Any) -> Tensor:
    """Return all parameters after each recorded step, `(steps, values)`; see `adamw_run`."""
    values: Tensor = adamw_run(adapters, **given)["values"]
    return values


def adamw_run(
    adapters: ModuleType,
    parameters: Sequence[Tensor],
    gradients: Gradients,
    settings: Settings,
    *,
    steps: int | None = None,
    every: int = 1,
    groups: Sequence[Mapping[str, Plain]] | None = None,
    changes: Mapping[int, Settings] | None = None,
    iterator: bool = False,
) -> dict[str, Plain]:
    """Take steps with the submission's AdamW, and return the parameters and their gradients.

    Args:
        adapters: the adapters of the submission.
        parameters: the initial values of the parameters.
        gradients: the gradients of all parameters for each step; the list is repeated if it ends.
        settings: the keyword arguments of the optimizer.
        steps: the number of steps; None means the number of rows of `gradients`.
        every: the number of steps between two recorded ones.
        groups: for each group, the indices of its `members` and its own settings.
        changes: new settings of all groups before a step, by the number of the step, from 0.
        iterator: pass the parameters as an iterator, not as a list.
    """
    leave_the_compiler_out()
    leaves = [nn.Parameter(p) for p in parameters]
    given: Any = leaves
    if groups is not None:
        given = [_group(leaves, group) for group in groups]
    optimizer = adapters.get_adamw_cls()(iter(given) if iterator else given, **settings)
    rows = []
    for step in range(len(gradients) if steps is None else steps):
        for group in optimizer.param_groups:
            group.update((changes or {}).get(step, {}))
        _step(optimizer, leaves, gradients[step % len(gradients)])
        if (step + 1) % every == 0:
            rows.append(_flat(leaves))
    return {
        "values": torch.stack(rows),
        "dtypes": [str(p.dtype).removeprefix("torch.") for p in leaves],
        "gradients": [plain(p.grad) for p in leaves],
    }


def adamw_closure(adapters: ModuleType, start: float, settings: Settings) -> dict[str, Plain]:
    """Minimise `θ²` for two steps, with a closure that computes the loss and the gradient."""
    leave_the_compiler_out()
    parameter = nn.Parameter(torch.tensor([start]))
    optimizer = adapters.get_adamw_cls()([parameter], **settings)
    calls = []

    def closure() -> Tensor:
        calls.append(torch.is_grad_enabled())
        with torch.enable_grad():
            loss = parameter.square().sum()
        optimizer.zero_grad()
        loss.backward()
        return loss.detach()

    losses = [optimizer.step(closure) for _ in range(2)]
    return {
        "losses": [None if loss is None else float(loss) for loss in losses],
        "with_gradients": calls,
        "value": parameter.item(),
    }


def adamw_restored(
    adapters: ModuleType,
    parameters: Sequence[Tensor],
    gradients: Gradients,
    settings: Settings,
    stop: int,
) -> dict[str, Plain]:
    """Take all steps with one optimizer, and again with a new optimizer from step `stop` on.

    The new optimizer loads the state of the first one.
    """
    leave_the_compiler_out()
    ends = []
    for stops in (len(gradients), stop):
        leaves = [nn.Parameter(p.clone()) for p in parameters]
        optimizer = adapters.get_adamw_cls()(leaves, **settings)
        for row in gradients[:stops]:
            _step(optimizer, leaves, row)
        if stops < len(gradients):
            state = optimizer.state_dict()
            leaves = [nn.Parameter(p.detach().clone()) for p in leaves]
            optimizer = adapters.get_adamw_cls()(leaves, **{**settings, "lr": 9.0})
            optimizer.load_state_dict(state)
        for row in gradients[stops:]:
            _step(optimizer, leaves, row)
        ends.append(_flat(leaves))
    return {"straight": ends[0], "restored": ends[1]}


def adamw_refusals(adapters: ModuleType, settings: Sequence[Settings]) -> list[bool]:
    """Return, for each of the settings, whether AdamW refuses them with a ValueError."""
    leave_the_compiler_out()
    refused = []
    for each in settings:
        try:
            adapters.get_adamw_cls()([nn.Parameter(torch.zeros(1))], **each)
            refused.append(False)
        except ValueError:
            refused.append(True)
    return refused


def schedule(adapters: ModuleType, iterations: Sequence[int], **given: Any) -> Tensor:
    """Return the learning rate at each of the iterations."""
    rates = [adapters.run_get_lr_cosine_schedule(it, **given) for it in iterations]
    return torch.tensor([float(rate) for rate in rates], dtype=torch.float64)


def clipped(adapters: ModuleType, gradients: Sequence[Tensor | None], max_l2_norm: float) -> Tensor:
    """Return all gradients after clipping, as one vector."""
    seen = clipping(adapters, gradients, max_l2_norm)
    return torch.cat([g.flatten() for g in seen["gradients"] if g is not None])


def clipping(
    adapters: ModuleType,
    gradients: Sequence[Tensor | None],
    max_l2_norm: float,
    *,
    frozen: Sequence[int] = (),
    iterator: bool = False,
    symbol: str | None = None,
) -> dict[str, Plain]:
    """Clip the gradients of new parameters, and describe the gradients and parameters.

    Args:
        adapters: the adapters of the submission.
        gradients: one gradient for each parameter.
        max_l2_norm: the largest norm allowed.
        frozen: the indices of parameters whose `requires_grad` is False.
        iterator: pass the parameters as an iterator, not as a list.
        symbol: the function to call instead of the adapter.
    """
    parameters = [
        nn.Parameter(torch.ones(3) if g is None else torch.ones_like(g)) for g in gradients
    ]
    for i, (parameter, gradient) in enumerate(zip(parameters, gradients, strict=True)):
        parameter.grad = gradient
        parameter.requires_grad_(i not in frozen)
    clip = adapters.run_gradient_clipping if symbol is None else resolve(symbol)
    returned = clip(iter(parameters) if iterator else parameters, max_l2_norm)
    return {
        "gradients": [plain(p.grad) for p in parameters],
        "in_place": [p.grad is g for p, g in zip(parameters, gradients, strict=True)],
        "values": _flat(parameters),
        "returned": plain(returned) if symbol is not None else None,
    }


def batches(
    adapters: ModuleType,
    dataset: np.ndarray[Any, Any],
    batch_size: int,
    context_length: int,
    *,
    device: str = "cpu",
    calls: int = 1,
    seed: int | None = None,
) -> list[dict[str, Plain]]:
    """Draw batches; return inputs and targets, or on `meta` their shapes, dtypes and devices.

    Args:
        adapters: the adapters of the submission.
        dataset: token ids.
        batch_size: the number of windows in a batch.
        context_length: the number of tokens in a window.
        device: the device of the batch.
        calls: the number of batches.
        seed: the seed of the generators of PyTorch, numpy and Python, set before the first batch.
    """
    if seed is not None:
        torch.default_generator.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)
    drawn = [
        adapters.run_get_batch(dataset, batch_size, context_length, device) for _ in range(calls)
    ]
    return [{"inputs": _described(x), "targets": _described(y)} for x, y in drawn]


def batch_memory(
    adapters: ModuleType, dataset: np.ndarray[Any, Any], batch_size: int, context_length: int
) -> dict[str, int]:
    """Return the bytes of memory for one batch: the peak of Python and numpy, or one tensor's."""

    def draw() -> None:
        adapters.run_get_batch(dataset, batch_size, context_length, "cpu")

    draw()  # the memory of imports and caches of the first call is not counted
    tracemalloc.start()
    try:
        with _Largest(dataset) as largest:
            draw()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return {"dataset": dataset.nbytes, "batch": max(peak, largest.nbytes)}


class _Largest(TorchFunctionMode):
    """Records the size of the largest new tensor that does not share the dataset's memory."""

    def __init__(self, dataset: np.ndarray[Any, Any]) -> None:
        super().__init__()
        start = dataset.__array_interface__["data"][0]
        self._mapped = range(start, start + dataset.nbytes)
        self.nbytes = 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run the operation, and record the size of its result."""
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            storage = result.untyped_storage()
            if storage.data_ptr() not in self._mapped:
                self.nbytes = max(self.nbytes, storage.nbytes())
        return result


def _group(leaves: Sequence[nn.Parameter], group: Mapping[str, Plain]) -> dict[str, Any]:
    settings = {name: value for name, value in group.items() if name != "members"}
    return {"params": [leaves[i] for i in group["members"]], **settings}


def _step(
    optimizer: Optimizer, leaves: Sequence[nn.Parameter], gradients: Sequence[Tensor | None]
) -> None:
    for parameter, gradient in zip(leaves, gradients, strict=True):
        parameter.grad = None if gradient is None else gradient.clone()
    optimizer.step()


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([t.detach().flatten() for t in tensors])


def _described(tensor: Tensor) -> Plain:
    if tensor.device.type != "meta":
        return plain(tensor)
    return {"shape": tuple(tensor.shape), "dtype": str(tensor.dtype), "device": "meta"}
