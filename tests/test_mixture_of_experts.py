"""Mixture of experts: the choice of experts, the mixture, and the load-balancing loss."""

import torch
import torch.nn.functional as F

from tests.harness import ours, task
from tests.harness.compare import check, check_close
from tests.harness.properties import (
    check_memory,
    check_no_strangers,
    check_placed,
    check_truncated_normal,
    check_weights,
    value_of,
)

MOE = "cs336_basics.mixture_of_experts:MixtureOfExperts"
SIZES = {"d_model": 8, "d_ff": 6, "num_experts": 4, "top_k": 2}
SHAPES = {"router.weight": (4, 8)}
for i in range(4):
    SHAPES |= {f"experts.{i}.w1.weight": (6, 8), f"experts.{i}.w2.weight": (8, 6)}
    SHAPES |= {f"experts.{i}.w3.weight": (6, 8)}


def moe_arguments(draw, **more):
    """Draw arguments of the adapter: two of four experts, batch 3, seq 5."""
    weights = {name: 0.5 * draw.normal(*shape) for name, shape in SHAPES.items()}
    return {**SIZES, "weights": weights, "in_features": draw.normal(3, 5, 8), **more}


def part(adapters, index, arguments):
    """Return the output (index 0) or the loss (index 1) of the adapter."""
    return adapters.probe("part", adapter="run_mixture_of_experts", index=index, **arguments)


@ours
@task("mixture_of_experts")
def test_mixture_matches_saved_tensors(adapters, cases):
    """A token goes through its likeliest experts; their probabilities are scaled to sum to 1."""
    cases.check(adapters.probing("part"))


@ours
@task("mixture_of_experts")
def test_loss_matches_saved_numbers(adapters, cases):
    """The loss is N · Σ f P: f is an expert's share of all choices, P its mean probability."""
    cases.check(adapters.probing("part"))


@ours
@task("mixture_of_experts")
def test_equal_probabilities_cost_one(adapters, draw):
    """If all experts have equal probabilities, the loss is exactly 1, whichever are chosen."""
    for num_experts, top_k in ((4, 2), (3, 1), (4, 4)):
        arguments = moe_arguments(draw, num_experts=num_experts, top_k=top_k)
        weights = arguments["weights"]
        weights["router.weight"] = torch.zeros(num_experts, 8)
        for name in [name for i in range(num_experts, 4) for name in weights if f".{i}." in name]:
            del weights[name]
        loss = part(adapters, 1, arguments)
        why = f"with equal probabilities, {top_k} of {num_experts} experts don't cost 1"
        check_close(loss, torch.tensor(1.0), why)


@ours
@task("mixture_of_experts")
def test_one_expert_for_all_costs_more(adapters, draw):
    """If every token chooses the same two of four experts, the loss is nearly 4 / 2."""
    arguments = moe_arguments(draw)
    arguments["in_features"] = arguments["in_features"].abs() + 0.5
    rows = torch.tensor([60.0, 60.0, -60.0, -60.0])
    arguments["weights"]["router.weight"] = rows[:, None].expand(4, 8).clone()
    loss = part(adapters, 1, arguments)
    check_close(loss, torch.tensor(2.0), "all tokens choose two of four experts; that costs 2")


@ours
@task("mixture_of_experts")
def test_tokens_are_routed_alone(adapters, draw):
    """The output for a token does not depend on the other tokens."""
    arguments = moe_arguments(draw)
    together = part(adapters, 0, arguments)
    check(getattr(together, "shape", None) == (3, 5, 8), "the output is not (batch, seq, d_model)")
    for i, j in ((0, 0), (1, 3), (2, 4)):
        alone = part(adapters, 0, {**arguments, "in_features": arguments["in_features"][i, j]})
        check_close(alone, together[i, j], "a token gets another output alone than among others")


@ours
@task("mixture_of_experts")
def test_mixture_memory(adapters, draw):
    """The memory layout does not change the answer, inputs do not change, and two calls agree."""
    arguments = moe_arguments(draw)
    check_memory(adapters.run_mixture_of_experts, arguments, "in_features")


