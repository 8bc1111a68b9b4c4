"""SiLU, and SwiGLU: W2 (SiLU(W1 x) ⊙ W3 x)."""

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

SWIGLU = "cs336_basics.feed_forward:SwiGLU"


def swiglu_arguments(draw, d_model=6, d_ff=10):
    """Return arguments of `run_swiglu`, including weights."""
    return {
        "d_model": d_model,
        "d_ff": d_ff,
        "w1_weight": draw.normal(d_ff, d_model, scale=0.4),
        "w2_weight": draw.normal(d_model, d_ff, scale=0.3),
        "w3_weight": draw.normal(d_ff, d_model, scale=0.4),
        "in_features": draw.normal(3, 4, d_model),
    }


@task("silu")
def test_silu_matches_saved_tensors(adapters, cases):
    """SiLU is x · sigmoid(x), which is negative, not zero, for negative x."""
    cases.check(adapters.run_silu)


@task("silu")
def test_silu_of_extreme_values(adapters, cases):
    """SiLU of ±100 and ±10000 is finite, although exp(100) overflows."""
    cases.check(adapters.run_silu)


@task("silu")
def test_silu_memory(adapters, draw):
    """The answer is the same for non-contiguous inputs and in a second call; no input changes."""
    arguments = {"in_features": draw.normal(3, 5)}
    check_memory(adapters.run_silu, arguments, "in_features")


@ours
@task("silu")
def test_silu_gradient(adapters, draw):
    """The gradient of x · sigmoid(x) is right, at large values too."""
    arguments = {"in_features": draw.normal(4, 5, scale=20.0)}
    check_gradients(
        adapters.run_silu, arguments, lambda in_features: F.silu(in_features), "in_features"
    )


@ours
@task("silu")
def test_silu_keeps_the_dtype(adapters, draw):
    """bfloat16 and float16 inputs give finite outputs of the same dtype."""
    check_dtype_kept(
        adapters.run_silu, {"in_features": draw.normal(4, 5, scale=30.0)}, "in_features"
    )


@task("swiglu")
def test_swiglu_matches_saved_tensors(adapters, cases):
    """The output is W2 (SiLU(W1 x) ⊙ W3 x), for any d_ff."""
    cases.check(adapters.run_swiglu)


@task("swiglu")
def test_swiglu_memory(adapters, draw):
    """The answer is the same for non-contiguous inputs and in a second call; no input changes."""
    arguments = swiglu_arguments(draw)
    check_memory(adapters.run_swiglu, arguments, "in_features")


@ours
@task("swiglu")
def test_swiglu_gradient(adapters, draw):
    """The gradient of the input passes through both factors of the product."""
    arguments = swiglu_arguments(draw)
    w1, w2, w3 = (arguments[f"w{i}_weight"].double() for i in (1, 2, 3))

    def reference(in_features):
        return F.linear(F.silu(F.linear(in_features, w1)) * F.linear(in_features, w3), w2)

    check_gradients(adapters.run_swiglu, arguments, reference, "in_features")


@ours
@task("swiglu")
def test_swiglu_module(adapters, draw):
    """`w1` and `w3` have shape (d_ff, d_model), `w2` has (d_model, d_ff); there is no bias."""
    seen = adapters.probe(
        "module",
        symbol=SWIGLU,
        arguments={"d_model": 6, "d_ff": 10},
        inputs=[draw.normal(4, 6)],
        cotangent=draw.normal(4, 6),
    )
    shapes = {"w1.weight": (10, 6), "w2.weight": (6, 10), "w3.weight": (10, 6)}
    check_parameters(seen["parameters"], shapes)
    check_gradients_reach(seen["gradients"])


@ours
@task("swiglu")
def test_swiglu_starts_random(adapters):
    """Each weight is initialised like `Linear`, with its own random numbers."""
    seen = adapters.probe("module", symbol=SWIGLU, arguments={"d_model": 120, "d_ff": 200}, seed=3)
    for name in ("w1", "w2", "w3"):
        check_truncated_normal(value_of(seen, f"{name}.weight"), (2 / 320) ** 0.5)
    equal = torch.equal(value_of(seen, "w1.weight"), value_of(seen, "w3.weight"))
    check(not equal, "`w1` and `w3` start with the same weights")


@ours
@task("swiglu")
def test_swiglu_device_and_dtype(adapters):
    """All three weights have the requested `device` and `dtype`."""
    arguments = {"d_model": 6, "d_ff": 10}
    seen = adapters.probe(
        "module", symbol=SWIGLU, arguments=arguments, device="meta", dtype="bfloat16"
    )
    check_placed(seen["parameters"], device="meta", dtype="bfloat16")
