"""Comparison of a tensor with what it should be, in units of its dtype's tolerance.

The error of a value is `|y − e| / (atol + rtol · |e|)` with the tolerances that
`torch.testing.assert_close` uses for the dtype; an answer is right when no error exceeds the
limit. Differences are reported in the order in which they help: kind of object, shape, dtype,
NaN or infinity, and only then the values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tests.harness.errors import WrongAnswer
from tests.harness.plain import Plain

TOLERANCES = {
    torch.float16: (1e-5, 1e-3),
    torch.bfloat16: (1e-5, 1.6e-2),
    torch.float32: (1e-5, 1.3e-6),
    torch.float64: (1e-7, 1e-7),
}
"""`(atol, rtol)` for each dtype; anything else must be equal."""


@dataclass(frozen=True)
class Difference:
    """How an answer differs from what was expected."""

    text: str
    error: float
    """The largest error, in units of the tolerance; infinite where no number can say it."""


def difference(
    got: Plain, expected: Tensor, dtype: torch.dtype, limit: float = 1.0
) -> Difference | None:
    """Hold an answer against the expected values (of any precision); None when it is right.

    Args:
        got: what the submission returned.
        expected: the right values, which may be more precise than `dtype`.
        dtype: the dtype that the answer must have.
        limit: the largest error allowed, in units of the dtype's tolerance.
    """
    if not isinstance(got, Tensor):
        return Difference(f"returned {_kind(got)}, expected a tensor", math.inf)
    if got.shape != expected.shape:
        return Difference(f"shape {_shape(got)}, expected {_shape(expected)}", math.inf)
    if got.dtype != dtype:
        return Difference(f"dtype {_name(got.dtype)}, expected {_name(dtype)}", math.inf)
    if not got.dtype.is_floating_point:
        return (
            None
            if torch.equal(got, expected)
            else _worst(got, expected, _unequal(got, expected), 0.0)
        )
    strange = _strange(got, expected)
    if strange is not None:
        return strange
    atol, rtol = TOLERANCES[dtype]
    wide, right = got.double(), expected.double()
    finite = right.isfinite()
    errors = torch.where(finite, (wide - right).abs() / (atol + rtol * right.abs()), 0.0)
    if not errors.numel() or errors.max() <= limit:
        return None
    return _worst(got, expected, errors, limit)


def check_close(
    got: Plain, expected: Tensor, why: str, *, dtype: torch.dtype | None = None, limit: float = 1.0
) -> None:
    """Fail with the sentence `why`, and the difference below it, unless `got` is as expected.

    Raises:
        WrongAnswer: it is not.
    """
    found = difference(got, expected, dtype or expected.dtype, limit)
    if found is not None:
        raise WrongAnswer(why, found.text)


def check(condition: object, why: str) -> None:
    """Fail with the sentence `why` unless the condition holds.

    Raises:
        WrongAnswer: it doesn't.
    """
    if not condition:
        raise WrongAnswer(why)


def _strange(got: Tensor, expected: Tensor) -> Difference | None:
    """NaN, or infinities other than the expected ones."""
    wrong = (got.isnan() != expected.isnan()) | (got.isinf() & (got.double() != expected.double()))
    if not wrong.any():
        return None
    place = _first(wrong)
    what = "NaN" if got[place].isnan() else f"{got[place].item()}"
    count = f"{int(wrong.sum())} of {wrong.numel()} values are not finite as they should be"
    return Difference(
        f"got {what} at {list(place)}, expected {_number(expected[place])} ({count})", math.inf
    )


def _worst(got: Tensor, expected: Tensor, errors: Tensor, limit: float) -> Difference:
    error = errors.max().item()
    place = _first(errors == error)
    wrong = int((errors > limit).sum())
    text = f"got {_number(got[place])} at {list(place)}, expected {_number(expected[place])}"
    if math.isfinite(error):
        allowed = error / limit if limit else error
        text += f"; error {allowed:.3g} × what is allowed"
    return Difference(f"{text} ({wrong} of {errors.numel()} values differ)", error)


def _unequal(got: Tensor, expected: Tensor) -> Tensor:
    return torch.where(got == expected, 0.0, math.inf).double()


def _first(mask: Tensor) -> tuple[int, ...]:
    return tuple(mask.nonzero()[0].tolist())


def _number(value: Tensor) -> str:
    return f"{value.item():.5g}"


def _shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _kind(value: Plain) -> str:
    return "None (is a `return` missing?)" if value is None else f"a {type(value).__name__}"
