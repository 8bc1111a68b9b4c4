"""The learning-rate schedule: a linear warm-up, a cosine, then a constant minimum."""

import torch

from tests.harness import ours, task
from tests.harness.compare import check, check_close


@task("lr_schedule")
def test_schedule_matches_saved_numbers(adapters, cases):
    """The rate is right at every iteration from 0 to the end of the cosine."""
    cases.check(adapters.probing("schedule"))


@task("lr_schedule")
def test_rates_are_used(adapters, cases):
    """Both given rates are used: the minimum is not always a tenth of the maximum."""
    cases.check(adapters.probing("schedule"))


@task("lr_schedule")
def test_warm_up(adapters, cases):
    """The rate is 0 at iteration 0 and rises linearly to its maximum at `warmup_iters`."""
    cases.check(adapters.probing("schedule"))


@task("lr_schedule")
def test_after_the_cosine(adapters, cases):
    """From iteration `cosine_cycle_iters` on, the rate is the minimum."""
    cases.check(adapters.probing("schedule"))


@task("lr_schedule")
def test_without_warm_up(adapters, cases):
    """`warmup_iters` may be 0: then the first rate is the maximum."""
    cases.check(adapters.probing("schedule"))


@ours
@task("lr_schedule")
def test_without_cosine(adapters, cases):
    """If `cosine_cycle_iters` equals `warmup_iters`, the minimum follows the warm-up at once."""
    cases.check(adapters.probing("schedule"))


@task("lr_schedule")
def test_cosine_is_symmetric(adapters):
    """The rate falls at every step of the cosine, symmetrically, and fastest half-way."""
    arguments = {
        "max_learning_rate": 0.8,
        "min_learning_rate": 0.2,
        "warmup_iters": 10,
        "cosine_cycle_iters": 30,
    }
    rates = adapters.probe("schedule", iterations=list(range(10, 31)), **arguments)
    sums = rates + rates.flip(0)
    ones = torch.ones(21, dtype=torch.float64)
    why = "rates k steps after the cosine's start and k before its end don't sum to max + min"
    check_close(sums, ones, why)
    falls = rates[:-1] - rates[1:]
    check(bool((falls > 0).all()), "the rate does not fall at every step of the cosine")
    check(bool(falls.argmax() in (9, 10)), "the rate does not fall fastest half-way")
