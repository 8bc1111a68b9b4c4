"""RoPE in the half-split layout: features j and j + head_dim/2 are rotated as a pair."""

import torch

from tests.harness import ours, task
from tests.harness.compare import check, check_close
from tests.harness.properties import check_memory, check_no_strangers, check_placed
from tests.harness.rotations import rotated_halves

HALF_SPLIT = "cs336_basics.rope_half_split:HalfSplitRotaryEmbedding"


def half_split_arguments(q, k, start=0):
    """Return arguments of `run_rope_half_split`."""
    return {
        "head_dim": q.shape[-1],
        "theta": 10000.0,
        "in_query": q,
        "in_key": k,
        "start_position": start,
    }


@ours
@task("rope_half_split")
def test_half_split_matches_saved_tensors(adapters, cases):
    """Features j and j + head_dim/2 are rotated as a pair, in queries and in keys."""
    cases.check(adapters.probing("part"))


@ours
@task("rope_half_split")
def test_fewer_key_heads(adapters, cases):
    """There may be fewer key heads than query heads."""
    cases.check(adapters.probing("part"))


@ours
@task("rope_half_split")
def test_any_starting_position(adapters, cases):
    """The first token has the position `start_position`."""
    cases.check(adapters.probing("part"))


@ours
@task("rope_half_split")
def test_half_split_theta(adapters, cases):
    """The given theta is used, not always 10000."""
    cases.check(adapters.probing("part"))


@ours
@task("rope_half_split")
def test_half_split_far_out(adapters, cases):
    """Angles at large positions are computed precisely, not in half precision."""
    cases.check(adapters.probing("part"))


@ours
@task("rope_half_split")
def test_half_split_scores_depend_on_distance(adapters, draw):
    """The score of a query at position m and a key at n depends only on m − n."""
    q, k = draw.normal(1, 1, 1, 8).expand(1, 1, 2, 8), draw.normal(1, 1, 1, 8).expand(1, 1, 4, 8)
    query = adapters.run_rope_half_split(**half_split_arguments(q.clone(), q.clone()))[0]
    key = adapters.run_rope_half_split(**half_split_arguments(k.clone(), k.clone()))[1]
    why = "the outputs do not have the shapes of the inputs"
    check(query.shape == q.shape and key.shape == k.shape, why)
    scores = (query[0, 0] @ key[0, 0].T).double()
    why = "the scores of positions (0, 2) and (1, 3) differ, though both distances are 2"
    check_close(scores[1, 3].float(), scores[0, 2], why, dtype=torch.float32)


@ours
@task("rope_half_split")
def test_tables_grow(adapters, draw):
    """The answer does not depend on the length and start of the sequence in an earlier call."""
    given = {"theta": 10000.0, "head_dim": 6}
    lengths_and_starts = (
        ((3, 9), (0, 0)),
        ((9, 3), (0, 0)),
        ((4, 4), (0, 4)),
        ((2, 3), (30, 1)),
        ((1, 1), (0, 0)),
        ((1, 4), (0, 0)),
    )
    for lengths, starts in lengths_and_starts:
        first, second = (draw.normal(2, 3, n, 6) for n in lengths)
        seen = adapters.probe(
            "module",
            symbol=HALF_SPLIT,
            arguments=given,
            warm_up=[first, first, starts[0]],
            inputs=[second, second, starts[1]],
        )
        expected = rotated_halves(second, torch.arange(lengths[1]) + starts[1])
        calls = (
            f"{n} tokens that start at {start}" for n, start in zip(lengths, starts, strict=True)
        )
        why = "the answer of the second of two calls is wrong ({}, then {})".format(*calls)
        check_close(seen["output"][0], expected, why, dtype=torch.float32)
    x = draw.normal(1, 1, 2, 6)
    seen = adapters.probe("module", symbol=HALF_SPLIT, arguments=given, inputs=[x, x])
    why = "without `start_position`, the first token does not have position 0"
    expected = rotated_halves(x, torch.arange(2))
    check_close(seen["output"][1], expected, why, dtype=torch.float32)


