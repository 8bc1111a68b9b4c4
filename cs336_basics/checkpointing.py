"""Checkpoints: a run that was stopped can continue as if it had not been stopped."""

import os
from typing import IO

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
    raise NotImplementedError("checkpointing: handout §3.6")


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
    raise NotImplementedError("checkpointing: handout §3.6")
