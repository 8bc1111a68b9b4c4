"""Recipes: descriptions of arguments that plain data can't carry.

A recipe crosses the bridge in place of the argument, and the submission's process builds the
argument from it. One example is a tensor with an unusual memory layout: a tensor that crosses a
pipe or a file always arrives contiguous. The layout does not change the values, so it must not
change the answer of a submission either.
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
    """A view with the values of a tensor that is not contiguous in memory.

    The view holds every other element of a tensor of twice the size.
    """

    tensor: Tensor

    def build(self, device: torch.device) -> Tensor:
        """Build the view on `device`."""
        wide = torch.zeros(*self.tensor.shape, 2, dtype=self.tensor.dtype, device=device)
        view = wide[..., 0]
        view.copy_(self.tensor)
        return view


@dataclass(frozen=True)
class Expanded:
    """A view that repeats a tensor along its axes of length 1, without memory for the copies."""

    tensor: Tensor
    sizes: tuple[int, ...]
    """The shape of the view."""

    def build(self, device: torch.device) -> Tensor:
        """Build the view on `device`."""
        return self.tensor.to(device, copy=True).expand(self.sizes)


@dataclass(frozen=True)
class Array:
    """A numpy array of integers."""

    values: Tensor
    dtype: str
    """The name of the array's dtype."""
    mapped: bool = False
    """Whether the array is a memory-mapped file."""

    def build(self, _: torch.device) -> np.ndarray[Any, Any]:
        """Make the array; if it is mapped, write the file and map it for reading."""
        array = self.values.numpy().astype(self.dtype)
        if not self.mapped:
            return array
        file = scratch_file(".bin")
        array.tofile(file)
        return np.memmap(file, dtype=self.dtype, mode="r")


@dataclass(frozen=True)
class File:
    """A file; the argument is its path."""

    content: bytes
    suffix: str = ".txt"

    def build(self, _: torch.device) -> str:
        """Write the file and return its path."""
        file = scratch_file(self.suffix)
        file.write_bytes(self.content)
        return str(file)


@dataclass(frozen=True)
class Folder:
    """A new, empty folder; the argument is its path."""

    def build(self, _: torch.device) -> str:
        """Make the folder and return its path."""
        folder = scratch_file("")
        folder.mkdir()
        return str(folder)


class Observed:
    """An object that a recipe builds and that records how the submission uses it."""

    def observed(self) -> Any:
        """Return the record as plain data."""
        raise NotImplementedError


@dataclass(frozen=True)
class Scripted:
    """A language model that looks up its logits in a table.

    Row i of the table holds the logits of the token that follows token i. The model records the
    ids of its first calls. It raises TypeError if the ids are not a tensor of shape
    `(batch, seq)`.
    """

    table: Tensor
    """Logits of shape `(vocab, vocab)`."""
    remembered: int = 20
    """The number of calls that the model records."""

    def build(self, device: torch.device) -> _ScriptedModel:
        """Make the model, with its table on `device`."""
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
"""The temporary folder of this process, under the process id: a forked child gets its own."""


def scratch_file(suffix: str) -> Path:
    """Return a path for a new file in the temporary folder of this process.

    The folder is removed when `clean_up` is called and when the process ends.
    """
    if os.getpid() not in _scratch:
        _scratch[os.getpid()] = Path(tempfile.mkdtemp(prefix="cs336-"))
        atexit.register(clean_up)
    folder = _scratch[os.getpid()]
    return folder / f"{sum(1 for _ in folder.iterdir())}{suffix}"


def named_shortly(text: str) -> str:
    """Replace the paths of this process's temporary files in `text` by "file".

    The folder and the number in such a path differ from run to run.
    """
    folder = _scratch.get(os.getpid())
    return text if folder is None else re.sub(re.escape(f"{folder}{os.sep}") + r"\d+", "file", text)


def clean_up() -> None:
    """Remove the temporary folder of this process, with all files in it."""
    folder = _scratch.pop(os.getpid(), None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
