"""Heat maps turn a picture of numbers into shapes, which the page's template draws as SVG.

Each colour is a CSS class, so that the style sheet can choose it for light and for dark. The cells
of one colour form one path, which keeps a map of 32 × 32 below 20 kB. No information is shown by
colour alone: small maps show the numbers, large maps mark signs and values that are not finite, and
the worst value has a frame.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.harness.results import Number, Picture, Rows

LEVELS = 5
"""The number of colours for positive values; negative values have as many."""
_MOST_NUMBERED = (12, 8)
"""The most rows and columns of a map that shows its numbers."""
_WITH_NUMBER = (38, 25)
"""Width and height, in pixels, of a cell that shows its number."""
_SIDES, _PANEL = (9, 24), 304
"""In pixels: the least and the greatest side of other cells, and the width of all columns."""
_MARGIN = (22, 16)
"""Pixels for the indices, to the left and above."""


@dataclass(frozen=True)
class Text:
    """A short text, centred on a point."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Panel:
    """One map: its shapes, and a description for readers who can't see it."""

    title: str
    says: str
    """The description, which a screen reader reads."""
    width: int
    height: int
    fills: dict[str, str]
    """The paths of the cells, keyed by colour: `p5` … `p1`, `z`, `n1` … `n5`, `none`, `strange`."""
    marks: str
    """One path with the sign of each cell that shows no number."""
    numbers: list[Text]
    indices: list[Text]
    worst: tuple[int, int, int, int]
    """The frame of the worst value: x, y, width, height."""
    largest: str
    """The number that the strongest colour stands for; "" if the map has no scale."""


_MOST = 6
"""The largest number of characters in which a number is written."""
_COMMON = (0.1, 1e4)
"""The range of scales whose numbers are written without an exponent."""
_EXPONENT = re.compile(r"e(?:\+|(-))0*")

Value = Callable[[int, int], Number | None]
"""A function that returns the value at a row and a column; None leaves the cell empty."""


def panels(picture: Picture) -> list[Panel]:
    """Return the maps of a picture: got, expected and difference.

    If the picture has no numbers, there is one map, which shows where the answer differs.
    """
    wrong = sum(map(sum, picture.wrong))
    of = sum(map(len, picture.wrong))
    count = f"{wrong} of {of} values differ"
    if picture.got is None or picture.expected is None:
        where = _Grid(picture, numbers=False)
        return [
            where.panel("where it differs", count, lambda r, c: "NaN" if where.off(r, c) else None)
        ]
    got, expected, grid = picture.got, picture.expected, _Grid(picture)
    scale = _largest(expected) or _largest(got)

    def difference(r: int, c: int) -> Number | None:
        one, other = got[r][c], expected[r][c]
        if not grid.off(r, c):
            return None
        return one - other if isinstance(one, float) and isinstance(other, float) else "NaN"

    rows, columns = range(len(got)), range(len(got[0]))
    off = _largest(tuple(tuple(difference(r, c) or 0.0 for c in columns) for r in rows))
    return [
        grid.panel("got", _range(got), lambda r, c: got[r][c], scale),
        grid.panel("expected", _range(expected), lambda r, c: expected[r][c], scale),
        grid.panel("difference", count, difference, off, signed=True),
    ]


def short(value: Number, scale: float = 0.0, *, signed: bool = False) -> str:
    """Write a number in six characters or fewer.

    Args:
        value: the number.
        scale: the largest number of the map, or 0 for no scale. If it is of common size, all
            numbers of the map get the same number of decimals.
        signed: write the sign of positive numbers too.
    """
    if isinstance(value, str):
        return value.replace("-", "−").replace("inf", "∞")
    sign = "+" if signed else ""
    formats = [f"{sign}.{digits}g" for digits in (3, 2, 1)]
    if _COMMON[0] <= scale < _COMMON[1]:
        formats.insert(0, f"{sign}.{max(0, min(2, 2 - math.floor(math.log10(scale))))}f")
    texts = [_EXPONENT.sub(lambda e: f"e{e[1] or ''}", f"{value:{it}}") for it in formats]
    return next((it for it in texts if len(it) <= _MOST), texts[-1]).replace("-", "−")


