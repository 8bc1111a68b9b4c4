"""Fingerprints: equal where rounding alone differs, unlike for unlike mistakes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from torch import Tensor

from staff.tests.support import thorough
from tests.harness.compare import compare, seen_of
from tests.harness.fingerprints import (
    DIRECTIONS,
    FAR,
    LOUD,
    NOISE,
    Seen,
    directions_of,
    finite,
    fits,
    shaken,
)

RIGHT = torch.linspace(-2, 3, 60, dtype=torch.float64).reshape(5, 12)
NOTHING = Seen()


def seen(got: Tensor, limit: float = 1.0) -> Seen:
    """What a saved case sees of an answer."""
    return seen_of(got, RIGHT, compare(got, RIGHT, torch.float32, limit), limit)


def wrong(error: Tensor | float) -> Tensor:
    """An answer that is off by so much."""
    return (RIGHT + error).float()


def says(why: str, *numbers: float) -> Seen:
    """A check that failed with this sentence and these numbers."""
    return Seen(kind="says", why=why, numbers=numbers, error=FAR)


MISTAKES = {
    "an offset": wrong(0.1),
    "another offset": wrong(-0.1),
    "a factor": wrong(0.1 * RIGHT),
    "a larger factor": wrong(0.11 * RIGHT),
    "a position": wrong(torch.eye(5, 12)),
    "an order": RIGHT.flip(0).float(),
    "NaN": wrong(torch.where(RIGHT > 2, math.nan, 0.0)),
    "NaN elsewhere": wrong(torch.where(RIGHT < 0, math.nan, 0.0)),
    "a shape": RIGHT.T.float(),
    "a dtype": RIGHT,
    "nothing": wrong(0.0),
}


@pytest.mark.parametrize("one", MISTAKES)
@pytest.mark.parametrize("other", MISTAKES)
def test_unlike_mistakes_do_not_fit(one: str, other: str) -> None:
    """Catches two mistakes that pass for each other, or a mistake that isn't recognised."""
    stored = seen(MISTAKES[other])
    assert fits(seen(MISTAKES[one]), stored.stored() if stored.loud else NOTHING) is (one == other)


def test_other_exceptions_do_not_fit() -> None:
    """Catches an exception of another type or of another adapter that passes for a known one."""
    known = Seen(kind="raises", why="run_x", detail="TypeError", error=FAR)
    assert fits(known, known.stored())
    assert not fits(replace(known, detail="IndexError"), known.stored())
    assert not fits(replace(known, why="run_y"), known.stored())
    assert not fits(seen(wrong(0.1)), known.stored())


def test_sentences_fit_with_nearly_the_same_numbers() -> None:
    """Catches a sentence that fits with other numbers, or that needs equal ones."""
    known = says("std {}, not {}", 0.0502, 0.0471).stored()
    assert fits(says("std {}, not {}", 0.0501, 0.0471), known)
    assert not fits(says("std {}, not {}", 0.0502, 0.0502), known)
    assert not fits(says("mean {}, not {}", 0.0502, 0.0471), known)
    assert not fits(says("std {}, not {}", 0.0502), known)


@pytest.mark.parametrize("limit", [1.0, 5.0, 200.0])
def test_an_error_of_a_few_limits_is_not_held_against_a_mistake(limit: float) -> None:
    """Catches a name that depends on whether an error lies a little above or below the limit."""

    def off(limits: float) -> Seen:
        return Seen(kind="value", off=(1.0,) * DIRECTIONS, error=limits * limit, limit=limit)

    assert not off(LOUD).loud
    assert off(1.01 * LOUD).loud
    for seen_here in (NOTHING, off(0.9), off(LOUD), off(1.01 * LOUD), off(2 * LOUD)):
        here = replace(seen_here, limit=limit)
        assert fits(here, NOTHING), seen_here
        if not here.loud:
            assert fits(here, off(2 * LOUD).stored())
            assert not fits(here, off(2.1 * LOUD).stored())
    assert not fits(off(2.1 * LOUD), NOTHING)


def test_nan_is_told_by_its_place_alone() -> None:
    """Catches finite values beside a NaN, which rounding decides, that tell two answers apart."""
    mask = RIGHT > 2
    one = wrong(torch.where(mask, math.nan, 0.0))
    other = wrong(torch.where(mask, math.nan, 0.3))
    assert seen(one) == seen(other)
    assert seen(one).off == ()
    assert fits(seen(other), seen(one).stored())
    assert not fits(seen(wrong(torch.where(RIGHT > 1.9, math.nan, 0.0))), seen(one).stored())
    infinite = wrong(torch.where(mask, math.inf, 0.0))
    assert seen(infinite).kind == "nan"


@thorough
@given(
    st.sampled_from([name for name in MISTAKES if seen(MISTAKES[name]).loud]),
    st.integers(0, 10**6),
)
def test_noise_is_not_seen(name: str, seed: int) -> None:
    """Catches a fingerprint that another processor's rounding would change."""
    answer = MISTAKES[name]
    disturbed = shaken(answer, f"{seed}")
    assert (disturbed.nan_to_num() - answer.nan_to_num()).abs().max() <= 3.1 * 2 * NOISE
    assert fits(seen(disturbed), seen(answer).stored())
    assert fits(seen(answer), seen(disturbed).stored())


def test_noise_depends_on_its_seed_alone() -> None:
    """Catches noise that differs from run to run, that stays away, or that moves a zero."""
    answer = RIGHT.float()
    assert torch.equal(shaken(answer, "a"), shaken(answer, "a"))
    assert not torch.equal(shaken(answer, "a"), shaken(answer, "b"))
    assert not torch.equal(shaken(answer, "a"), answer)
    assert shaken(answer, "a").dtype == torch.float32
    assert not shaken(torch.zeros(9), "a").any()


def test_the_stored_form_holds_no_digit_that_rounding_decides() -> None:
    """Catches a stored fingerprint with a limit, an error beyond numbers, or too many digits."""
    found = seen(wrong(0.1 * RIGHT), limit=3.0)
    assert found.limit == 3.0
    stored = found.stored()
    assert (stored.limit, stored.stored()) == (1.0, stored)
    assert all(value == float(f"{value:.4g}") for value in (*stored.off, stored.error))
    assert says("x", 1.23456).stored() == replace(says("x", 1.235), error=0.0)
    assert seen(MISTAKES["NaN"]).stored().error == 0.0


def test_projections_of_any_error_are_numbers() -> None:
    """Catches NaN, infinity or an overflow in a fingerprint, which JSON can't hold."""
    huge = torch.tensor([math.nan, math.inf, -math.inf, 1e300, -1e308], dtype=torch.float64)
    for error in (huge, huge[:0], torch.tensor(3.0)):
        found = directions_of(error)
        assert len(found) == DIRECTIONS
        assert all(math.isfinite(value) for value in found)
    assert set(directions_of(torch.zeros(7))) == {0.0}
    assert [finite(x) for x in (1.5, math.nan, math.inf, -math.inf)] == [1.5, FAR, FAR, FAR]
