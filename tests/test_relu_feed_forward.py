"""The ReLU feed-forward layer: W2 ReLU(W1 x + b1) + b2."""

import torch
import torch.nn.functional as F

from tests.harness import ours, task
from tests.harness.compare import check
from tests.harness.properties import (
    check_dtype_kept,
    check_gradients,
    check_gradients_reach,
    check_memory,
    check_parameters,
    check_placed,
    check_truncated_normal,
    value_of,
)

RELU_FEED_FORWARD = "cs336_basics.relu_feed_forward:ReLUFeedForward"


def relu_arguments(draw, d_model=6, d_ff=10):
    """Return arguments of `run_relu_feed_forward`, including weights and biases."""
    return {
        "d_model": d_model,
        "d_ff": d_ff,
        "w1_weight": draw.normal(d_ff, d_model, scale=0.4),
        "w1_bias": draw.normal(d_ff),
        "w2_weight": draw.normal(d_model, d_ff, scale=0.3),
        "w2_bias": draw.normal(d_model),
        "in_features": draw.normal(3, 4, d_model),
    }


@ours
@task("relu_feed_forward")
def test_relu_feed_forward_matches_saved_tensors(adapters, cases):
    """The output is W2 ReLU(W1 x + b1) + b2."""
    cases.check(adapters.run_relu_feed_forward)


@ours
@task("relu_feed_forward")
def test_relu_feed_forward_memory(adapters, draw):
    """The answer is the same for non-contiguous inputs and in a second call; no input changes."""
    arguments = relu_arguments(draw)
    check_memory(adapters.run_relu_feed_forward, arguments, "in_features")


@ours
@task("relu_feed_forward")
def test_relu_feed_forward_gradient(adapters, draw):
    """The gradient passes only through hidden features that are positive."""
    arguments = relu_arguments(draw)
    names = ("w1_weight", "w1_bias", "w2_weight", "w2_bias")
    w1, b1, w2, b2 = (arguments[name].double() for name in names)

    def reference(in_features):
        return F.linear(F.relu(F.linear(in_features, w1, b1)), w2, b2)

    check_gradients(adapters.run_relu_feed_forward, arguments, reference, "in_features")


@ours
@task("relu_feed_forward")
def test_relu_feed_forward_module(adapters, draw):
    """The module has two weights and two biases, and all four get gradients."""
    seen = adapters.probe(
        "module",
        symbol=RELU_FEED_FORWARD,
        arguments={"d_model": 6, "d_ff": 10},
        inputs=[draw.normal(30, 6)],
        cotangent=draw.normal(30, 6),
    )
    shapes = {"w1.weight": (10, 6), "b1": (10,), "w2.weight": (6, 10), "b2": (6,)}
    check_parameters(seen["parameters"], shapes)
    check_gradients_reach(seen["gradients"])


@ours
@task("relu_feed_forward")
def test_relu_feed_forward_start(adapters):
    """The weights are initialised like those of `Linear`, and the biases with zeros."""
    arguments = {"d_model": 120, "d_ff": 200}
    seen = adapters.probe("module", symbol=RELU_FEED_FORWARD, arguments=arguments, seed=4)
    for name in ("w1", "w2"):
        check_truncated_normal(value_of(seen, f"{name}.weight"), (2 / 320) ** 0.5)
    for name in ("b1", "b2"):
        check(not value_of(seen, name).any(), f"`{name}` does not start at zeros")


@ours
@task("relu_feed_forward")
def test_relu_feed_forward_device_and_dtype(adapters, draw):
    """`device` and `dtype` reach all parameters; half-precision inputs keep their dtype."""
    seen = adapters.probe(
        "module",
        symbol=RELU_FEED_FORWARD,
        arguments={"d_model": 6, "d_ff": 10},
        device="meta",
        dtype="bfloat16",
    )
    check_placed(seen["parameters"], device="meta", dtype="bfloat16")
    arguments = relu_arguments(draw)
    tensors = [name for name, value in arguments.items() if isinstance(value, torch.Tensor)]
    check_dtype_kept(adapters.run_relu_feed_forward, arguments, *tensors)