class _Grid:
    """The cells of a picture, with their sizes and positions."""

    def __init__(self, picture: Picture, *, numbers: bool = True) -> None:
        self.rows, self.columns = len(picture.wrong), len(picture.wrong[0])
        most_rows, most_columns = _MOST_NUMBERED
        self.numbers = numbers and self.rows <= most_rows and self.columns <= most_columns
        side = max(_SIDES[0], min(_SIDES[1], _PANEL // self.columns))
        self.width, self.height = _WITH_NUMBER if self.numbers else (side, side)
        self.picture = picture

    def off(self, row: int, column: int) -> bool:
        """Return whether the answer differs from the expected value by more than is allowed."""
        return self.picture.wrong[row][column]

    def panel(
        self, title: str, says: str, value: Value, scale: float = 0.0, *, signed: bool = False
    ) -> Panel:
        """Draw one map.

        Args:
            title: its title.
            says: the rest of its description.
            value: returns the value of a cell.
            scale: the size of a number with the strongest colour.
            signed: show the sign of every number.
        """
        fills: dict[str, list[str]] = {}
        marks, numbers = [], []
        for row in range(self.rows):
            for column in range(self.columns):
                it = value(row, column)
                x, y = self.corner(row, column)
                box = f"M{x} {y}h{self.width}v{self.height}h-{self.width}z"
                fills.setdefault(_colour(it, scale), []).append(box)
                if self.numbers:
                    text = "=" if it is None else short(it, scale, signed=signed)
                    numbers.append(Text(x + self.width / 2, y + 17, text))
                elif isinstance(it, str) or (signed and it):
                    marks.append(
                        _mark(it, x + self.width / 2, y + self.height / 2, max(2, self.width // 5))
                    )
        return Panel(
            title=title,
            says=f"{title}: {self.rows} × {self.columns} values, {says}",
            width=_MARGIN[0] + self.columns * self.width + 1,
            height=_MARGIN[1] + self.rows * self.height + 1,
            fills={colour: "".join(boxes) for colour, boxes in sorted(fills.items())},
            marks="".join(marks),
            numbers=numbers,
            indices=self.indices(),
            worst=(*self.corner(*self.picture.worst), self.width, self.height),
            largest=short(scale) if scale else "",
        )

    def corner(self, row: int, column: int) -> tuple[int, int]:
        """Return the position of a cell's upper left corner."""
        return _MARGIN[0] + column * self.width, _MARGIN[1] + row * self.height

    def indices(self) -> list[Text]:
        """Return the indices of rows and columns: all of them on wide cells, else every eighth."""
        every = 1 if self.width >= _MARGIN[0] else 8
        start, texts = self.picture.start, []
        for column in range(0, self.columns, every):
            x, _ = self.corner(0, column)
            texts.append(Text(x + self.width / 2, _MARGIN[1] - 5, str(start[-1] + column)))
        for row in range(0, self.rows if len(start) > 1 else 0, every):
            _, y = self.corner(row, 0)
            texts.append(Text(_MARGIN[0] / 2, y + self.height / 2 + 4, str(start[0] + row)))
        return texts


def _colour(value: Number | None, scale: float) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        return "strange"
    level = round(LEVELS * min(1.0, abs(value) / scale)) if scale else 0
    return f"{'p' if value > 0 else 'n'}{level}" if level else "z"


def _mark(value: Number | None, x: float, y: float, size: int) -> str:
    """Return the path of a mark: a cross for NaN and infinity, otherwise a plus or a minus."""
    both = 2 * size
    if isinstance(value, str):
        left, top, bottom = x - size, y - size, y + size
        return f"M{left} {top}l{both} {both}M{left} {bottom}l{both} -{both}"
    minus = f"M{x - size} {y}h{both}"
    return minus if value and value < 0 else f"{minus}M{x} {y - size}v{both}"


def _finite(rows: Rows) -> list[float]:
    return [value for row in rows for value in row if isinstance(value, float)]


def _largest(rows: Rows) -> float:
    largest = max((abs(value) for value in _finite(rows)), default=0.0)
    return largest if math.isfinite(largest) else 0.0


def _range(rows: Rows) -> str:
    values = _finite(rows)
    return f"from {short(min(values))} to {short(max(values))}" if values else "none of them finite"
