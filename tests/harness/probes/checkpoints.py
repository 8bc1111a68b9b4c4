"""Probes of checkpoints: a run is saved, and another model continues it."""

from __future__ import annotations

import io
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.harness.plain import Plain, plain
from tests.harness.probes.training import leave_the_compiler_out
from tests.harness.recipes import scratch_file


class _Momentum(Optimizer):
    """An optimizer whose steps follow a decaying mean of the gradients and become smaller.

    PyTorch's own optimizers import its compiler in their first step, which takes a second.
    """

    def __init__(self, params: Any, lr: float = 0.1, momentum: float = 0.9) -> None:
        leave_the_compiler_out()
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Take one step."""
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                mean = state.setdefault("mean", torch.zeros_like(parameter))
                state["step"] = state.get("step", 0) + 1
                mean.mul_(group["momentum"]).add_(parameter.grad)
                parameter.sub_(mean * (group["lr"] / state["step"]))


def resumed_run(
    adapters: ModuleType, place: str, iteration: int, *, dtype: str = "float32", stop: int = 3
) -> dict[str, Plain]:
    """Train a model, save it and continue; load the checkpoint into another model and continue.

    Args:
        adapters: the adapters module of the submission.
        place: the target of the checkpoint: `path`, `pathlib`, `file` or `memory`.
        iteration: the iteration that is saved.
        dtype: the dtype of the model.
        stop: the number of steps before the checkpoint, and again after it.
    """
    model = _model(0, dtype)
    optimizer = _Momentum(model.parameters())
    _train(model, optimizer, range(stop))
    with _writable(place) as (out, reopen):
        adapters.run_save_checkpoint(model, optimizer, iteration, out)
        saved = _state(model, optimizer)
        other = _model(1, dtype)
        its_own = _Momentum(other.parameters(), lr=7.0, momentum=0.0)
        returned = adapters.run_load_checkpoint(reopen(), other, its_own)
    loaded, settings = _state(other, its_own), its_own.param_groups[0]
    for run, steps in ((model, optimizer), (other, its_own)):
        _train(run, steps, range(stop, 2 * stop))
    return {
        "iteration": returned if type(returned) is int else repr(returned),
        "saved": saved,
        "loaded": loaded,
        "settings": {"lr": settings["lr"], "momentum": settings["momentum"]},
        "straight": _state(model, optimizer),
        "resumed": _state(other, its_own),
    }


def refused_load(adapters: ModuleType, kind: str) -> dict[str, Plain]:
    """Load a checkpoint into a model or optimizer that it does not fit.

    Args:
        adapters: the adapters module of the submission.
        kind: the difference of the other model: `wider`, `deeper`, `shallower` or `renamed`; or
            `groups`: the same model with an optimizer of two groups.
    """
    model = _model(0)
    optimizer = _Momentum(model.parameters())
    _train(model, optimizer, range(2))
    file = str(scratch_file(".pt"))
    adapters.run_save_checkpoint(model, optimizer, 2, file)
    stranger = _stranger(kind)
    leaves = list(stranger.parameters())
    cut = 2 if kind == "groups" else len(leaves)
    groups = [{"params": part} for part in (leaves[:cut], leaves[cut:]) if part]
    its_own = _Momentum(groups, lr=0.5)
    _train(stranger, its_own, range(1))
    before = _state(stranger, its_own)
    error = None
    try:
        adapters.run_load_checkpoint(file, stranger, its_own)
    except NotImplementedError:
        raise
    except Exception as raised:  # noqa: BLE001 - any error is a refusal
        error = type(raised).__name__
    return {"error": error, "before": before, "after": _state(stranger, its_own)}


def wrapped(adapters: ModuleType, wrapper: str) -> list[str]:
    """Save a wrapped model and load it into an unwrapped one, and the other way round.

    Args:
        adapters: the adapters module of the submission.
        wrapper: `DistributedDataParallel` or `torch.compile`. Both are replaced by imitations,
            since the first needs several processes and the second takes a second. If the second
            imitation fails and the compiler was imported, the real `torch.compile` is tried.

    Returns:
        the directions that fail: `saved from`, `loaded into`, both or none.
    """
    if wrapper == "DistributedDataParallel":
        return _through(adapters, _Distributed)
    failed = _through(adapters, _Compiled)
    if failed and "torch._dynamo" in sys.modules:
        compiled: Callable[[nn.Module], nn.Module] = torch.compile  # type: ignore[assignment]
        return _through(adapters, compiled)
    return failed


def loading_code(adapters: ModuleType) -> dict[str, Plain]:
    """Check the submission's file for objects, then let the submission load a file with code."""
    model = _model(0)
    optimizer = _Momentum(model.parameters())
    _train(model, optimizer, range(1))
    file, target = scratch_file(".pt"), scratch_file(".txt")
    adapters.run_save_checkpoint(model, optimizer, 1, str(file))
    problem = None
    try:
        torch.load(file, weights_only=True)
    except pickle.UnpicklingError as error:
        found = re.findall(r"GLOBAL ([\w.]+)", str(error))
        problem = found[0] if found else str(error).partition("\n")[0]
    content = torch.load(file, weights_only=False)
    if isinstance(content, dict):
        content["note"] = _Trap(str(target))
    torch.save(content, file)
    error_type = None
    try:
        adapters.run_load_checkpoint(str(file), model, optimizer)
    except Exception as error:  # noqa: BLE001 - any error is a refusal
        error_type = type(error).__name__
    return {"holds_objects": problem, "ran": target.exists(), "error": error_type}


