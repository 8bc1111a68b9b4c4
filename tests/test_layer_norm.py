"""LayerNorm: every token is normalised over its features."""

import torch
import torch.nn.functional as F

from tests.harness import ours, task
from tests.harness.compare import check_close
from tests.harness.properties import (
    check_gradients,
    check_memory,
    check_parameters,
    check_placed,
    check_rows_alone,
    value_of,
)

LAYER_NORM = "cs336_basics.layer_norm:LayerNorm"


def layer_norm_arguments(draw, x, eps=1e-5):
    """Draw arguments of `run_layer_norm` whose gain and shift are not ones and zeros."""
    size = x.shape[-1]
    return {
        "d_model": size,
        "eps": eps,
        "weight": 1.5 + 0.3 * draw.normal(size),
        "bias": draw.normal(size),
        "in_features": x,
    }


@ours
@task("layer_norm")
def test_layer_norm_matches_saved_tensors(adapters, cases):
    """Mean and variance are taken over the features; then come the gain and the shift."""
    cases.check(adapters.run_layer_norm)


@ours
@task("layer_norm")
def test_layer_norm_eps(adapters, cases):
    """The given eps is added to the variance, inside the root."""
    cases.check(adapters.run_layer_norm)


@ours
@task("layer_norm")
def test_layer_norm_of_equal_features(adapters, cases):
    """If all features of a token are equal, the answer is the shift."""
    cases.check(adapters.run_layer_norm)


@ours
@task("layer_norm")
def test_layer_norm_far_from_zero(adapters, cases):
    """The variance is precise for features near 3000, where mean(x²) − mean(x)² is not."""
    cases.check(adapters.run_layer_norm)


@ours
@task("layer_norm")
def test_layer_norm_of_each_token(adapters, draw):
    """The answer for a token does not depend on the other tokens."""
    for x in (draw.normal(4, 6), draw.normal(3, 4, 6)):
        check_rows_alone(adapters.run_layer_norm, layer_norm_arguments(draw, x), "in_features")


@ours
@task("layer_norm")
def test_layer_norm_in_half_precision(adapters, draw):
    """Half-precision inputs are normalised in float32, and the output has their dtype."""
    for dtype in (torch.float16, torch.bfloat16):
        x = (500 * draw.normal(3, 8)).to(dtype)
        weight, bias = torch.ones(8), torch.zeros(8)
        arguments = {"d_model": 8, "eps": 1e-5, "weight": weight, "bias": bias, "in_features": x}
        expected = F.layer_norm(x.double(), (8,), eps=1e-5)
        why = f"wrong for {dtype} features of size 500"
        check_close(adapters.run_layer_norm(**arguments), expected, why, dtype=dtype)


@ours
@task("layer_norm")
def test_layer_norm_memory(adapters, draw):
    """The memory layout does not change the answer, inputs do not change, and two calls agree."""
    arguments = layer_norm_arguments(draw, draw.normal(3, 4, 6))
    check_memory(adapters.run_layer_norm, arguments, "in_features")


@ours
@task("layer_norm")
def test_layer_norm_gradient(adapters, draw):
    """The gradient flows through mean and variance, and is finite if all features are equal."""
    x = draw.normal(3, 6)
    x[1] = 2.0
    arguments = layer_norm_arguments(draw, x, eps=0.01)
    weight, bias = arguments["weight"].double(), arguments["bias"].double()
    check_gradients(
        adapters.run_layer_norm,
        arguments,
        lambda in_features: F.layer_norm(in_features, (6,), weight, bias, 0.01),
        "in_features",
    )


@ours
@task("layer_norm")
def test_layer_norm_module(adapters, draw):
    """`weight` starts at ones and `bias` at zeros; both are trained; eps is 1e-5 by default."""
    x, cotangent = draw.normal(4, 6, scale=3e-3), draw.normal(4, 6)
    seen = adapters.probe(
        "module", symbol=LAYER_NORM, arguments={"d_model": 6}, inputs=[x], cotangent=cotangent
    )
    check_parameters(seen["parameters"], {"weight": (6,), "bias": (6,)})
    ones, zeros = torch.ones(6), torch.zeros(6)
    check_close(value_of(seen, "weight"), ones, "`weight` does not start at ones", limit=0.0)
    check_close(value_of(seen, "bias"), zeros, "`bias` does not start at zeros", limit=0.0)
    normal = F.layer_norm(x.double(), (6,), eps=1e-5)
    why = "constructed without eps, the module does not answer as with eps = 1e-5"
    check_close(seen["output"], normal, why, dtype=torch.float32)
    for name, gradient in (("weight", cotangent * normal), ("bias", cotangent.double())):
        why = f"the gradient of `{name}` is wrong"
        check_close(seen["gradients"][name], gradient.sum(0), why, dtype=torch.float32)


@ours
@task("layer_norm")
def test_layer_norm_device_and_dtype(adapters):
    """`device` and `dtype` reach `weight` and `bias`."""
    seen = adapters.probe(
        "module", symbol=LAYER_NORM, arguments={"d_model": 6}, device="meta", dtype="bfloat16"
    )
    check_placed(seen["parameters"], device="meta", dtype="bfloat16")
