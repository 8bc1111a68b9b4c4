"""The comparison against `torch.testing.assert_close`, and what it says of each difference."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from staff.tests.support import thorough
from tests.harness.compare import (
    TOLERANCES,
    Difference,
    check,
    check_close,
    check_equal,
    difference,
    errors_of,
)
from tests.harness.errors import WrongAnswer
from tests.harness.fingerprints import DIRECTIONS, FAR, Seen
from tests.harness.plain import Plain

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
FLOATS = st.floats(width=32, min_value=-(2.0**100), max_value=2.0**100) | st.floats(-4, 4)
STRANGE = st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan])
VALUES = st.lists(st.tuples(FLOATS | STRANGE, st.floats(-2, 2) | STRANGE), max_size=6)


def closeness(got: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype | None = None) -> bool:
    """Whether `assert_close` agrees; with `dtype`, in float64 with that dtype's tolerances."""
    atol, rtol = TOLERANCES[dtype] if dtype else (None, None)
    try:
        torch.testing.assert_close(got, expected, atol=atol, rtol=rtol, equal_nan=True)
    except AssertionError:
        return False
    return True


def differing(got: Plain, expected: Plain, dtype: torch.dtype, limit: float = 1.0) -> Difference:
    """How an answer differs that is not right."""
    found = difference(got, expected, dtype, limit)
    assert found is not None
    return found


