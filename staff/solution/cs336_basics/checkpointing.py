"""Checkpoints: a run that was stopped goes on as if nothing had happened."""

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

    The file holds state dicts and a number, no objects, so that it can be read with
    `weights_only=True`. Names in it are those of the bare model: a model that was wrapped by
    `torch.compile` or `DistributedDataParallel` leaves no prefix. A file at a path is replaced
    as a whole: whenever the program is killed, the old file stands there or the new one.

    Args:
        model: the model, wrapped or not.
        optimizer: its optimizer.
        iteration: number of iterations done.
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
    """Give a model and its optimizer the state that was saved, and return the iteration.

    The file is read with `weights_only=True`, so that it can't run code. The model may be wrapped
    by `torch.compile` or `DistributedDataParallel`, whether or not the saved one was, and may be on
    another device. When an error is raised, model and optimizer are as they were.

    Args:
        src: a path, or a file open for reading bytes.
        model: a model with the same parameters as the saved one.
        optimizer: its optimizer, with the same groups of parameters.

    Returns:
        the number of iterations done.

    Raises:
        ValueError: the file is of another model or optimizer.
    """
    checkpoint = torch.load(src, map_location="cpu", weights_only=True)
    model = _bare(model)
    here, saved = _shapes(model.state_dict()), _shapes(checkpoint["model"])
    if here != saved:
        name, shape = min(here.items() ^ saved.items())
        raise ValueError(f"the file is of another model: they differ in {name} of shape {shape}")
    # The optimizer refuses a stranger's state before it changes anything, so it comes first.
    optimizer.load_state_dict(checkpoint["optimizer"])
    model.load_state_dict(checkpoint["model"])
    return checkpoint["iteration"]


def _bare(model: nn.Module) -> nn.Module:
    """The model inside the wrappers of `torch.compile` and of parallel training."""
    while True:
        if isinstance(model, nn.parallel.DistributedDataParallel | nn.DataParallel):
            model = model.module
        elif hasattr(model, "_orig_mod"):  # the type is private, and slow to import
            model = model.get_submodule("_orig_mod")
        else:
            return model


def _shapes(state: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in state.items()}
