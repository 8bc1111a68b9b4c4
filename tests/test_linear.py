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
    """The answer is x Wᵀ, with a weight of shape (d_out, d_in) and any leading axes of x."""
    cases.check(adapters.run_linear)


@task("linear")
def test_large_inputs(adapters, cases):
    """The answer is right for inputs of about 1000, where a small wrong factor shows."""
    cases.check(adapters.run_linear)


@task("linear")
def test_linear_memory(adapters, draw):
    """The memory layout does not change the answer, inputs do not change, and two calls agree."""
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
    """The gradient of the input is right: the cotangent times W."""
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
    """The module has one trained parameter, `weight`, of shape (d_out, d_in), and no bias."""
    x, cotangent = draw.normal(5, 7), draw.normal(5, 4)
    seen = adapters.probe(
        "module", symbol=LINEAR, arguments={"d_in": 7, "d_out": 4}, inputs=[x], cotangent=cotangent
    )
    check_parameters(seen["parameters"], {"weight": (4, 7)})
    check_close(
        seen["output"], F.linear(x, value_of(seen, "weight")), "forward does not use `weight`"
    )
    check_close(seen["gradients"]["weight"], cotangent.T @ x, "the gradient of `weight` is wrong")


@ours
@task("linear")
def test_linear_starts_random(adapters):
    """The weight starts normal with variance 2 / (d_in + d_out), truncated at three std."""
    arguments = {"d_in": 400, "d_out": 200}
    first, second = (
        value_of(adapters.probe("module", symbol=LINEAR, arguments=arguments, seed=seed), "weight")
        for seed in (1, 2)
    )
    check_truncated_normal(first, math.sqrt(2 / 600))
    check(not torch.equal(first, second), "every layer starts with the same weight")


@ours
@task("linear")
def test_linear_device_and_dtype(adapters):
    """`device` and `dtype` reach the weight."""
    arguments = {"d_in": 7, "d_out": 4}
    seen = adapters.probe(
        "module", symbol=LINEAR, arguments=arguments, device="meta", dtype="bfloat16"
    )
    check_placed(seen["parameters"], device="meta", dtype="bfloat16")
