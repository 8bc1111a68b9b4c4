"""The comparison of an answer with the right answer.

Exact data (strings, bytes, integers, and lists and dicts of these) must be equal. In a tensor,
the error of a value y whose right value is e is `|y − e| / (atol + rtol · |e|)`, with the
tolerances that `torch.testing.assert_close` uses for the dtype. An answer is right if no error
exceeds the limit. Only one difference is reported, the first in this order: the kind of object,
the shape, the dtype, NaN or infinity, the values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from msgspec.structs import replace
from torch import Tensor

from tests.harness.errors import WrongAnswer
from tests.harness.fingerprints import (
    FAR,
    Kind,
    Seen,
    digest_of,
    directions_of,
    finite,
    places_of,
    shaken,
)
from tests.harness.plain import Plain

TOLERANCES = {
    torch.float16: (1e-5, 1e-3),
    torch.bfloat16: (1e-5, 1.6e-2),
    torch.float32: (1e-5, 1.3e-6),
    torch.float64: (1e-7, 1e-7),
}
"""`(atol, rtol)` for each dtype; the values of any other dtype must be equal."""


@dataclass(frozen=True)
class Difference:
    """The difference between a wrong answer and the right one."""

    kind: Kind
    text: str
    """The difference in one line, for a person."""
    error: float
    """The largest error, in units of the tolerance; infinite if values can't be compared."""


def difference(
    got: Plain, expected: Plain, dtype: torch.dtype, limit: float = 1.0
) -> Difference | None:
    """Compare an answer with the right one; return None if the answer is right.

    Args:
        got: the answer of the submission.
        expected: a tensor, which may be more precise than `dtype`, or exact data.
        dtype: the dtype that the answer must have, if it is a tensor.
        limit: the largest error allowed, in units of the dtype's tolerance.
    """
    found = compare(got, expected, dtype, limit)
    return found if isinstance(found, Difference) else None


def compare(
    got: Plain, expected: Plain, dtype: torch.dtype, limit: float = 1.0
) -> float | Difference:
    """Compare an answer as `difference` does; return its largest error if the answer is right."""
    if not isinstance(expected, Tensor):
        unlike = _unlike(got, expected, "")
        return 0.0 if unlike is None else Difference("data", unlike, math.inf)
    kind = _other_kind(got, expected, dtype)
    if kind is not None or not expected.numel():
        return kind or 0.0
    # If a value is not finite, this error is NaN or infinite, and the code below decides.
    error = _errors(got, expected).max().item()
    if error <= limit:
        return error
    strange = _not_finite(got, expected)
    if strange is not None:
        return strange
    errors = errors_of(got, expected)
    error = errors.max().item()
    return error if error <= limit else _worst(got, expected, errors, limit)


def errors_of(got: Tensor, expected: Tensor) -> Tensor:
    """Return the error of every value, in units of the tolerance of the answer's dtype.

    The error is 0 where the right value is not finite.
    """
    return torch.where(expected.isfinite(), _errors(got, expected), 0.0)


def _errors(got: Tensor, expected: Tensor) -> Tensor:
    if got.dtype not in TOLERANCES:
        return torch.where(got == expected, 0.0, math.inf).double()
    return _signed_errors(got, expected).abs()


def _signed_errors(got: Tensor, expected: Tensor) -> Tensor:
    """Return the error of every value with its sign.

    For a dtype without tolerances, this is the plain difference.
    """
    atol, rtol = TOLERANCES.get(got.dtype, (1.0, 0.0))
    right = expected.double()
    return (got.double() - right) / (atol + rtol * right.abs())


def seen_of(
    got: Plain, expected: Plain, found: float | Difference, limit: float, why: str = ""
) -> Seen:
    """Describe the outcome of a comparison in the form that known mistakes are stored in.

    Args:
        got: the answer of the submission.
        expected: the right answer.
        found: the result of `compare` for these two.
        limit: the largest error allowed.
        why: the sentence of the check, for a test without saved cases.
    """
    if not isinstance(found, Difference):
        return Seen(error=found, limit=limit)
    if found.kind == "value":
        off = directions_of(_signed_errors(got, expected))
        error = min(FAR, found.error)
        return Seen(kind="value", why=why, off=off, error=error, limit=limit)
    detail = found.text
    if found.kind == "data":
        detail = digest_of(got)
    elif found.kind == "nan":
        detail = places_of(strange_places(got, expected))
    return Seen(kind=found.kind, why=why, detail=detail, error=FAR, limit=limit)


def check_equal(got: Plain, expected: Plain, why: str) -> None:
    """Raise WrongAnswer with the sentence `why` and the first difference, unless data is equal.

    Args:
        got: the answer of the submission.
        expected: the right answer, as exact data.
        why: the sentence that a student reads if the check fails.

    Raises:
        WrongAnswer: the data is not equal.
    """
    found = _unlike(got, expected, "")
    if found is not None:
        seen = Seen(kind="data", why=why, detail=digest_of(got), error=FAR)
        raise WrongAnswer(why, found, seen=seen)


