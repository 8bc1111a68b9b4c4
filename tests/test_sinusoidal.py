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
    """Make arguments of `run_sinusoidal_positions`."""
    return {
        "d_model": x.shape[-1],
        "max_seq_len": max_seq_len,
        "in_features": x,
        "token_positions": positions,
    }


@ours
@task("sinusoidal_positions")
def test_sinusoidal_matches_saved_tensors(adapters, cases):
    """An even feature gets a sine, the odd one after it the cosine of the same angle."""
    cases.check(adapters.run_sinusoidal_positions)


@ours
@task("sinusoidal_positions")
def test_sinusoidal_positions_are_used(adapters, cases):
    """The given positions are used; they may have gaps, any order, and differ from row to row."""
    cases.check(adapters.run_sinusoidal_positions)


@ours
@task("sinusoidal_positions")
def test_odd_number_of_features(adapters, cases):
    """With an odd number of features the last sine has no cosine."""
    cases.check(adapters.run_sinusoidal_positions)


@ours
@task("sinusoidal_positions")
def test_sinusoidal_far_out(adapters, cases):
    """The angles of large positions are precise: half precision is not enough for them."""
    cases.check(adapters.run_sinusoidal_positions)


@ours
@task("sinusoidal_positions")
def test_sinusoidal_memory(adapters, draw):
    """The memory layout does not change the answer, inputs do not change, and two calls agree."""
    arguments = sinusoidal_arguments(draw.normal(3, 5, 6), torch.arange(5))
    check_memory(adapters.run_sinusoidal_positions, arguments, "in_features")


@ours
@task("sinusoidal_positions")
def test_sinusoidal_gradient(adapters, draw):
    """The gradient of the input is the cotangent, since the added vector is a constant."""
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
    """Half-precision inputs give an output of the same dtype, with precise sines and cosines."""
    adapter, positions = adapters.run_sinusoidal_positions, torch.tensor([3, 257, 900, 1023])
    arguments = sinusoidal_arguments(draw.normal(4, 8), positions, 1024)
    check_dtype_kept(adapter, arguments, "in_features")
    exact = adapter(**{**arguments, "in_features": torch.zeros(4, 8)})
    half = adapter(**{**arguments, "in_features": torch.zeros(4, 8).bfloat16()})
    why = "with bfloat16 features, other sines and cosines are added"
    check_close(half, exact.double(), why, dtype=torch.bfloat16)


@ours
@task("sinusoidal_positions")
def test_nothing_in_sinusoidal_is_learned_or_saved(adapters):
    """The table is a buffer, not a parameter, and is not in the state dict."""
    arguments = {"d_model": 6, "max_seq_len": 16}
    seen = adapters.probe(
        "module", symbol=SINUSOIDAL, arguments=arguments, device="meta", dtype="bfloat16"
    )
    check(not seen["parameters"], f"fixed positions have parameters: {list(seen['parameters'])}")
    check(not seen["state"], f"the table is saved with the model: {seen['state']}")
    check(bool(seen["buffers"]), "the table is no buffer, so it stays behind when the model moves")
    check_placed(seen["buffers"], device="meta")
    seen = adapters.probe("module", symbol=SINUSOIDAL, arguments=arguments)
    check_placed(seen["buffers"], device="cpu")


@ours
@task("sinusoidal_positions")
def test_sinusoidal_beyond_the_table_is_refused(adapters, draw):
    """A position of max_seq_len or more is an error; max_seq_len - 1 is not."""
    adapter, x = adapters.run_sinusoidal_positions, draw.normal(2, 6)
    last = torch.tensor([0, 15])
    roomy = adapter(**sinusoidal_arguments(x, last, 64))
    tight = adapter(**sinusoidal_arguments(x, last, 16))
    check_close(tight, roomy, "the last position of a table is not that of a longer table")
    for beyond in (16, 40):
        arguments = sinusoidal_arguments(x, torch.tensor([0, beyond]), 16)
        adapter.error(f"max_seq_len is 16 and a position is {beyond}", **arguments)
