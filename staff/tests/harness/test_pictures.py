"""Pictures: the right slice, few enough numbers, and what no JSON holds; and how they are drawn."""

import math
import re

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest
import torch
from torch import Tensor

from staff.reports.heatmap import panels, short
from staff.tests.support import thorough
from tests.harness.pictures import picture_of
from tests.harness.results import PICTURE_SIDE, Number, Picture


def wrong_at(
    shape: tuple[int, ...], *places: tuple[int, ...], by: float = 1.0
) -> tuple[Tensor, Tensor]:
    """A right answer of zeros to nines, and one that is off in some places."""
    right = (torch.arange(math.prod(shape), dtype=torch.float64) % 10).reshape(shape)
    got = right.float()
    for place in places:
        got[place] += by
    return got, right


def drawn(got: Tensor, right: Tensor, case: str = "case") -> Picture:
    """The picture of an answer that has one."""
    picture = picture_of(case, got, right, 1.0)
    assert picture is not None
    return picture


def numbers(tensor: Tensor) -> tuple[tuple[float, ...], ...]:
    """The rows of a matrix."""
    return tuple(tuple(row) for row in tensor.tolist())


def count(picture: Picture) -> int:
    """How many values of a picture are wrong."""
    return sum(sum(row) for row in picture.wrong)


def test_the_slice_of_the_worst_value() -> None:
    """Catches a slice that does not hold the value which the message names."""
    got, right = wrong_at((3, 4, 5), (1, 2, 3), (1, 0, 0), (2, 0, 0))
    got[1, 2, 3] = 100
    picture = drawn(got, right)
    assert (picture.case, picture.where, picture.axes) == ("case", "[1, :, :]", (1, 2))
    assert (picture.worst, picture.start) == ((2, 3), (0, 0))
    assert picture.got == numbers(got[1])
    assert picture.expected == numbers(right[1])
    assert [(r, c) for r in range(4) for c in range(5) if picture.wrong[r][c]] == [(0, 0), (2, 3)]


@pytest.mark.parametrize(
    ("shape", "place", "where", "size", "worst"),
    [
        ((6,), (4,), "[:]", (1, 6), (0, 4)),
        ((3, 1, 4), (2, 0, 1), "[:, 0, :]", (3, 4), (2, 1)),
        ((4, 1), (2, 0), "[:, 0]", (1, 4), (0, 2)),
        ((2, 100, 50), (1, 70, 49), "[1, 54:86, 18:50]", (32, 32), (16, 31)),
        ((100,), (3,), "[0:32]", (1, 32), (0, 3)),
    ],
)
def test_the_window(
    shape: tuple[int, ...],
    place: tuple[int, ...],
    where: str,
    size: tuple[int, int],
    worst: tuple[int, int],
) -> None:
    """Catches an axis of length one that is drawn, and a window that runs over the edge."""
    picture = drawn(*wrong_at(shape, place))
    assert picture.where == where
    assert (len(picture.wrong), len(picture.wrong[0])) == size
    assert picture.worst == worst
    assert picture.wrong[worst[0]][worst[1]]
    assert count(picture) == 1


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_value_is_no_picture(shape: tuple[int, ...]) -> None:
    """Catches a heat map of a single cell."""
    got, right = wrong_at(shape, (0,) * len(shape))
    assert picture_of("case", got, right, 1.0) is None


def test_what_json_does_not_hold() -> None:
    """Catches NaN that comes back as null, and a slice beside the first of them."""
    got, right = wrong_at((2, 2, 2), (0, 0, 0))
    got[1, 0] = torch.tensor([math.nan, math.inf])
    right[1, 1, 0] = -math.inf
    picture = drawn(got, right)
    assert picture.where == "[1, :, :]"
    assert picture.got is not None
    assert picture.expected is not None
    assert picture.got[0] == ("NaN", "inf")
    assert picture.expected[1][0] == "-inf"
    assert picture.wrong == ((True, True), (True, False))
    assert msgspec.json.decode(msgspec.json.encode(picture), type=Picture) == picture


def test_whole_numbers_have_pictures_too() -> None:
    """Catches a crash where the answer is of a dtype without a tolerance."""
    got, right = torch.tensor([1, 2, 65539]), torch.tensor([1, 2, 3])
    picture = drawn(got, right)
    assert (picture.got, picture.wrong) == (((1.0, 2.0, 65539.0),), ((False, False, True),))