def check_close(
    got: Plain,
    expected: Tensor,
    why: str,
    *numbers: float,
    dtype: torch.dtype | None = None,
    limit: float = 1.0,
) -> None:
    """Raise WrongAnswer with the sentence `why` and the difference, unless `got` is right.

    Args:
        got: the answer of the submission.
        expected: the right answer.
        why: the sentence that a student reads if the check fails.
        numbers: values for the fields of the sentence, as in `check`.
        dtype: the dtype that `got` must have; None means the dtype of `expected`.
        limit: the largest error allowed, in units of the dtype's tolerance.

    Raises:
        WrongAnswer: `got` is not right.
    """
    dtype = dtype or expected.dtype
    found = difference(got, expected, dtype, limit)
    if found is None:
        return
    measured = tuple(finite(float(number)) for number in numbers)
    seen = replace(seen_of(got, expected, found, limit, why), numbers=measured)

    def disturbed(seed: str) -> Seen:
        if found.kind != "value" or not (isinstance(got, Tensor) and got.is_floating_point()):
            return seen
        other = shaken(got, seed)
        differs = difference(other, expected, dtype, limit)
        again = seen_of(other, expected, differs, limit, why) if differs else seen
        return replace(again, numbers=measured)

    raise WrongAnswer(_filled(why, numbers), found.text, seen=seen, shaken=disturbed)


def check(condition: object, why: str, *numbers: float) -> None:
    """Raise WrongAnswer with the sentence `why` unless the condition holds.

    A measured number may depend on rounding, so it fills a field of the sentence:
    `check(size < 2, "the norm is {:.3g}, and 2 is allowed", size)`. A known mistake is then
    recognised by the sentence and by nearly the same numbers.

    Args:
        condition: what must be true.
        why: the sentence that a student reads if the check fails.
        numbers: values for the fields of the sentence.

    Raises:
        WrongAnswer: the condition is false.
    """
    if not condition:
        measured = tuple(finite(float(number)) for number in numbers)
        seen = Seen(kind="says", why=why, numbers=measured, error=FAR)
        raise WrongAnswer(_filled(why, numbers), seen=seen)


def _filled(why: str, numbers: tuple[float, ...]) -> str:
    return why.format(*numbers) if numbers else why


def _unlike(got: Plain, expected: Plain, path: str) -> str | None:
    """Describe the first difference of exact data; return None if there is none."""
    where = f" at {path}" if path else ""
    if type(got) is not type(expected):
        return f"got {_short(got)}{where}, expected {_short(expected)}"
    if isinstance(expected, dict):
        for key, right in expected.items():
            if key not in got:
                return f"{_short(key)} is missing{where}"
            found = _unlike(got[key], right, f"{path}[{key!r}]")
            if found:
                return found
        extra = next((key for key in got if key not in expected), None)
        return None if extra is None else f"{_short(extra)} should not be there{where}"
    if isinstance(expected, list) or (isinstance(expected, tuple) and len(got) != len(expected)):
        for i, (one, other) in enumerate(zip(got, expected, strict=False)):
            found = _unlike(one, other, f"{path}[{i}]")
            if found:
                return found
        if len(got) != len(expected):
            return f"got {len(got)} items{where}, expected {len(expected)}"
        return None
    return None if got == expected else f"got {_short(got)}{where}, expected {_short(expected)}"


def _short(value: Plain, most: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _other_kind(got: Plain, expected: Tensor, dtype: torch.dtype) -> Difference | None:
    """Report an answer that is no tensor, or a tensor of a wrong shape or dtype."""
    if not isinstance(got, Tensor):
        return Difference("type", f"returned {_kind(got)}, expected a tensor", math.inf)
    if got.shape != expected.shape:
        text = f"shape {_shape(got)}, expected {_shape(expected)}"
        return Difference("shape", text, math.inf)
    if got.dtype != dtype:
        text = f"dtype {_name(got.dtype)}, expected {_name(dtype)}"
        return Difference("dtype", text, math.inf)
    return None


def strange_places(got: Tensor, expected: Tensor) -> Tensor:
    """Return a mask that is True where only one tensor has NaN, or where infinities differ."""
    infinite = got.isinf() | expected.isinf()
    return (got.isnan() != expected.isnan()) | (infinite & (got.double() != expected.double()))


def _not_finite(got: Tensor, expected: Tensor) -> Difference | None:
    """Report the first value at which only one tensor has NaN, or at which infinities differ."""
    wrong = strange_places(got, expected)
    if not wrong.any():
        return None
    index = _first(wrong)
    what = "NaN" if got[index].isnan() else f"{got[index].item()}"
    count = f"{int(wrong.sum())} of {wrong.numel()} values are not finite as they should be"
    text = f"got {what} at {list(index)}, expected {_number(expected[index])} ({count})"
    return Difference("nan", text, math.inf)


def _worst(got: Tensor, expected: Tensor, errors: Tensor, limit: float) -> Difference:
    error = errors.max().item()
    index = _first(errors == error)
    wrong = int((errors > limit).sum())
    digits = 5 if _number(got[index]) != _number(expected[index]) else 9
    right = _number(expected[index], digits)
    text = f"got {_number(got[index], digits)} at {list(index)}, expected {right}"
    if math.isfinite(error):
        allowed = error / limit if limit else error
        text += f"; error {_times(allowed)} × what is allowed"
    return Difference("value", f"{text} ({wrong} of {errors.numel()} values differ)", error)


def _times(factor: float) -> str:
    """Format a factor with three digits, and without an exponent below 1e9."""
    rounded = float(f"{factor:.3g}")
    return f"{rounded:,.0f}" if 1e3 <= rounded < 1e9 else f"{rounded:g}"


def _first(mask: Tensor) -> tuple[int, ...]:
    return tuple(mask.nonzero()[0].tolist())


def _number(value: Tensor, digits: int = 5) -> str:
    return f"{value.item():.{digits}g}"


def _shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _kind(value: Plain) -> str:
    return "None (is a `return` missing?)" if value is None else f"a {type(value).__name__}"
