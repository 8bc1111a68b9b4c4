"""Checkpoints: a run that was stopped goes on as if nothing had happened."""

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
    raise NotImplementedError("checkpointing: handout §3.6")


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
    raise NotImplementedError("checkpointing: handout §3.6")
