"""Pictures: the slice of a wrong answer that a report draws beside what was expected."""

from __future__ import annotations

import math

from torch import Tensor

from tests.harness.compare import errors_of, strange_places
from tests.harness.results import PICTURE_SIDE, Number, Picture, Row

_DIGITS = 8


def picture_of(case: str, got: Tensor, expected: Tensor, limit: float) -> Picture | None:
    """Cut out the slice around the worst value; None where there is but one value.

    The slice runs along the last two axes that are longer than one, at most 32 values each.

    Args:
        case: name of the saved case.
        got: the answer, of the same shape and a right dtype.
        expected: the right values.
        limit: the largest error allowed, in units of the dtype's tolerance.
    """
    axes = tuple(axis for axis, size in enumerate(got.shape) if size > 1)[-2:]
    if not axes:
        return None
    strange, errors = strange_places(got, expected), errors_of(got, expected)
    worst = strange if strange.any() else errors == errors.max()
    place: list[int] = worst.nonzero()[0].tolist()
    starts = tuple(
        max(0, min(place[a] - PICTURE_SIDE // 2, got.shape[a] - PICTURE_SIDE)) for a in axes
    )
    cut: list[int | slice] = list(place)
    for axis, start in zip(axes, starts, strict=True):
        cut[axis] = slice(start, min(start + PICTURE_SIDE, got.shape[axis]))

    def rows(values: Tensor) -> Tensor:
        part = values[tuple(cut)]
        return part if part.ndim == 2 else part[None]

    inside = [place[axis] - start for axis, start in zip(axes, starts, strict=True)]
    return Picture(
        case=case,
        where=f"[{', '.join(_index(at, size) for at, size in zip(cut, got.shape, strict=True))}]",
        axes=axes,
        start=starts,
        wrong=tuple(tuple(row) for row in rows(strange | (errors > limit)).tolist()),
        worst=(inside[0] if len(axes) == 2 else 0, inside[-1]),
        got=tuple(_numbers(row) for row in rows(got).tolist()),
        expected=tuple(_numbers(row) for row in rows(expected).tolist()),
    )


def _index(at: int | slice, size: int) -> str:
    if isinstance(at, int):
        return str(at)
    return ":" if at.stop - at.start == size else f"{at.start}:{at.stop}"


def _numbers(values: list[float]) -> Row:
    return tuple(_number(float(value)) for value in values)


def _number(value: float) -> Number:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(f"{value:.{_DIGITS}g}")