@thorough
@given(VALUES, st.sampled_from(DTYPES))
def test_right_is_what_assert_close_calls_close(
    values: list[tuple[float, float]], dtype: torch.dtype
) -> None:
    """Catches another formula for the error, and NaN or infinity that counts as near."""
    atol, rtol = TOLERANCES[dtype]
    expected = torch.tensor([e for e, _ in values], dtype=torch.float64)
    units = torch.tensor([k for _, k in values], dtype=torch.float64)
    got = (expected + units * (atol + rtol * expected.abs())).to(dtype)
    found = difference(got, expected, dtype)
    assert (found is None) == closeness(got.double(), expected, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("value", [0.0, 1.0, -3.5, 1000.0])
def test_the_tolerances_are_those_of_torch(dtype: torch.dtype, value: float) -> None:
    """Catches a tolerance written down wrong: torch is asked with its own, in the dtype itself."""
    atol, rtol = TOLERANCES[dtype]
    expected = torch.tensor(value, dtype=dtype)
    verdicts = set()
    for tenths in range(30):
        got = (expected.double() + tenths / 10 * (atol + rtol * abs(value))).to(dtype)
        error = errors_of(got, expected).item()
        if abs(error - 1) > 0.02:  # nearer than that, half precision rounds the tolerance itself
            assert closeness(got, expected) == (error < 1)
            verdicts.add(error < 1)
    assert verdicts == {True, False}


@thorough
@given(st.lists(FLOATS, min_size=1, max_size=5), st.floats(1, 50), st.sampled_from(DTYPES[2:]))
def test_the_limit_is_a_multiple_of_the_tolerance(
    values: list[float], limit: float, dtype: torch.dtype
) -> None:
    """Catches a calibrated limit that is added, ignored, or applied to one tolerance alone."""
    expected = torch.tensor(values, dtype=dtype).double()
    atol, rtol = TOLERANCES[dtype]
    got = expected.to(dtype) * (1 + 2 * limit * rtol)
    try:
        torch.testing.assert_close(got.double(), expected, atol=limit * atol, rtol=limit * rtol)
    except AssertionError:
        assert difference(got, expected, dtype, limit) is not None
    else:
        assert difference(got, expected, dtype, limit * (1 + 1e-9)) is None


def test_the_order_of_findings() -> None:
    """Catches a report of values where the real news is the type, the shape or the dtype."""
    right = torch.zeros(2, dtype=torch.float64)

    def text(got: Plain) -> str:
        return differing(got, right, torch.float32).text

    assert text(None) == "returned None (is a `return` missing?), expected a tensor"
    assert text([0.0]) == "returned a list, expected a tensor"
    assert text(torch.full((3,), math.nan).half()) == "shape (3,), expected (2,)"
    assert text(torch.full((2,), math.nan).half()) == "dtype float16, expected float32"
    assert text(torch.tensor([5.0, math.nan])) == (
        "got NaN at [1], expected 0 (1 of 2 values are not finite as they should be)"
    )
    assert text(torch.tensor([0.0, 5.0])) == (
        "got 5 at [1], expected 0; error 500,000 × what is allowed (1 of 2 values differ)"
    )


def test_the_kind_and_size_of_a_difference() -> None:
    """Catches a NaN or another shape that has a finite error, and so counts as nearly right."""
    right = torch.ones(2, 2, dtype=torch.float64)
    for got, kind in ((3, "type"), (right[0].float(), "shape"), (right, "dtype")):
        found = differing(got, right, torch.float32)
        assert (found.kind, found.error) == (kind, math.inf)
    off = torch.tensor([[1.0, 1.0], [1.0, 1.5]])
    found = differing(off, right, torch.float32, limit=10)
    assert found.kind == "value"
    assert found.error == pytest.approx(0.5 / (1e-5 + 1.3e-6))
    assert "at [1, 1], expected 1; error 4,420 × what" in found.text


@pytest.mark.parametrize("expected", [-math.inf, math.inf, math.nan])
def test_values_that_are_not_finite(expected: float) -> None:
    """Catches a finite value, or the other infinity, accepted where infinity or NaN is right."""
    right = torch.tensor([0.0, expected], dtype=torch.float64)
    assert difference(right.float(), right, torch.float32) is None
    for wrong in {0.0, 3e38, math.inf, -math.inf} - {expected}:
        found = differing(torch.tensor([0.0, wrong]), right, torch.float32)
        assert found.text.startswith(
            f"got {torch.tensor(wrong).item()} at [1], expected {expected}"
        )
        assert found.error == math.inf


def test_empty_and_scalar_tensors() -> None:
    """Catches a maximum over nothing, equality that isn't enough, a place that has no index."""
    assert difference(torch.zeros(0, 3), torch.zeros(0, 3), torch.float32) is None
    assert difference(torch.ones(2), torch.ones(2), torch.float32, limit=0) is None
    assert differing(torch.zeros(0, 3), torch.zeros(3, 0), torch.float32).kind == "shape"
    found = differing(torch.tensor(2.0), torch.tensor(1.0), torch.float32)
    assert found.text.startswith("got 2 at [], expected 1; ")


def test_integers_and_booleans_must_be_equal() -> None:
    """Catches a tolerance on token ids, and one wrong id among many."""
    ids = torch.tensor([1, 100_000])
    assert difference(ids.clone(), ids, torch.int64, limit=100) is None
    found = differing(torch.tensor([1, 100_001]), ids, torch.int64, limit=100)
    assert found.error == math.inf
    assert found.text.endswith("(1 of 2 values differ)")
    mask = torch.tensor([True, False])
    assert differing(~mask, mask, torch.bool).text.startswith("got 0 at [0], expected 1 (2 of 2")
    assert difference(mask, mask.clone(), torch.bool) is None


def test_the_checks_raise_findings() -> None:
    """Catches a comparison whose result is ignored, and a sentence that is lost."""
    check_close(torch.ones(1), torch.ones(1), "unlike")
    check(1, "never")
    check_equal([1], [1], "never")
    with pytest.raises(WrongAnswer) as caught:
        check_close(torch.ones(1), torch.zeros(1), "the sum is off", limit=0.0)
    assert caught.value.failure.headline == "the sum is off"
    assert caught.value.failure.details[0].startswith("got 1 at [0], expected 0")
    with pytest.raises(WrongAnswer, match=r"^nothing came$"):
        check([], "nothing came")
    with pytest.raises(WrongAnswer, match=r"^other ids\ngot 2 at \[0\], expected 1$"):
        check_equal([2], [1], "other ids")


def test_measured_numbers_are_kept_apart() -> None:
    """Catches a measured number in the sentence by which a known mistake is recognised."""
    why = "the norm is {:.3g}, and {} is allowed"
    with pytest.raises(WrongAnswer, match=r"^the norm is 2.12, and 2 is allowed$") as caught:
        check(False, why, 2.1234, 2)
    assert caught.value.seen == Seen(kind="says", why=why, numbers=(2.1234, 2.0), error=FAR)
    with pytest.raises(WrongAnswer, match=r"^at step 3\n") as caught:
        check_close(torch.ones(1), torch.zeros(1), "at step {:g}", 3)
    seen = caught.value.seen
    assert (seen.kind, seen.why, seen.numbers) == ("value", "at step {:g}", (3.0,))
    assert seen.error == pytest.approx(1e5)
    assert len(seen.off) == DIRECTIONS


def test_a_check_as_another_processor_sees_it() -> None:
    """Catches an answer that noise turns right or wrong, or that is seen without any noise."""
    right = torch.ones(50, dtype=torch.float64)
    with pytest.raises(WrongAnswer) as caught:
        check_close(right.float() * 3, right.float(), "off")
    seen, shaken = caught.value.seen, caught.value.shaken("a seed")
    assert shaken != seen
    assert shaken.error == pytest.approx(seen.error, rel=1e-5)
    assert caught.value.shaken("a seed") == shaken
    with pytest.raises(WrongAnswer) as caught:
        check(False, "never")
    assert caught.value.shaken("a seed") == caught.value.seen
