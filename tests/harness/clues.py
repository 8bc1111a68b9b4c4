"""Clues: observations about a wrong answer, for failures that no known mistake explains.

A clue compares the answer with the right answer and describes how they are related. The sentence
is true whatever the cause is. The clues are tried in order; the message shows the first one that
holds in every failing case of a test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from tests.harness.plain import Plain

Clue = Callable[[Tensor, Tensor, Mapping[str, Plain]], str | None]
_CLOSE = 1e-4
"""Two tensors count as equal if they differ by at most this share of the largest value."""


def clues_of(got: Tensor, expected: Tensor, arguments: Mapping[str, Plain]) -> list[str]:
    """Return every clue that holds for one wrong answer, the most specific first.

    Args:
        got: the wrong answer.
        expected: the right answer, of the same shape.
        arguments: the arguments of the call, whose sizes may explain a factor.
    """
    wide, right = got.double(), expected.double()
    if wide.numel() < 2 or not bool(wide.isfinite().all() and right.isfinite().all()):
        return []
    tried = (_digits,) if _same(wide, right) else CLUES
    return [text for clue in tried if (text := clue(wide, right, arguments)) is not None]


def _same(a: Tensor, b: Tensor, tolerance: float = _CLOSE) -> bool:
    if a.shape != b.shape:
        return False
    scale = b.abs().max().item()
    return (a - b).abs().max().item() <= tolerance * scale if scale else bool((a == b).all())


def _zero(got: Tensor, expected: Tensor, _: Mapping[str, Plain]) -> str | None:
    return "every value is zero" if not got.any() and expected.any() else None


def _sign(got: Tensor, expected: Tensor, _: Mapping[str, Plain]) -> str | None:
    if _same(got, -expected):
        return "every value has the wrong sign"
    if _same(got.abs(), expected.abs()):
        return "some values have the wrong sign, and all are right without their signs"
    return None


def _factor(got: Tensor, expected: Tensor, arguments: Mapping[str, Plain]) -> str | None:
    norm = expected.pow(2).sum()
    if not norm:
        return None
    factor = ((got * expected).sum() / norm).item()
    if factor <= 0 or abs(factor - 1) < 1e-3 or not _same(got, factor * expected):
        return None
    size = f"{factor:.4g} × too large" if factor > 1 else f"{1 / factor:.4g} × too small"
    clue = f"every value is {size}"
    origin = _known_factor(factor if factor > 1 else 1 / factor, arguments)
    return f"{clue}, and {origin}" if origin else clue


def _known_factor(factor: float, arguments: Mapping[str, Plain]) -> str | None:
    """Name an argument or axis whose size, root of the size or square of the size is the factor."""
    for name, size in _sizes(arguments):
        for text, value in ((name, size), (f"√{name}", math.sqrt(size)), (f"{name}²", size**2)):
            if size > 1 and abs(factor - value) <= 1e-3 * value:
                return f"{text} is {value:.4g}"
    return None


def _sizes(arguments: Mapping[str, Plain]) -> Iterator[tuple[str, float]]:
    yield from ((name, v) for name, v in arguments.items() if type(v) in (int, float) and v > 0)
    if isinstance(arguments.get("num_heads"), int) and isinstance(arguments.get("d_model"), int):
        yield "d_head", arguments["d_model"] / arguments["num_heads"]
    for name, value in arguments.items():
        if isinstance(value, Tensor):
            yield from ((f"axis {i} of {name}", float(n)) for i, n in enumerate(value.shape))


def _offset(got: Tensor, expected: Tensor, _: Mapping[str, Plain]) -> str | None:
    difference = got - expected
    offset = difference.mean().item()
    spread = (difference - offset).abs().max().item()
    if abs(offset) > 1e-3 and spread <= 1e-3 * abs(offset):
        return f"every value is {abs(offset):.4g} too {'large' if offset > 0 else 'small'}"
    return None


def _softmax(got: Tensor, expected: Tensor, _: Mapping[str, Plain]) -> str | None:
    if got.ndim and _same(got, expected.softmax(-1)):
        return "this is the softmax of the right answer"
    if got.ndim and _same(got, expected.log_softmax(-1)):
        return "this is the logarithm of the softmax of the right answer"
    return None


def _axes(got: Tensor, expected: Tensor, _: Mapping[str, Plain]) -> str | None:
    for i in range(got.ndim):
        for j in range(i + 1, got.ndim):
            if _same(got.transpose(i, j), expected):
                return f"the answer is right if axes {i} and {j} are swapped"
    return None


def _halves(got: Tensor, expected: Tensor, _: Mapping[str, Plain]) -> str | None:
    width = got.shape[-1] if got.ndim else 0
    if width < 4 or width % 2:
        return None
    pairs = torch.arange(width).reshape(2, -1).T.flatten()
    if _same(got[..., pairs], expected) or _same(got, expected[..., pairs]):
        return (
            "the answer is right if the features are regrouped: "
            "adjacent pairs were taken for two halves, or two halves for adjacent pairs"
        )
    return None


def _order(got: Tensor, expected: Tensor, _: Mapping[str, Plain]) -> str | None:
    if _same(got.flatten().sort().values, expected.flatten().sort().values):
        return "all the right values are there, but in the wrong order"
    return None


def _somewhere(got: Tensor, expected: Tensor, _: Mapping[str, Plain]) -> str | None:
    """Find an axis whose first or last index alone is right, or whose first alone is wrong."""
    scale = expected.abs().max().item()
    wrong = (got - expected).abs() > _CLOSE * scale
    names = {0: "batch item", got.ndim - 2: "position"}
    for axis in sorted(range(got.ndim - 1), key=lambda a: a != got.ndim - 2):
        where = wrong.movedim(axis, 0).flatten(1).any(1).tolist()
        name = names.get(axis, f"index of axis {axis}")
        if len(where) > 1 and not where[0] and all(where[1:]):
            text = f"the answer is right at {name} 0 and wrong at every later {name}"
            return text + _HINTS.get(name, "")
        if len(where) > 1 and where[0] and not any(where[1:]):
            return f"the answer is wrong only at {name} 0"
        if len(where) > 2 and not where[-1] and all(where[:-1]):
            text = f"the answer is right at the last {name} and wrong at every earlier {name}"
            return text + _LAST_HINTS.get(name, "")
    return None


_HINTS = {"position": ": look at positions, or at the causal mask"}
_LAST_HINTS = {"position": ": does the future leak into the past?"}


def _digits(got: Tensor, expected: Tensor, _: Mapping[str, Plain]) -> str | None:
    scale = expected.abs().max().item()
    worst = (got - expected).abs().max().item() / scale if scale else math.inf
    if worst >= 1e-2:
        return None
    digits = math.floor(-math.log10(worst)) if worst else 0
    cause = ": is it computed in half precision, or is a constant slightly wrong?"
    tail = cause if digits <= 4 else ""
    return f"the answer is right to {digits} digits of the largest value{tail}"


CLUES: tuple[Clue, ...] = (
    _zero,
    _sign,
    _factor,
    _offset,
    _softmax,
    _axes,
    _halves,
    _somewhere,
    _order,
    _digits,
)
