"""BatchNorm: every feature is normalised over the items of a batch."""

import torch
import torch.nn.functional as F

from tests.harness import ours, task
from tests.harness.compare import check, check_close, check_equal
from tests.harness.properties import (
    check_memory,
    check_parameters,
    check_placed,
    value_of,
)

BATCH_NORM = "cs336_basics.batch_norm:BatchNorm"


def batch_norm_arguments(draw, x, *, training=True):
    """Draw arguments of `run_batch_norm`."""
    size = x.shape[-1]
    return {
        "num_features": size,
        "eps": 1e-5,
        "momentum": 0.1,
        "weight": 1.5 + 0.3 * draw.normal(size),
        "bias": draw.normal(size),
        "running_mean": draw.normal(size),
        "running_var": 0.5 + draw.normal(size).square(),
        "in_features": x,
        "training": training,
    }


@ours
@task("batch_norm")
def test_batch_norm_in_training(adapters, cases):
    """Each feature is normalised over the batch, with the variance that divides by its size."""
    cases.check(adapters.probing("part"))


@ours
@task("batch_norm")
def test_running_mean(adapters, cases):
    """The running mean moves towards the mean of the batch, by the share `momentum`."""
    cases.check(adapters.probing("part"))


@ours
@task("batch_norm")
def test_running_variance(adapters, cases):
    """The running variance moves towards the unbiased one, which divides by batch − 1."""
    cases.check(adapters.probing("part"))


@ours
@task("batch_norm")
def test_batch_norm_in_evaluation(adapters, cases):
    """Evaluation uses the running statistics and does not change them."""
    cases.check(adapters.probing("part"))


@ours
@task("batch_norm")
def test_batch_norm_from_batch_to_batch(adapters, draw):
    """Training updates the running statistics; evaluation uses them and does not change them."""
    batches, last = [draw.normal(5, 4) + i for i in range(3)], draw.normal(6, 4)
    mean, variance = torch.zeros(4).double(), torch.ones(4).double()
    for batch in batches:
        F.batch_norm(batch.double(), mean, variance, training=True, momentum=0.25)
    seen = adapters.probe(
        "batch_norm_run",
        symbol=BATCH_NORM,
        arguments={"num_features": 4, "momentum": 0.25},
        batches=batches,
        evaluated=last,
    )
    for name, expected in (("running_mean", mean), ("running_var", variance)):
        check(name in seen["state"], f"`{name}` is not saved with the model")
        why = f"after three batches `{name}` is wrong"
        check_close(seen["state"][name], expected, why, dtype=torch.float32)
        why = f"evaluation changes `{name}`"
        check_close(seen["after"][name], seen["state"][name], why, limit=0.0)
    evaluated = F.batch_norm(last.double(), mean, variance)
    check_close(seen["evaluated"], evaluated, "evaluation is wrong", dtype=torch.float32)
    trained = F.batch_norm(last.double(), None, None, training=True)
    why = "back in training mode, the batch is not normalised by its own statistics"
    check_close(seen["trained"], trained, why, dtype=torch.float32)
    why = "the running statistics are still part of the autograd graph of every batch"
    check_equal(seen["with_gradient"], [], why)


@ours
@task("batch_norm")
def test_batch_norm_in_half_precision(adapters, draw):
    """Half-precision inputs are normalised in float32, and the output has their dtype."""
    for dtype in (torch.float16, torch.bfloat16):
        x = (500 * draw.normal(6, 4)).to(dtype)
        arguments = batch_norm_arguments(draw, x)
        arguments |= {"weight": torch.ones(4), "bias": torch.zeros(4)}
        output = adapters.probe("part", adapter="run_batch_norm", index=0, **arguments)
        expected = F.batch_norm(x.double(), None, None, training=True)
        check_close(output, expected, f"wrong for {dtype} features of size 500", dtype=dtype)


@ours
@task("batch_norm")
def test_batch_norm_memory(adapters, draw):
    """The memory layout does not change the answer, and the inputs do not change."""
    for training in (True, False):
        arguments = batch_norm_arguments(draw, draw.normal(5, 4), training=training)
        check_memory(adapters.run_batch_norm, arguments, "in_features")


