"""Pictures: slices of a wrong answer and of the right answer, which a report draws."""

from __future__ import annotations

import math

from torch import Tensor

from tests.harness.compare import errors_of, strange_places
from tests.harness.results import PICTURE_SIDE, Number, Picture, Row

_DIGITS = 8


def picture_of(case: str, got: Tensor, expected: Tensor, limit: float) -> Picture | None:
    """Cut a slice around the worst value out of a wrong answer and out of the right one.

    The slice covers the last two axes that are longer than 1, with at most 32 values on each.

    Args:
        case: the name of the saved case.
        got: the wrong answer; its shape and dtype are right.
        expected: the right answer.
        limit: the largest error allowed, in units of the dtype's tolerance.

    Returns:
        None if no axis is longer than 1.
    """
    axes = tuple(axis for axis, size in enumerate(got.shape) if size > 1)[-2:]
    if not axes:
        return None
    strange, errors = strange_places(got, expected), errors_of(got, expected)
    worst = strange if strange.any() else errors == errors.max()
    index: list[int] = worst.nonzero()[0].tolist()
    starts = tuple(
        max(0, min(index[a] - PICTURE_SIDE // 2, got.shape[a] - PICTURE_SIDE)) for a in axes
    )
    cut: list[int | slice] = list(index)
    for axis, start in zip(axes, starts, strict=True):
        cut[axis] = slice(start, min(start + PICTURE_SIDE, got.shape[axis]))

    def rows(values: Tensor) -> Tensor:
        piece = values[tuple(cut)]
        return piece if piece.ndim == 2 else piece[None]

    inside = [index[axis] - start for axis, start in zip(axes, starts, strict=True)]
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