def test_a_picture_is_bounded() -> None:
    """Catches a file in which a picture has more numbers than any report is made for."""
    picture = drawn(*wrong_at((99, 99), (0, 0)))
    assert len(msgspec.json.encode(picture)) < 40_000
    wide = msgspec.structs.replace(picture, got=((0.0,) * (PICTURE_SIDE + 1),))
    with pytest.raises(msgspec.ValidationError, match="length <= 32"):
        msgspec.json.decode(msgspec.json.encode(wide), type=Picture)


def test_a_drawing_with_numbers() -> None:
    """Catches numbers in the wrong cell, colours of another scale, and a frame elsewhere."""
    got, right = wrong_at((2, 3), (1, 2), by=-20.0)
    first, second, third = panels(drawn(got, right))
    assert [panel.title for panel in (first, second, third)] == ["got", "expected", "difference"]
    assert [it.text for it in first.numbers] == ["0.00", "1.00", "2.00", "3.00", "4.00", "−15.00"]
    assert [it.text for it in second.numbers][-1] == "5.00"
    assert [it.text for it in third.numbers] == ["="] * 5 + ["−20.0"]
    assert first.fills.keys() == {"z", "p1", "p2", "p3", "p4", "n5"}
    assert third.fills.keys() == {"none", "n5"}
    assert first.worst[:2] == (22 + 2 * 38, 16 + 25)
    assert third.says == "difference: 2 × 3 values, 1 of 6 values differ"
    assert first.says == "got: 2 × 3 values, from −15 to 4"
    assert (second.largest, third.largest) == ("5", "20")


def test_a_drawing_without_numbers() -> None:
    """Catches a large map in which sign or NaN shows by colour alone."""
    got, right = wrong_at((9, 9), (0, 0), (1, 1))
    got[8, 8] = math.nan
    got[1, 1] -= 5
    first, _, third = panels(drawn(got, right))
    assert first.numbers == []
    assert first.marks.count("M") == 2  # the cross of NaN
    assert third.marks.count("M") == 2 + 1 + 2  # a cross, a minus, a plus
    assert third.fills.keys() == {"none", "n5", "p1", "strange"}


def test_places_without_numbers() -> None:
    """Catches a number in a picture from which the numbers were taken."""
    whole = drawn(*wrong_at((2, 3), (1, 2)))
    (only,) = panels(msgspec.structs.replace(whole, got=None, expected=None))
    assert (only.title, only.numbers, only.largest) == ("where it differs", [], "")
    assert only.marks.count("M") == 2


@pytest.mark.parametrize(
    ("value", "scale", "text"),
    [
        (1.0, 3.0, "1.00"),
        (-0.123, 1.0, "−0.12"),
        (123.4, 500.0, "123"),
        (0.00123, 0.005, "0.0012"),
        (1e30, 1.0, "1e30"),
        (-2e38, 1.0, "−2e38"),
        (-1e-30, 1e-30, "−1e−30"),
        ("-inf", 1.0, "−∞"),
    ],
)
def test_short_numbers(value: Number, scale: float, text: str) -> None:
    """Catches a number that runs out of its cell, or that loses its sign or size."""
    assert short(value, scale) == text


FINITE = st.floats(-1e300, 1e300)


@thorough
@hypothesis.given(FINITE, FINITE, st.booleans())
def test_short_numbers_are_near(value: float, scale: float, signed: bool) -> None:
    """Catches a number that is written as another one."""
    text = short(value, abs(scale), signed=signed).replace("−", "-")
    assert len(text) <= 7
    assert math.isclose(float(text), value, rel_tol=0.5, abs_tol=0.006 if scale else 0)


@thorough
@hypothesis.given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_every_picture_can_be_drawn(rows: int, columns: int, data: st.DataObject) -> None:
    """Catches a shape or a value for which drawing fails, or gives what SVG does not know."""
    values = st.sampled_from([0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 3e38, 1e-38])
    got, right = torch.zeros(rows, columns), torch.zeros(rows, columns, dtype=torch.float64)
    for tensor in (got, right):
        for _ in range(5):
            place = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
            tensor[place] = data.draw(values)
    picture = picture_of("case", got, right, 1.0)
    if picture is None:
        return
    for panel in panels(picture):
        assert all(re.fullmatch(r"[Mhvz\d .-]+", path) for path in panel.fills.values())
        assert re.fullmatch(r"[Mlhv\d .-]*", panel.marks)
        assert sum(path.count("z") for path in panel.fills.values()) == min(
            panel.width * panel.height, sum(len(row) for row in picture.wrong)
        )