@ours
@task("batch_norm")
def test_batch_norm_gradient(adapters, draw):
    """In training the gradient flows through the mean and the variance of the batch too."""
    for training in (True, False):
        arguments = batch_norm_arguments(draw, draw.normal(5, 4), training=training)
        wide = {k: v.double() for k, v in arguments.items() if isinstance(v, torch.Tensor)}
        x, cotangent = wide.pop("in_features").requires_grad_(), draw.normal(5, 4)
        expected = F.batch_norm(x, **wide, training=training)
        (gradient,) = torch.autograd.grad((expected * cotangent).sum(), [x])
        found = adapters.probe(
            "part_gradient",
            adapter="run_batch_norm",
            index=0,
            wrt="in_features",
            cotangent=cotangent,
            **arguments,
        )
        check(found is not None, "no gradient reaches the input")
        mode = "training" if training else "evaluation"
        why = f"the gradient of the input is wrong in {mode} mode"
        check_close(found, gradient, why, dtype=torch.float32)


@ours
@task("batch_norm")
def test_batch_norm_module(adapters, draw):
    """Initial values and defaults are the documented ones; running statistics are not trained."""
    x, cotangent = draw.normal(5, 4, scale=3e-3), draw.normal(5, 4)
    seen = adapters.probe(
        "module", symbol=BATCH_NORM, arguments={"num_features": 4}, inputs=[x], cotangent=cotangent
    )
    check_parameters(seen["parameters"], {"weight": (4,), "bias": (4,)})
    saved = sorted(seen["state"])
    expected = ["bias", "running_mean", "running_var", "weight"]
    check_equal(saved, expected, "other things are saved than gain, shift and running statistics")
    ones, zeros = torch.ones(4), torch.zeros(4)
    check_close(value_of(seen, "weight"), ones, "`weight` does not start at ones", limit=0.0)
    check_close(value_of(seen, "bias"), zeros, "`bias` does not start at zeros", limit=0.0)
    normal = F.batch_norm(x.double(), None, None, training=True)
    why = "constructed without eps, the module does not answer as with eps = 1e-5"
    check_close(seen["output"], normal, why, dtype=torch.float32)
    for name, gradient in (("weight", cotangent * normal), ("bias", cotangent.double())):
        why = f"the gradient of `{name}` is wrong"
        check_close(seen["gradients"][name], gradient.sum(0), why, dtype=torch.float32)
    mean, variance = torch.zeros(4).double(), torch.ones(4).double()
    F.batch_norm(x.double(), mean, variance, training=True)
    run = adapters.probe(
        "batch_norm_run",
        symbol=BATCH_NORM,
        arguments={"num_features": 4},
        batches=[x],
        evaluated=x,
    )
    for name, right in (("running_mean", mean), ("running_var", variance)):
        why = f"`{name}` does not start at {0 if name == 'running_mean' else 1}, or momentum at 0.1"
        check_close(run["state"][name], right, why, dtype=torch.float32)


@ours
@task("batch_norm")
def test_batch_norm_device_and_dtype(adapters):
    """`device` and `dtype` are used; running statistics are never in half precision."""
    arguments = {"num_features": 4}
    seen = adapters.probe(
        "module", symbol=BATCH_NORM, arguments=arguments, device="meta", dtype="bfloat16"
    )
    check_placed(seen["parameters"], device="meta", dtype="bfloat16")
    check_placed(seen["buffers"], device="meta")
    low = [name for name, b in seen["buffers"].items() if b["dtype"] in ("bfloat16", "float16")]
    check(not low, f"a small step is lost in half precision: {', '.join(low)}")


@ours
@task("batch_norm")
def test_a_batch_of_one_is_refused(adapters, draw):
    """Training on a batch of one item is an error, since one item has no variance."""
    arguments = batch_norm_arguments(draw, draw.normal(1, 4))
    adapters.run_batch_norm.error("a batch of one has no variance", **arguments)
