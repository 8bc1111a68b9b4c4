"""Linear layer: y = x Wᵀ."""

import math

import torch
import torch.nn.functional as F

from tests.harness import ours, task
from tests.harness.compare import check, check_close
from tests.harness.properties import (
    check_gradients,
    check_memory,
    check_parameters,
    check_placed,
    check_truncated_normal,
    value_of,
)

LINEAR = "cs336_basics.linear:Linear"


@task("linear")
def test_matches_saved_tensors(adapters, cases):
    """The weight has shape (d_out, d_in), and the input may have any leading axes."""
    cases.check(adapters.run_linear)


@task("linear")
def test_large_inputs(adapters, cases):
    """The output is right for features around 1000."""
    cases.check(adapters.run_linear)


@task("linear")
def test_linear_memory(adapters, draw):
    """The answer is the same for non-contiguous inputs and in a second call; no input changes."""
    arguments = {
        "d_in": 6,
        "d_out": 4,
        "weights": draw.normal(4, 6),
        "in_features": draw.normal(3, 5, 6),
    }
    check_memory(adapters.run_linear, arguments, "in_features")


@ours
@task("linear")
def test_linear_gradient(adapters, draw):
    """The gradient of the input is the gradient of the output times W."""
    W = draw.normal(4, 6)
    arguments = {"d_in": 6, "d_out": 4, "weights": W, "in_features": draw.normal(3, 5, 6)}
    check_gradients(
        adapters.run_linear,
        arguments,
        lambda in_features: F.linear(in_features, W.double()),
        "in_features",
    )


@ours
@task("linear")
def test_linear_module(adapters, draw):
    """The only parameter is `weight` of shape (d_out, d_in): there is no bias."""
    x, cotangent = draw.normal(5, 7), draw.normal(5, 4)
    seen = adapters.probe(
        "module", symbol=LINEAR, arguments={"d_in": 7, "d_out": 4}, inputs=[x], cotangent=cotangent
    )
    check_parameters(seen["parameters"], {"weight": (4, 7)})
    check_close(
        seen["output"],
        F.linear(x, value_of(seen, "weight")),
        "the output of `forward` is not x Wᵀ with W = `weight`",
    )
    check_close(seen["gradients"]["weight"], cotangent.T @ x, "the gradient of `weight` is wrong")


@ours
@task("linear")
def test_linear_starts_random(adapters):
    """`weight` starts as a normal of variance 2 / (d_in + d_out), truncated at 3 std."""
    arguments = {"d_in": 400, "d_out": 200}
    first, second = (
        value_of(adapters.probe("module", symbol=LINEAR, arguments=arguments, seed=seed), "weight")
        for seed in (1, 2)
    )
    check_truncated_normal(first, math.sqrt(2 / 600))
    check(not torch.equal(first, second), "two layers start with the same weight")


@ours
@task("linear")
def test_linear_device_and_dtype(adapters):
    """`weight` has the requested `device` and `dtype`."""
    arguments = {"d_in": 7, "d_out": 4}
    seen = adapters.probe(
        "module", symbol=LINEAR, arguments=arguments, device="meta", dtype="bfloat16"
    )
    check_placed(seen["parameters"], device="meta", dtype="bfloat16")
