"""Recipes: arguments that plain data can't carry, built on the submission's side of the bridge.

A tensor that crosses a pipe or a file arrives contiguous and owning its memory. A recipe says
how to lay it out again: the values are the same, and correct code must not notice.
"""

from __future__ import annotations

import atexit
import os
import re
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


@dataclass(frozen=True)
class Folder:
    """A new, empty folder: what arrives is its path."""

    def build(self, _: torch.device) -> str:
        """Make it."""
        folder = scratch_file("")
        folder.mkdir()
        return str(folder)


class Observed:
    """An object built by a recipe that can tell afterwards how it was used."""

    def observed(self) -> Any:
        """What it saw, as plain data."""
        raise NotImplementedError


@dataclass(frozen=True)
class Scripted:
    """A language model that is a table: the logits of the next token, by the last one.

    Afterwards it tells the ids of its first calls. Ids that are not a tensor of shape
    `(batch, seq)` are refused.
    """

    table: Tensor
    remembered: int = 20
    """Number of calls that it tells of."""

    def build(self, device: torch.device) -> _ScriptedModel:
        """Make the model."""
        return _ScriptedModel(self.table.to(device, copy=True), self.remembered)


class _ScriptedModel(Observed):
    def __init__(self, table: Tensor, remembered: int) -> None:
        self._table = table
        self._remembered = remembered
        self._calls: list[list[int]] = []

    def __call__(self, token_ids: Tensor) -> Tensor:
        if not isinstance(token_ids, Tensor) or token_ids.ndim != 2 or not token_ids.numel():
            raise TypeError("expected the ids so far, as a tensor of shape (batch, seq)")
        if len(self._calls) < self._remembered:
            self._calls += token_ids.tolist()
        return self._table[token_ids[:, -1].to(self._table.device)]

    def observed(self) -> list[list[int]]:
        return self._calls


Recipe = Strided | Expanded | Array | File | Folder | Scripted
RECIPES: tuple[type[Recipe], ...] = (Strided, Expanded, Array, File, Folder, Scripted)

_scratch: dict[int, Path] = {}
"""The folder for files of this process, under its id: a forked child has one of its own."""


def scratch_file(suffix: str) -> Path:
    """A path for a new file, which goes when `clean_up` is called or the process ends."""
    if os.getpid() not in _scratch:
        _scratch[os.getpid()] = Path(tempfile.mkdtemp(prefix="cs336-"))
        atexit.register(clean_up)
    folder = _scratch[os.getpid()]
    return folder / f"{sum(1 for _ in folder.iterdir())}{suffix}"


def named_shortly(text: str) -> str:
    """Name this process's files without folder and number, which differ from run to run."""
    folder = _scratch.get(os.getpid())
    return text if folder is None else re.sub(re.escape(f"{folder}{os.sep}") + r"\d+", "file", text)


def clean_up() -> None:
    """Remove the files that this process's recipes have written."""
    folder = _scratch.pop(os.getpid(), None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
