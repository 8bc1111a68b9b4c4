"""Checkpoints: a run that was stopped can continue as if it had not been stopped."""

import os
from pathlib import Path
from typing import IO, Any

import torch
from torch import nn
from torch.optim import Optimizer


def save_checkpoint(
    model: nn.Module,
    optimizer: Optimizer,
    iteration: int,
    out: str | os.PathLike[str] | IO[bytes],
) -> None:
    """Write the state of a run.

    The file holds only state dicts and a number, so that it can be read with `weights_only=True`.
    Its names are those of the bare model, without the prefixes of `torch.compile` and
    `DistributedDataParallel`. A file at a path is replaced in one step: if the program is killed at
    any moment, either the old file or the new one is there, complete.

    Args:
        model: the model, wrapped or not.
        optimizer: its optimizer.
        iteration: number of finished iterations.
        out: a path, or a file open for writing bytes.
    """
    checkpoint = {
        "model": _bare(model).state_dict(),
        "optimizer": optimizer.state_dict(),
        "iteration": iteration,
    }
    if not isinstance(out, str | os.PathLike):
        torch.save(checkpoint, out)
        return
    unfinished = Path(f"{os.fspath(out)}.tmp")
    with unfinished.open("wb") as file:
        torch.save(checkpoint, file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(out)


def load_checkpoint(
    src: str | os.PathLike[str] | IO[bytes], model: nn.Module, optimizer: Optimizer
) -> int:
    """Load a saved state into a model and its optimizer, and return the iteration.

    The file is read with `weights_only=True`, so that it can't run code. The model may be wrapped
    by `torch.compile` or `DistributedDataParallel`, whether or not the saved one was, and may be on
    another device. If an error is raised, neither the model nor the optimizer changes.

    Args:
        src: a path, or a file open for reading bytes.
        model: a model with the same parameters as the saved one.
        optimizer: its optimizer, with the same groups of parameters.

    Returns:
        the number of finished iterations.

    Raises:
        ValueError: the file is of another model or optimizer.
    """
    checkpoint = torch.load(src, map_location="cpu", weights_only=True)
    model = _bare(model)
    here, saved = _shapes(model.state_dict()), _shapes(checkpoint["model"])
    if here != saved:
        name, shape = min(here.items() ^ saved.items())
        raise ValueError(f"the file is of another model: they differ in {name} of shape {shape}")
    # The optimizer checks the state before it changes anything, so its state is loaded first.
    optimizer.load_state_dict(checkpoint["optimizer"])
    model.load_state_dict(checkpoint["model"])
    return checkpoint["iteration"]


def _bare(model: nn.Module) -> nn.Module:
    """Return the model without the wrappers of `torch.compile` and of parallel training."""
    while True:
        if isinstance(model, nn.parallel.DistributedDataParallel | nn.DataParallel):
            model = model.module
        elif hasattr(model, "_orig_mod"):  # the type is private, and slow to import
            model = model.get_submodule("_orig_mod")
        else:
            return model


def _shapes(state: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in state.items()}
