"""Grouped-query attention: several query heads share one head of keys and values."""

import torch
import torch.nn.functional as F

from tests.harness import ours, task
from tests.harness.compare import check, check_close
from tests.harness.properties import (
    check_gradients,
    check_gradients_reach,
    check_memory,
    check_no_strangers,
    check_placed,
    check_truncated_normal,
    check_weights,
    value_of,
)

GQA = "cs336_basics.grouped_query_attention:GroupedQueryAttention"
SIZES = {"d_model": 16, "num_heads": 4, "num_kv_heads": 2}
SHAPES = {
    "q_proj.weight": (16, 16),
    "k_proj.weight": (8, 16),
    "v_proj.weight": (8, 16),
    "output_proj.weight": (16, 16),
}


def gqa_arguments(draw, **more):
    """Draw arguments of the adapter: four query heads, two key/value heads, batch 3, seq 6."""
    weights = {
        f"{name}_proj_weight": draw.normal(8 if name in "kv" else 16, 16, scale=0.3)
        for name in "qkvo"
    }
    usual = {"in_features": draw.normal(3, 6, 16), "max_seq_len": 32, "theta": 10000.0}
    return {**SIZES, **weights, **usual, "token_positions": None, **more}


@ours
@task("grouped_query_attention")
def test_gqa_matches_saved_tensors(adapters, cases):
    """Neighbouring query heads share a key/value head, for `num_kv_heads` from 1 to `num_heads`."""
    cases.check(adapters.run_grouped_query_attention)


@ours
@task("grouped_query_attention")
def test_gqa_positions(adapters, cases):
    """RoPE rotates queries and keys of every head by the given positions."""
    cases.check(adapters.run_grouped_query_attention)


@ours
@task("grouped_query_attention")
def test_gqa_leading_axes(adapters, cases):
    """The input may be a single sequence, have several leading axes, or hold a single token."""
    cases.check(adapters.run_grouped_query_attention)


@ours
@task("grouped_query_attention")
def test_gqa_is_causal(adapters, draw):
    """A token attends to itself and to earlier tokens, never to later ones."""
    arguments = gqa_arguments(draw)
    before = adapters.run_grouped_query_attention(**arguments)
    check(getattr(before, "shape", None) == (3, 6, 16), "the answer is not (batch, seq, d_model)")
    changed = arguments["in_features"].clone()
    changed[:, 3] = -changed[:, 3] + 1.0
    after = adapters.run_grouped_query_attention(**{**arguments, "in_features": changed})
    check_close(after[:, :3], before[:, :3], "a later token shows in an earlier answer")
    moved = (after - before)[:, 3].abs().amax(-1)
    check(bool((moved > 1e-3).all()), "a token does not show in its own answer")


@ours
@task("grouped_query_attention")
def test_gqa_memory(adapters, draw):
    """The memory layout does not change the answer, inputs do not change, and two calls agree."""
    arguments = gqa_arguments(draw)
    check_memory(adapters.run_grouped_query_attention, arguments, "in_features")


@ours
@task("grouped_query_attention")
def test_gqa_gradient(adapters, draw):
    """The gradient of the input is right; shared keys and values get the sum over their heads."""
    arguments = gqa_arguments(draw, token_positions=torch.zeros(6, dtype=torch.int64))
    W = {name: arguments[f"{name}_proj_weight"].double() for name in "qkvo"}

    def reference(in_features):
        Q, K, V = (
            F.linear(in_features, W[n]).unflatten(-1, (-1, 4)).transpose(1, 2) for n in "qkv"
        )
        K, V = (part[:, [0, 0, 1, 1]] for part in (K, V))
        heads = F.scaled_dot_product_attention(Q, K, V, is_causal=True)
        return F.linear(heads.transpose(1, 2).flatten(2), W["o"])

    check_gradients(adapters.run_grouped_query_attention, arguments, reference, "in_features")


@ours
@task("grouped_query_attention")
def test_gqa_module(adapters, draw):
    """`k_proj` and `v_proj` are narrower; weights are drawn as in `Linear`; gradients reach all."""
    seen = adapters.probe(
        "module",
        symbol=GQA,
        arguments=SIZES,
        inputs=[draw.normal(3, 5, 16)],
        cotangent=draw.normal(3, 5, 16),
    )
    check_weights(seen, SHAPES)
    check_gradients_reach(seen["gradients"])
    wide = {"d_model": 160, "num_heads": 4, "num_kv_heads": 2}
    seen = adapters.probe("module", symbol=GQA, arguments=wide, seed=4)
    check_truncated_normal(value_of(seen, "v_proj.weight"), (2 / 240) ** 0.5)


@ours
@task("grouped_query_attention")
def test_gqa_device_and_dtype(adapters, draw):
    """`device` and `dtype` reach every projection, and bfloat16 inputs give a bfloat16 output."""
    seen = adapters.probe("module", symbol=GQA, arguments=SIZES, device="meta", dtype="bfloat16")
    check_placed(seen["parameters"], device="meta", dtype="bfloat16")
    x = draw.normal(2, 5, 16).bfloat16()
    seen = adapters.probe(
        "module", symbol=GQA, arguments=SIZES, dtype="bfloat16", inputs=[x], watched=True
    )
    check(seen["output"].dtype == torch.bfloat16, f"bfloat16 in gives {seen['output'].dtype} out")
    check_no_strangers(seen["strangers"])


@ours
@task("grouped_query_attention")
def test_groups_must_be_whole(adapters, draw):
    """`num_kv_heads` must divide `num_heads`: four query heads and three others are an error."""
    arguments = gqa_arguments(draw)
    uneven = {f"{name}_proj_weight": draw.normal(12, 16) for name in "kv"}
    why = "num_heads is 4 and num_kv_heads is 3"
    adapters.run_grouped_query_attention.error(why, **{**arguments, **uneven, "num_kv_heads": 3})
