"""Recipes: arguments that plain data can't carry, built on the submission's side of the bridge.

A tensor that crosses a pipe or a file arrives contiguous and owning its memory. A recipe says
how to lay it out again: the values are the same, and correct code must not notice.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Strided:
    """The same values in memory that is not contiguous: every other element of a wider tensor."""

    tensor: Tensor

    def build(self, device: torch.device) -> Tensor:
        """Lay the tensor out on `device`."""
        wide = torch.zeros(*self.tensor.shape, 2, dtype=self.tensor.dtype, device=device)
        view = wide[..., 0]
        view.copy_(self.tensor)
        return view


@dataclass(frozen=True)
class Expanded:
    """The tensor repeated to `sizes` along axes of length 1, without memory for the copies."""

    tensor: Tensor
    sizes: tuple[int, ...]

    def build(self, device: torch.device) -> Tensor:
        """Lay the tensor out on `device`."""
        return self.tensor.to(device, copy=True).expand(self.sizes)


@dataclass(frozen=True)
class Array:
    """Whole numbers as a numpy array of some dtype; with `mapped`, as a memory-mapped file."""

    values: Tensor
    dtype: str
    mapped: bool = False

    def build(self, _: torch.device) -> np.ndarray[Any, Any]:
        """Make the array, or write the file and map it for reading."""
        array = self.values.numpy().astype(self.dtype)
        if not self.mapped:
            return array
        file = scratch_file(".bin")
        array.tofile(file)
        return np.memmap(file, dtype=self.dtype, mode="r")


@dataclass(frozen=True)
class File:
    """A file of these bytes: what arrives is its path."""

    content: bytes
    suffix: str = ".txt"

    def build(self, _: torch.device) -> str:
        """Write it."""
        file = scratch_file(self.suffix)
        file.write_bytes(self.content)
        return str(file)


class Observed:
    """An object built by a recipe that can tell afterwards how it was used."""

    def observed(self) -> Any:
        """What it saw, as plain data."""
        raise NotImplementedError


Recipe = Strided | Expanded | Array | File
RECIPES: tuple[type[Recipe], ...] = (Strided, Expanded, Array, File)

_scratch: dict[int, Path] = {}
"""The folder for files of this process, under its id: a forked child has one of its own."""


def scratch_file(suffix: str) -> Path:
    """A path for a new file, which goes when `clean_up` is called or the process ends."""
    if os.getpid() not in _scratch:
        _scratch[os.getpid()] = Path(tempfile.mkdtemp(prefix="cs336-"))
        atexit.register(clean_up)
    folder = _scratch[os.getpid()]
    return folder / f"{sum(1 for _ in folder.iterdir())}{suffix}"


def clean_up() -> None:
    """Remove the files that this process's recipes have written."""
    folder = _scratch.pop(os.getpid(), None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
