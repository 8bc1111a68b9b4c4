"""Plain data: the values that may cross from the tests to a submission and back.

Plain data consists of numbers, strings, bytes, None, tensors, recipes, and lists, tuples and
dicts of these. `pack` turns a value into JSON-like data and named tensors; fixtures are saved in
this form. `realise` makes the arguments of one call, as fresh copies. `plain` turns the answer of
a call into plain data.
"""

from __future__ import annotations

import binascii
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.harness.recipes import RECIPES, Observed

Plain = Any
"""Any plain data. The type is recursive, so this name only documents; `plain` checks the data."""

MAX_DEPTH = 40
"""The largest depth at which lists or dicts may be nested."""
_TAG = "$"
_ATOMS = {type(None), bool, int, str}
"""Types that JSON can hold unchanged."""
_LEAVES = _ATOMS | {float}
"""Types that a JSON decoder returns and that need no unpacking."""
_RECIPES = {recipe.__name__: recipe for recipe in RECIPES}


class DepthError(ValueError):
    """Lists or dicts are nested too deeply."""


def pack(value: Plain, tensors: dict[str, Tensor], name: str, depth: int = 0) -> Plain:
    """Turn `value` into JSON-like data, and add its tensors to `tensors`.

    Args:
        value: plain data.
        tensors: receives the tensors, under names that start with `name`.
        name: the start of those names.
        depth: the number of lists and dicts around `value`.

    Raises:
        TypeError: `value` is not plain data.
        DepthError: lists or dicts are nested too deeply.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is float:
        # JSON has no infinity: an encoder would write null.
        return value if math.isfinite(value) else {_TAG: "float", "text": str(value)}
    if kind is bytes:
        return {_TAG: "bytes", "base64": binascii.b2a_base64(value, newline=False).decode("ascii")}
    if isinstance(value, Tensor):
        while name in tensors:  # for example, the keys 1 and "1" of a dict
            name += "'"
        tensors[name] = value.detach().clone(memory_format=torch.contiguous_format)
        return {_TAG: "tensor", "name": name}
    if isinstance(value, RECIPES):
        parts = {f.name: getattr(value, f.name) for f in fields(value)}
        return {_TAG: kind.__name__, "fields": pack(parts, tensors, name, depth)}
    depth = _deeper(depth)
    if isinstance(value, dict):
        # Most keys and values are atoms. They need no name and no call, so this is faster.
        items = [
            [
                k if type(k) in _ATOMS else pack(k, tensors, f"{name}.{k}.key", depth),
                v if type(v) in _ATOMS else pack(v, tensors, f"{name}.{k}", depth),
            ]
            for k, v in value.items()
        ]
        return {_TAG: "dict", "items": items}
    if isinstance(value, list | tuple):
        items = list(value)
        if not _ATOMS.issuperset(map(type, items)):
            items = [pack(item, tensors, f"{name}.{i}", depth) for i, item in enumerate(items)]
        return items if isinstance(value, list) else {_TAG: "tuple", "items": items}
    raise TypeError(f"{kind.__name__} is not plain data")


def unpack(
    packed: Plain, tensors: Mapping[str, Tensor], depth: int = 0, *, recipes: bool = True
) -> Plain:
    """Turn packed data back into plain data; the inverse of `pack`.

    Args:
        packed: the result of `pack`.
        tensors: the tensors by their names.
        depth: the number of lists and dicts around `packed`.
        recipes: accept recipes; the grader does not accept them from a worker.

    Raises:
        ValueError: the data was not made by `pack`.
        DepthError: lists or dicts are nested too deeply.
        KeyError: a tensor is missing.
    """
    kind = type(packed)
    if kind in _LEAVES:
        return packed
    if kind is list:
        return _each(packed, tensors, _deeper(depth), recipes)
    tag = packed.get(_TAG) if kind is dict else None
    if tag == "tensor":
        return tensors[packed["name"]]
    if tag == "bytes":
        return binascii.a2b_base64(packed["base64"])
    if tag == "float":
        return float(packed["text"])
    if tag == "dict":
        depth = _deeper(depth)
        return dict(_each(pair, tensors, depth, recipes) for pair in packed["items"])
    if tag == "tuple":
        return tuple(_each(packed["items"], tensors, _deeper(depth), recipes))
    if tag in _RECIPES and recipes:
        return _RECIPES[tag](**unpack(packed["fields"], tensors, depth))
    raise ValueError(f"unknown kind of packed data: {tag!r}")


def _each(
    items: list[Plain], tensors: Mapping[str, Tensor], depth: int, recipes: bool
) -> list[Plain]:
    if _LEAVES.issuperset(map(type, items)):
        return items
    return [
        item if type(item) in _LEAVES else unpack(item, tensors, depth, recipes=recipes)
        for item in items
    ]


def _deeper(depth: int) -> int:
    if depth == MAX_DEPTH:
        raise DepthError("lists or dicts are nested too deep")
    return depth + 1


def realise(value: Plain, device: torch.device) -> Any:
    """Make the arguments of one call: fresh copies on `device`, with every recipe built."""
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
    """Turn the arguments of a call into plain data, after the call may have changed them."""
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
    """Turn the answer of a submission into plain data: copies on the CPU that share no memory.

    Raises:
        TypeError: the answer holds something that is not plain data.
    """
    if isinstance(value, Tensor):
        return torch.Tensor.clone(torch.Tensor.cpu(torch.Tensor.detach(value)))
    if type(value) in _LEAVES or type(value) is bytes:
        return value
    if type(value) is dict:
        return {plain(key): plain(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(plain(item) for item in value)
    raise TypeError(f"{type(value).__name__} is not plain data")