def reference(weights, x, top_k):
    """Compute the mixture and its loss; all experts run, and those not chosen get weight 0."""
    probabilities = F.linear(x, weights["router.weight"]).softmax(-1)
    best, chosen = probabilities.topk(top_k, dim=-1)
    gates = torch.zeros_like(probabilities).scatter(-1, chosen, best / best.sum(-1, keepdim=True))
    outputs = []
    for i in range(4):
        w1, w2, w3 = (weights[f"experts.{i}.w{n}.weight"] for n in (1, 2, 3))
        outputs.append(F.linear(F.silu(F.linear(x, w1)) * F.linear(x, w3), w2))
    counts = torch.zeros_like(probabilities).scatter(-1, chosen, 1.0).mean((0, 1)) / top_k
    output = (gates.unsqueeze(-1) * torch.stack(outputs, dim=-2)).sum(-2)
    return output, 4 * (counts * probabilities.mean((0, 1))).sum()


def check_learning(adapters, draw, index, *names):
    """Check the gradients of the parameters `names`, from the output (index 0) or the loss (1)."""
    arguments = moe_arguments(draw)
    x, weights = arguments["in_features"], arguments["weights"]
    leaves = {name: weight.double().requires_grad_() for name, weight in weights.items()}
    expected = reference(leaves, x.double(), 2)[index]
    cotangent = draw.normal(*expected.shape) if expected.ndim else torch.tensor(1.0)
    gradients = torch.autograd.grad((expected * cotangent).sum(), [leaves[n] for n in names])
    seen = adapters.probe(
        "module",
        symbol=MOE,
        arguments=SIZES,
        weights=weights,
        inputs=[x],
        cotangent=cotangent,
        part=index,
    )
    what = ("the output", "the loss")[index]
    for name, gradient in zip(names, gradients, strict=True):
        found = seen["gradients"][name]
        check(found is not None, f"no gradient of {what} reaches `{name}`")
        why = f"the gradient of {what} that reaches `{name}` is wrong"
        check_close(found, gradient, why, dtype=torch.float32)


@ours
@task("mixture_of_experts")
def test_router_learns_from_the_output(adapters, draw):
    """Gradients of the output reach the experts, and the router through the gates."""
    check_learning(adapters, draw, 0, "router.weight", "experts.0.w1.weight", "experts.3.w2.weight")


@ours
@task("mixture_of_experts")
def test_router_learns_from_the_loss(adapters, draw):
    """Gradients of the loss reach the router through the mean probabilities."""
    check_learning(adapters, draw, 1, "router.weight")


@ours
@task("mixture_of_experts")
def test_mixture_module(adapters):
    """The module saves only a router and experts, whose weights are drawn as in `Linear`."""
    seen = adapters.probe("module", symbol=MOE, arguments=SIZES)
    check_weights(seen, SHAPES)
    one, other = (value_of(seen, f"experts.{i}.w1.weight") for i in (0, 1))
    check(not torch.equal(one, other), "all experts start with the same weights")
    wide = {"d_model": 96, "d_ff": 64, "num_experts": 30, "top_k": 2}
    seen = adapters.probe("module", symbol=MOE, arguments=wide, seed=7)
    check_truncated_normal(value_of(seen, "router.weight"), (2 / 126) ** 0.5)
    check_truncated_normal(value_of(seen, "experts.5.w1.weight"), (2 / 160) ** 0.5)


@ours
@task("mixture_of_experts")
def test_mixture_device_and_dtype(adapters, draw):
    """`device` and `dtype` reach all weights; the loss of bfloat16 inputs is float32."""
    seen = adapters.probe("module", symbol=MOE, arguments=SIZES, device="meta", dtype="bfloat16")
    check_placed(seen["parameters"], device="meta", dtype="bfloat16")
    x = draw.normal(2, 5, 8).bfloat16()
    seen = adapters.probe(
        "module", symbol=MOE, arguments=SIZES, dtype="bfloat16", inputs=[x], watched=True
    )
    output, loss = seen["output"]
    check(output.dtype == torch.bfloat16, f"bfloat16 in gives {output.dtype} out")
    check(loss.dtype == torch.float32, f"bfloat16 in gives a loss of {loss.dtype}, not float32")
    check_no_strangers(seen["strangers"])


@ours
@task("mixture_of_experts")
def test_top_k_that_makes_no_sense(adapters, draw):
    """`top_k` must be at least 1 and at most `num_experts`."""
    arguments = moe_arguments(draw)
    for top_k in (0, 5):
        why = f"top_k is {top_k} of 4 experts"
        adapters.run_mixture_of_experts.error(why, **{**arguments, "top_k": top_k})
