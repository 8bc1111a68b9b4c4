"""Plain data: what may cross from the tests to a submission and back.

Numbers, strings, bytes, None, tensors, recipes, and lists, tuples and dicts of these. A value is
*packed* into JSON-like data beside named tensors, which is how fixtures are saved; `realise`
makes the fresh copies that one call gets, and `plain` takes an answer down to plain data.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.harness.recipes import RECIPES, Observed

Plain = Any
"""Documentation only: the type of plain data is recursive, and checked by `plain` at run time."""

_TAG = "$"
_ATOMS = {type(None), bool, int, str}
"""What JSON says as it is."""


def pack(value: Plain, tensors: dict[str, Tensor], name: str) -> Plain:
    """Turn `value` into JSON-like data; its tensors go into `tensors` under names from `name`.

    Raises:
        TypeError: `value` is not plain data.
    """
    if type(value) in _ATOMS:
        return value
    if isinstance(value, Tensor):
        while name in tensors:  # the keys 1 and "1" of a dict, say
            name += "'"
        tensors[name] = value.detach().clone(memory_format=torch.contiguous_format)
        return {_TAG: "tensor", "name": name}
    if isinstance(value, RECIPES):
        parts = {f.name: getattr(value, f.name) for f in fields(value)}
        return {_TAG: type(value).__name__, "fields": pack(parts, tensors, name)}
    if isinstance(value, bytes):
        return {_TAG: "bytes", "base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, dict):
        items = [
            [pack(k, tensors, f"{name}.{k}.key"), pack(v, tensors, f"{name}.{k}")]
            for k, v in value.items()
        ]
        return {_TAG: "dict", "items": items}
    if isinstance(value, list | tuple):
        items = list(value)
        if not _ATOMS.issuperset(map(type, items)):
            items = [pack(item, tensors, f"{name}.{i}") for i, item in enumerate(items)]
        return items if isinstance(value, list) else {_TAG: "tuple", "items": items}
    if type(value) is float:
        # JSON would make null of an infinity.
        return value if math.isfinite(value) else {_TAG: "float", "text": str(value)}
    raise TypeError(f"{type(value).__name__} is not plain data")


def unpack(packed: Plain, tensors: Mapping[str, Tensor]) -> Plain:
    """Undo `pack`.

    Raises:
        ValueError: the data was not made by `pack`.
        KeyError: a tensor is missing.
    """
    if isinstance(packed, list):
        if _ATOMS.issuperset(map(type, packed)):
            return packed
        return [unpack(item, tensors) for item in packed]
    if not isinstance(packed, dict):
        return packed
    tag = packed.get(_TAG)
    if tag == "tensor":
        return tensors[packed["name"]]
    if tag == "bytes":
        return base64.b64decode(packed["base64"])
    if tag == "float":
        return float(packed["text"])
    if tag == "dict":
        return {unpack(k, tensors): unpack(v, tensors) for k, v in packed["items"]}
    if tag == "tuple":
        return tuple(unpack(packed["items"], tensors))
    for recipe in RECIPES:
        if tag == recipe.__name__:
            return recipe(**unpack(packed["fields"], tensors))
    raise ValueError(f"unknown kind of packed data: {tag!r}")


def realise(value: Plain, device: torch.device) -> Any:
    """Make the real arguments of one call: fresh copies on `device`, recipes followed."""
    if isinstance(value, Tensor):
        return value.detach().to(device, copy=True)
    if isinstance(value, RECIPES):
        return value.build(device)
    if isinstance(value, dict):
        return {key: realise(item, device) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(realise(item, device) for item in value)
    return value


def after_call(value: Any) -> Plain:
    """Take realised arguments, as a call has left them, down to plain data."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value))
    if isinstance(value, Observed):
        return plain(value.observed())
    if type(value) is dict:
        return {key: after_call(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(after_call(item) for item in value)
    return plain(value)


def plain(value: Any) -> Plain:
    """Take what a submission returned down to plain data on the CPU, sharing nothing with it.

    Raises:
        TypeError: it holds something that is not plain data.
    """
    if isinstance(value, Tensor):
        return torch.Tensor.clone(torch.Tensor.cpu(torch.Tensor.detach(value)))
    if type(value) in _ATOMS or type(value) in (float, bytes):
        return value
    if type(value) is dict:
        return {plain(key): plain(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(plain(item) for item in value)
    raise TypeError(f"{type(value).__name__} is not plain data")
