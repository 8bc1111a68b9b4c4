"""RMSNorm: x / sqrt(mean(x²) + eps) · weight, over the features of each token."""

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

RMSNORM = "cs336_basics.rmsnorm:RMSNorm"


def arguments_for(draw, x, eps=1e-5):
    """Make arguments of `run_rmsnorm` with a gain that is not all ones."""
    return {
        "d_model": x.shape[-1],
        "eps": eps,
        "weights": 1.5 + 0.3 * draw.normal(x.shape[-1]),
        "in_features": x,
    }


@task("rmsnorm")
def test_matches_saved_tensors(adapters, cases):
    """The mean of squares is taken over the features; no mean is subtracted; the gain is used."""
    cases.check(adapters.run_rmsnorm)


@task("rmsnorm")
def test_tiny_features(adapters, cases):
    """eps sits inside the root: features of size 1e-3 show it."""
    cases.check(adapters.run_rmsnorm)


@task("rmsnorm")
def test_eps_is_an_argument(adapters, cases):
    """RMSNorm uses the eps that it is given."""
    cases.check(adapters.run_rmsnorm)


@task("rmsnorm")
def test_row_of_zeros(adapters, cases):
    """The answer for a token of zeros is zeros, not NaN."""
    cases.check(adapters.run_rmsnorm)


@task("rmsnorm")
def test_rows_of_unlike_size(adapters, cases):
    """Every token is divided by its own root mean square, from 1 to 1e8."""
    cases.check(adapters.run_rmsnorm)


@task("rmsnorm")
def test_tokens_are_normalised_alone(adapters, draw):
    """The answer for a token does not depend on the other tokens."""
    check_rows_alone(adapters.run_rmsnorm, arguments_for(draw, draw.normal(4, 6)), "in_features")
    check_rows_alone(adapters.run_rmsnorm, arguments_for(draw, draw.normal(3, 4, 6)), "in_features")


@task("rmsnorm")
def test_half_precision(adapters, draw):
    """Half-precision inputs are normalised in float32, and the output has their dtype."""
    for dtype in (torch.float16, torch.bfloat16):
        x = (300 + 100 * draw.normal(3, 8)).to(dtype)
        arguments = {"d_model": 8, "eps": 1e-5, "weights": torch.ones(8), "in_features": x}
        output = adapters.run_rmsnorm(**arguments)
        expected = F.rms_norm(x.double(), (8,), None, 1e-5)
        check_close(output, expected, f"wrong for {dtype} features of size 300", dtype=dtype)


@task("rmsnorm")
def test_rmsnorm_memory(adapters, draw):
    """The memory layout does not change the answer, inputs do not change, and two calls agree."""
    arguments = arguments_for(draw, draw.normal(3, 4, 6))
    check_memory(adapters.run_rmsnorm, arguments, "in_features")


@ours
@task("rmsnorm")
def test_rmsnorm_double_precision(adapters, draw):
    """A float64 input is normalised in float64."""
    arguments = arguments_for(draw, draw.normal(3, 6).double())
    arguments["weights"] = arguments["weights"].double()
    expected = F.rms_norm(arguments["in_features"], (6,), arguments["weights"], 1e-5)
    output = adapters.run_rmsnorm(**arguments)
    check_close(
        output,
        expected,
        "float64 in, and the answer is not right to the digits of float64",
        limit=1e-3,
    )


@ours
@task("rmsnorm")
def test_rmsnorm_gradient(adapters, draw):
    """The gradient flows through the mean of squares too, and is finite for a token of zeros."""
    x = draw.normal(3, 6)
    x[1] = 0.0
    arguments = arguments_for(draw, x)
    gain = arguments["weights"].double()
    check_gradients(
        adapters.run_rmsnorm,
        {**arguments, "eps": 0.01},
        lambda in_features: F.rms_norm(in_features, (6,), gain, 0.01),
        "in_features",
    )


@ours
@task("rmsnorm")
def test_rmsnorm_module(adapters, draw):
    """The one trained parameter, `weight`, starts at ones; eps is 1e-5 by default."""
    x, cotangent = draw.normal(4, 6, scale=3e-3), draw.normal(4, 6)
    seen = adapters.probe(
        "module", symbol=RMSNORM, arguments={"d_model": 6}, inputs=[x], cotangent=cotangent
    )
    check_parameters(seen["parameters"], {"weight": (6,)})
    ones = torch.ones(6)
    check_close(value_of(seen, "weight"), ones, "`weight` does not start at ones", limit=0.0)
    normal = F.rms_norm(x.double(), (6,), None, 1e-5)
    check_close(
        seen["output"],
        normal,
        "constructed without eps, the module does not answer as with eps = 1e-5",
        dtype=torch.float32,
    )
    gradient = (cotangent.double() * normal).sum(0)
    check_close(
        seen["gradients"]["weight"],
        gradient,
        "the gradient of `weight` is wrong",
        dtype=torch.float32,
    )


@ours
@task("rmsnorm")
def test_rmsnorm_device_and_dtype(adapters):
    """`device` and `dtype` reach `weight`."""
    seen = adapters.probe(
        "module", symbol=RMSNORM, arguments={"d_model": 6}, device="meta", dtype="bfloat16"
    )
    check_placed(seen["parameters"], device="meta", dtype="bfloat16")
