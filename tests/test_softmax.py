"""Softmax: exp(x) divided by the sum of exp(x) along an axis."""

import torch
import torch.nn.functional as F

from tests.harness import ours, task
from tests.harness.compare import check, check_close
from tests.harness.properties import (
    check_dtype_kept,
    check_gradients,
    check_memory,
)


@task("softmax")
def test_matches_saved_tensors(adapters, cases):
    """The probabilities along the last axis are right."""
    cases.check(adapters.run_softmax)


@task("softmax")
def test_any_axis(adapters, cases):
    """`dim` may be the first axis, a middle one, or a negative number."""
    cases.check(adapters.run_softmax)


@task("softmax")
def test_scores_of_any_size(adapters, cases):
    """Large and very negative scores give right probabilities, without overflow or 0 / 0."""
    cases.check(adapters.run_softmax)


@task("softmax")
def test_scores_of_minus_infinity(adapters, cases):
    """A score of -inf gets probability zero."""
    cases.check(adapters.run_softmax)


@task("softmax")
def test_rows_sum_to_one(adapters, draw):
    """Probabilities are not negative and sum to one along `dim`."""
    for dim in (0, 1, 2):
        output = adapters.run_softmax(in_features=draw.normal(3, 4, 5, scale=5.0), dim=dim)
        check(
            getattr(output, "shape", None) == (3, 4, 5),
            "the output does not have the shape of the input",
        )
        ones = torch.ones(output.sum(dim).shape)
        check_close(output.sum(dim), ones, f"the sums along dim={dim} are not 1")
        check(bool((output >= 0).all()), "a probability is negative")


@task("softmax")
def test_shift_changes_nothing(adapters, draw):
    """Adding one number to all scores does not change the probabilities."""
    x = draw.normal(3, 5)
    plain = adapters.run_softmax(in_features=x, dim=1)
    for shift in (128.0, -128.0):
        # Adding 128 rounds the scores. Both sides use scores that were rounded in this way.
        rounded = (x + shift) - shift
        shifted = adapters.run_softmax(in_features=rounded + shift, dim=1)
        expected = adapters.run_softmax(in_features=rounded, dim=1)
        check_close(shifted, expected, f"adding {shift:g} to every score changes the probabilities")
    check_close(plain, F.softmax(x, 1), "the probabilities of the original scores are wrong")


@task("softmax")
def test_softmax_memory(adapters, draw):
    """The answer is the same for non-contiguous inputs and in a second call; no input changes."""
    arguments = {"in_features": draw.normal(3, 5), "dim": -1}
    check_memory(adapters.run_softmax, arguments, "in_features")


@ours
@task("softmax")
def test_softmax_gradient(adapters, draw):
    """The gradient of the scores is right."""
    arguments = {"in_features": draw.normal(3, 5, scale=3.0), "dim": 0}
    check_gradients(
        adapters.run_softmax,
        arguments,
        lambda in_features: F.softmax(in_features, 0),
        "in_features",
    )


@ours
@task("softmax")
def test_softmax_keeps_the_dtype(adapters, draw):
    """bfloat16 and float16 scores give finite probabilities of the same dtype."""
    arguments = {"in_features": draw.normal(3, 5, scale=100.0), "dim": -1}
    check_dtype_kept(adapters.run_softmax, arguments, "in_features")
