"""Sinusoidal positions: a sine and a cosine are added to every pair of features."""

import torch

from tests.harness import ours, task
from tests.harness.compare import check, check_close
from tests.harness.properties import (
    check_dtype_kept,
    check_gradients,
    check_memory,
    check_placed,
)

SINUSOIDAL = "cs336_basics.sinusoidal:SinusoidalPositions"


def sinusoidal_arguments(x, positions, max_seq_len=32):
    """Return arguments of `run_sinusoidal_positions`."""
    return {
        "d_model": x.shape[-1],
        "max_seq_len": max_seq_len,
        "in_features": x,
        "token_positions": positions,
    }


@ours
@task("sinusoidal_positions")
def test_sinusoidal_matches_saved_tensors(adapters, cases):
    """Even features get a sine, odd ones the cosine of the same angle; positions start at 0."""
    cases.check(adapters.run_sinusoidal_positions)


@ours
@task("sinusoidal_positions")
def test_sinusoidal_positions_are_used(adapters, cases):
    """The given positions are used, also with gaps, in any order, or different in each row."""
    cases.check(adapters.run_sinusoidal_positions)


@ours
@task("sinusoidal_positions")
def test_odd_number_of_features(adapters, cases):
    """An odd d_model is allowed: the last feature then gets a sine without a cosine."""
    cases.check(adapters.run_sinusoidal_positions)


@ours
@task("sinusoidal_positions")
def test_sinusoidal_far_out(adapters, cases):
    """Angles at large positions are computed precisely, not in half precision."""
    cases.check(adapters.run_sinusoidal_positions)


@ours
@task("sinusoidal_positions")
def test_sinusoidal_memory(adapters, draw):
    """The answer is the same for non-contiguous inputs and in a second call; no input changes."""
    arguments = sinusoidal_arguments(draw.normal(3, 5, 6), torch.arange(5))
    check_memory(adapters.run_sinusoidal_positions, arguments, "in_features")


@ours
@task("sinusoidal_positions")
def test_sinusoidal_gradient(adapters, draw):
    """The gradient of the input equals the gradient of the output: a constant is added."""
    arguments = sinusoidal_arguments(draw.normal(4, 6), torch.arange(4))
    added = adapters.run_sinusoidal_positions(**{**arguments, "in_features": torch.zeros(4, 6)})
    check_gradients(
        adapters.run_sinusoidal_positions,
        arguments,
        lambda in_features: in_features + added.double(),
        "in_features",
    )


@ours
@task("sinusoidal_positions")
def test_sinusoidal_dtypes(adapters, draw):
    """Half-precision inputs keep their dtype; sines and cosines are right up to rounding."""
    adapter, positions = adapters.run_sinusoidal_positions, torch.tensor([3, 257, 900, 1023])
    arguments = sinusoidal_arguments(draw.normal(4, 8), positions, 1024)
    check_dtype_kept(adapter, arguments, "in_features")
    exact = adapter(**{**arguments, "in_features": torch.zeros(4, 8)})
    half = adapter(**{**arguments, "in_features": torch.zeros(4, 8).bfloat16()})
    why = "the sines and cosines for bfloat16 features differ from those for float32 features"
    check_close(half, exact.double(), why, dtype=torch.bfloat16)


@ours
@task("sinusoidal_positions")
def test_nothing_in_sinusoidal_is_learned_or_saved(adapters):
    """The table is a buffer that moves with the model and is not in the state dict."""
    arguments = {"d_model": 6, "max_seq_len": 16}
    seen = adapters.probe(
        "module", symbol=SINUSOIDAL, arguments=arguments, device="meta", dtype="bfloat16"
    )
    why = f"the module has parameters, expected none: {list(seen['parameters'])}"
    check(not seen["parameters"], why)
    check(not seen["state"], f"the state dict should be empty, and contains {seen['state']}")
    why = "the table is not a buffer, so `model.to(device)` does not move it"
    check(bool(seen["buffers"]), why)
    check_placed(seen["buffers"], device="meta")
    seen = adapters.probe("module", symbol=SINUSOIDAL, arguments=arguments)
    check_placed(seen["buffers"], device="cpu")


@ours
@task("sinusoidal_positions")
def test_sinusoidal_beyond_the_table_is_refused(adapters, draw):
    """Position max_seq_len - 1 works, and a position of max_seq_len or more is an error."""
    adapter, x = adapters.run_sinusoidal_positions, draw.normal(2, 6)
    last = torch.tensor([0, 15])
    roomy = adapter(**sinusoidal_arguments(x, last, 64))
    tight = adapter(**sinusoidal_arguments(x, last, 16))
    why = "position 15 gets other values with max_seq_len=16 than with max_seq_len=64"
    check_close(tight, roomy, why)
    for beyond in (16, 40):
        arguments = sinusoidal_arguments(x, torch.tensor([0, beyond]), 16)
        adapter.error(f"max_seq_len is 16 and a position is {beyond}", **arguments)