def replacing(adapters: ModuleType) -> dict[str, Plain]:
    """Replace a checkpoint by a new one, once without and once with an error while saving.

    A second name (a hard link) of the old file shows whether its bytes were overwritten.
    """
    model = _model(0)
    optimizer = _Momentum(model.parameters())
    _train(model, optimizer, range(1))
    folder = scratch_file("")
    folder.mkdir()
    file, second = folder / "run.pt", folder / "old.pt"
    adapters.run_save_checkpoint(model, optimizer, 1, str(file))
    old = file.read_bytes()
    try:
        os.link(file, second)
    except OSError:  # the file system has no hard links
        second.write_bytes(old)
    adapters.run_save_checkpoint(model, optimizer, 2, str(file))
    replaced, others = second.read_bytes() == old, [p.name for p in folder.iterdir()]
    new = file.read_bytes()
    model.register_buffer("broken", _Broken(torch.zeros(1)))
    kept = True
    try:
        adapters.run_save_checkpoint(model, optimizer, 3, str(file))
    except Exception:  # noqa: BLE001 - the error is intended
        kept = file.exists() and file.read_bytes() == new
    extra = sorted(set(others) - {"run.pt", "old.pt"})
    return {"old_bytes_kept": replaced, "kept": kept, "left_over": extra}


class _Broken(Tensor):
    """A tensor that can't be saved."""

    def __reduce_ex__(self, _: Any) -> Any:
        raise RuntimeError("no space left on the device")


class _Trap:
    """An object whose unpickling creates a file."""

    def __init__(self, target: str) -> None:
        self._target = target

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, str]]:
        return open, (self._target, "x")


class _Distributed(nn.parallel.DistributedDataParallel):
    """An imitation of a model in DistributedDataParallel: its type, `module` and names."""

    def __init__(self, module: nn.Module) -> None:
        nn.Module.__init__(self)
        self.module = module


class _Compiled(nn.Module):
    """An imitation of a model from torch.compile: `_orig_mod`, names and the model's methods."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._orig_mod = module

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)


def _through(adapters: ModuleType, wrap: Callable[[nn.Module], nn.Module]) -> list[str]:
    failed = []
    for direction, outer, inner in (
        ("saved from", wrap, lambda model: model),
        ("loaded into", lambda model: model, wrap),
    ):
        model, other, file = _model(0), _model(1), str(scratch_file(".pt"))
        try:
            adapters.run_save_checkpoint(outer(model), _Momentum(model.parameters()), 1, file)
            adapters.run_load_checkpoint(file, inner(other), _Momentum(other.parameters()))
        except NotImplementedError:
            raise
        except Exception:  # noqa: BLE001 - any error counts as a failure
            failed.append(direction)
            continue
        weights = [_joined(m.state_dict().values()) for m in (model, other)]
        if not torch.equal(*weights):
            failed.append(direction)
    return failed


def _model(seed: int, dtype: str = "float32", width: int = 4) -> nn.Sequential:
    """Return a model with parameters and buffers; training changes both."""
    layers = [nn.Linear(3, width), nn.BatchNorm1d(width), nn.Tanh(), nn.Linear(width, 2)]
    return _seeded(nn.Sequential(*layers), seed).to(getattr(torch, dtype))


def _seeded(model: nn.Sequential, seed: int) -> nn.Sequential:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    return model


def _stranger(kind: str) -> nn.Sequential:
    if kind == "wider":
        return _model(1, width=5)
    model = _model(1)
    if kind == "deeper":
        return _seeded(nn.Sequential(*model, nn.Linear(2, 2)), 1)
    if kind == "shallower":
        return nn.Sequential(*list(model)[:2])
    return nn.Sequential(model) if kind == "renamed" else model


def _train(model: nn.Module, optimizer: Optimizer, steps: Sequence[int]) -> None:
    dtype = next(model.parameters()).dtype
    for step in steps:
        x = torch.linspace(-1, 1 + step, 15).reshape(5, 3).sin().to(dtype)
        for parameter in model.parameters():
            parameter.grad = None
        model(x).square().mean().backward()
        optimizer.step()


def _state(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """Return the state of the model and of the optimizer, each as one vector."""
    moments = [value for state in optimizer.state.values() for value in state.values()]
    return {"model": _joined(model.state_dict().values()), "optimizer": _joined(moments)}


def _joined(values: Any) -> Tensor:
    flat = [torch.as_tensor(value).double().flatten() for value in values]
    joined: Tensor = plain(torch.cat([*flat, torch.zeros(0, dtype=torch.float64)]))
    return joined


@contextmanager
def _writable(place: str) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """Yield an object to write to, and a function that returns an object to read from."""
    file = scratch_file(".pt")
    if place in ("path", "pathlib"):
        yield (str(file) if place == "path" else Path(file)), lambda: str(file)
    elif place == "memory":
        memory = io.BytesIO()
        yield memory, lambda: io.BytesIO(memory.getvalue())
    else:
        with file.open("w+b") as opened:
            yield opened, lambda: opened.seek(0) or opened