@ours
@task("rope_half_split")
def test_half_split_memory(adapters, draw):
    """The answer is the same for non-contiguous inputs and in a second call; no input changes."""
    arguments = half_split_arguments(draw.normal(2, 3, 4, 6), draw.normal(2, 3, 4, 6), 2)
    check_memory(adapters.run_rope_half_split, arguments, "in_query", "in_key")


@ours
@task("rope_half_split")
def test_half_split_gradient(adapters, draw):
    """The gradient of the input is the gradient of the output, rotated back."""
    x, cotangent = draw.normal(1, 2, 3, 6), draw.normal(1, 2, 3, 6)
    arguments = half_split_arguments(x, x, 5)
    for index, wrt in enumerate(("in_query", "in_key")):
        found = adapters.probe(
            "part_gradient",
            adapter="run_rope_half_split",
            index=index,
            wrt=wrt,
            cotangent=cotangent,
            **arguments,
        )
        check(found is not None, f"no gradient reaches `{wrt}`: is something detached on the way?")
        again = rotated_halves(found, torch.arange(3) + 5)
        why = f"the gradient of `{wrt}`, rotated forward, is not the gradient of the output"
        check_close(again.float(), cotangent.double(), why, dtype=torch.float32)


@ours
@task("rope_half_split")
def test_half_split_dtypes(adapters, draw):
    """The output has the dtype of the input, and the angles are precise in every dtype."""
    x, positions = draw.normal(1, 2, 3, 8), torch.arange(3) + 1500
    for dtype, allowed in ((torch.bfloat16, 0.03), (torch.float16, 0.01), (torch.float64, 1e-9)):
        arguments = half_split_arguments(x.to(dtype), x.to(dtype), 1500)
        expected = rotated_halves(x.to(dtype), positions)
        for output in adapters.run_rope_half_split(**arguments):
            check(output.dtype == dtype, f"inputs of {dtype} give an output of {output.dtype}")
            worst = ((output - expected).abs().max() / x.abs().max()).item()
            why = f"inputs of {dtype} have an error of {{:.2g}}, and {allowed:g} is allowed"
            check(worst < allowed, why, worst)


@ours
@task("rope_half_split")
def test_nothing_in_half_split_is_learned_or_saved(adapters):
    """RoPE has no parameters; `inv_freq` and tables are buffers outside the state dict."""
    arguments = {"theta": 10000.0, "head_dim": 8}
    seen = adapters.probe("module", symbol=HALF_SPLIT, arguments=arguments)
    check(not seen["parameters"], f"RoPE has parameters, expected none: {list(seen['parameters'])}")
    check(not seen["state"], f"the state dict should be empty, and contains {seen['state']}")
    check("inv_freq" in seen["buffers"], "`inv_freq` is not a buffer of the module")
    shape = tuple(seen["buffers"]["inv_freq"]["shape"])
    check(
        shape == (4,), f"`inv_freq` has shape {shape}, expected (4,), one frequency for each pair"
    )


@ours
@task("rope_half_split")
def test_half_split_on_a_device(adapters, draw):
    """Buffers and grown tables are on `device`, and never in half precision."""
    arguments = {"theta": 10000.0, "head_dim": 8}
    seen = adapters.probe(
        "module", symbol=HALF_SPLIT, arguments=arguments, device="meta", dtype="bfloat16"
    )
    check_placed(seen["buffers"], device="meta")
    low = [name for name, b in seen["buffers"].items() if b["dtype"] in ("bfloat16", "float16")]
    check(not low, f"buffers are in half precision, expected float32: {', '.join(low)}")
    x = draw.normal(1, 2, 5, 8)
    seen = adapters.probe(
        "module",
        symbol=HALF_SPLIT,
        arguments=arguments,
        device="cpu",
        inputs=[x, x, 3],
        watched=True,
    )
    check_no_strangers(seen["strangers"])


@ours
@task("rope_half_split")
def test_half_split_refusals(adapters, draw):
    """An odd head_dim is an error, and so is a negative start_position."""
    odd, even = draw.normal(1, 1, 2, 5), draw.normal(1, 1, 2, 4)
    adapter = adapters.run_rope_half_split
    adapter.error("head_dim is 5, which is odd", **half_split_arguments(odd, odd))
    adapter(**half_split_arguments(even, even))
    adapter.error("start_position is −1", **half_split_arguments(even, even, -1))
