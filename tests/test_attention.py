"""Attention: softmax(Q Kᵀ / sqrt(d_k) + M) V, alone and in several heads."""

import torch
import torch.nn.functional as F

from tests.harness import ours, task
from tests.harness.compare import check, check_close
from tests.harness.properties import (
    check_dtype_kept,
    check_gradients,
    check_gradients_reach,
    check_memory,
    check_no_strangers,
    check_parameters,
    check_placed,
    check_rows_alone,
    check_truncated_normal,
    value_of,
)

MULTIHEAD = "cs336_basics.attention:MultiHeadSelfAttention"
SIZES = {"d_model": 8, "num_heads": 2}


def attention_arguments(draw, mask=None):
    """Draw arguments of the attention adapter: batch 3, 5 queries, 7 keys, d_k 8, d_v 6."""
    return {
        "Q": draw.normal(3, 5, 8),
        "K": draw.normal(3, 7, 8),
        "V": draw.normal(3, 7, 6),
        "mask": mask,
    }


def random_mask(draw):
    """Draw a mask for `attention_arguments` in which every query may attend to some key."""
    return (draw.integers(2, 3, 5, 7) == 1) | torch.eye(5, 7, dtype=torch.bool)


def multihead_arguments(draw, d_model=8, **more):
    """Draw arguments of the multi-head adapters: two heads, batch 3, seq 6."""
    weights = {f"{name}_proj_weight": draw.normal(d_model, d_model, scale=0.35) for name in "qkvo"}
    return {
        "d_model": d_model,
        "num_heads": 2,
        **weights,
        "in_features": draw.normal(3, 6, d_model),
        **more,
    }


def rope_arguments(draw, positions=None):
    """Draw arguments of the multi-head adapter with RoPE: two heads, batch 3, seq 6."""
    return multihead_arguments(draw, max_seq_len=32, theta=10000.0, token_positions=positions)


@task("attention")
def test_attention_without_mask(adapters, cases):
    """Scores are divided by sqrt(d_k), and the softmax runs over the keys."""
    cases.check(adapters.run_scaled_dot_product_attention)


@task("attention")
def test_attention_with_mask(adapters, cases):
    """True in the mask means "may attend"; keys with False get weight 0 in the softmax."""
    cases.check(adapters.run_scaled_dot_product_attention)


@ours
@task("attention")
def test_one_mask_for_all(adapters, cases):
    """A mask without leading axes applies to every item of the batch."""
    cases.check(adapters.run_scaled_dot_product_attention)


@task("attention")
def test_masked_keys_stay_hidden(adapters, cases):
    """A masked key gets weight 0, even if the scores of all other keys are very low."""
    cases.check(adapters.run_scaled_dot_product_attention)


@task("attention")
def test_large_scores(adapters, cases):
    """Large scores cause no overflow."""
    cases.check(adapters.run_scaled_dot_product_attention)


@ours
@task("attention")
def test_query_that_sees_nothing(adapters, cases):
    """The answer to a query that may attend to no key is zeros, not NaN."""
    cases.check(adapters.run_scaled_dot_product_attention)


@task("attention")
def test_masked_values_do_not_matter(adapters, draw):
    """The value of a masked key does not change the output, not even if it is huge."""
    arguments = attention_arguments(draw, random_mask(draw))
    arguments["mask"][..., 6] = False
    V = arguments["V"].clone()
    V[:, 6] = 1e30
    quiet = adapters.run_scaled_dot_product_attention(**arguments)
    loud = adapters.run_scaled_dot_product_attention(**{**arguments, "V": V})
    check_close(loud, quiet, "the value of a masked key shows in the output")


@task("attention")
def test_attention_of_each_item(adapters, draw):
    """The answer for one item of a batch does not depend on the other items."""
    arguments = attention_arguments(draw, random_mask(draw))
    check_rows_alone(adapters.run_scaled_dot_product_attention, arguments, "Q", "K", "V", "mask")


@task("attention")
def test_attention_memory(adapters, draw):
    """The memory layout does not change the answer, inputs do not change, and two calls agree."""
    arguments = attention_arguments(draw, random_mask(draw))
    check_memory(adapters.run_scaled_dot_product_attention, arguments, "Q", "K", "V")


@ours
@task("attention")
def test_attention_gradient(adapters, draw):
    """The gradients of queries, keys and values are right, with a mask too."""
    mask = random_mask(draw)

    def reference(Q, K, V):
        return F.scaled_dot_product_attention(Q, K, V, mask)

    arguments = attention_arguments(draw, mask)
    check_gradients(adapters.run_scaled_dot_product_attention, arguments, reference, "Q", "K", "V")


@ours
@task("attention")
def test_gradient_of_a_query_that_sees_nothing(adapters, draw):
    """The gradients of a query that may attend to no key are zeros, not NaN."""
    mask = random_mask(draw)
    mask[1] = False
    arguments = attention_arguments(draw, mask)
    names = ["Q", "K", "V"]
    found = adapters.run_scaled_dot_product_attention.answer(
        arguments, draw.normal(3, 5, 6), names
    ).gradients
    for name in names:
        check(found[name] is not None, f"no gradient reaches `{name}`")
        check_close(
            found[name][1],
            torch.zeros_like(arguments[name][1]),
            f"`{name}` of a blind row has a gradient",
        )
        check(bool(found[name].isfinite().all()), f"the gradient of `{name}` is not finite")


@ours
@task("attention")
def test_attention_keeps_the_dtype(adapters, draw):
    """Half-precision inputs give an output of the same dtype."""
    arguments = attention_arguments(draw, random_mask(draw))
    check_dtype_kept(adapters.run_scaled_dot_product_attention, arguments, "Q", "K", "V")


@task("multihead_attention")
def test_multihead_matches_saved_tensors(adapters, cases):
    """Each head attends causally with its own features; scores are divided by sqrt(d_head)."""
    cases.check(adapters.run_multihead_self_attention)


@task("multihead_attention")
def test_heads_are_joined_in_order(adapters, cases):
    """The outputs of the heads are concatenated in order, before the output projection."""
    cases.check(adapters.run_multihead_self_attention)


@task("multihead_attention")
def test_multihead_hides_the_future(adapters, cases):
    """A later token gets weight 0, even if the scores of all earlier tokens are very low."""
    cases.check(adapters.run_multihead_self_attention)


@task("multihead_attention")
def test_multihead_leading_axes(adapters, cases):
    """The input may be a single sequence, or have several leading axes."""
    cases.check(adapters.run_multihead_self_attention)


@task("multihead_attention")
def test_multihead_lengths(adapters, cases):
    """The causal mask fits sequences of any length, from one token to many."""
    cases.check(adapters.run_multihead_self_attention)


def check_causal(adapter, arguments):
    """Check that a change of token 3 changes its own answer, and no answer before it."""
    before = adapter(**arguments)
    check(getattr(before, "ndim", 0) == 3, "the answer is not (batch, seq, d_model)")
    changed = arguments["in_features"].clone()
    changed[:, 3] = -changed[:, 3] + 1.0
    after = adapter(**{**arguments, "in_features": changed})
    check_close(after[:, :3], before[:, :3], "a later token shows in an earlier answer")
    check(
        bool(((after - before)[:, 3].abs().amax(-1) > 1e-3).all()),
        "a token does not show in its own answer",
    )


@task("multihead_attention")
def test_multihead_is_causal(adapters, draw):
    """A token attends to itself and to earlier tokens, never to later ones."""
    check_causal(adapters.run_multihead_self_attention, multihead_arguments(draw))


@task("multihead_attention")
def test_multihead_memory(adapters, draw):
    """The memory layout does not change the answer, inputs do not change, and two calls agree."""
    arguments = multihead_arguments(draw)
    check_memory(adapters.run_multihead_self_attention, arguments, "in_features")


@ours
@task("multihead_attention")
def test_multihead_gradient(adapters, draw):
    """The gradient of the input is right: it flows through Q, K and V of all heads."""
    arguments = multihead_arguments(draw)
    W = {name: arguments[f"{name}_proj_weight"].double() for name in "qkvo"}

    def reference(in_features):
        Q, K, V = (F.linear(in_features, W[n]).unflatten(-1, (2, 4)).transpose(1, 2) for n in "qkv")
        heads = F.scaled_dot_product_attention(Q, K, V, is_causal=True)
        return F.linear(heads.transpose(1, 2).flatten(2), W["o"])

    check_gradients(adapters.run_multihead_self_attention, arguments, reference, "in_features")


@ours
@task("multihead_attention")
def test_multihead_module(adapters, draw):
    """The module has four square weights and no bias, and gradients reach all of them."""
    seen = adapters.probe(
        "module",
        symbol=MULTIHEAD,
        arguments={"d_model": 8, "num_heads": 2},
        inputs=[draw.normal(3, 5, 8)],
        cotangent=draw.normal(3, 5, 8),
    )
    names = ("q_proj", "k_proj", "v_proj", "output_proj")
    check_parameters(seen["parameters"], {f"{name}.weight": (8, 8) for name in names})
    check(
        seen["state"] == [f"{name}.weight" for name in names]
        or set(seen["state"]) == set(seen["parameters"]),
        f"the state dict holds more than the weights: {seen['state']}",
    )
    check_gradients_reach(seen["gradients"])


@ours
@task("multihead_attention")
def test_multihead_takes_any_length(adapters, draw):
    """One module may be called with sequences of different lengths, in any order."""
    long = draw.normal(3, 7, 8)
    short = long[:, :4]
    for first, second in ((long, short), (short, long)):
        fresh, used = (
            adapters.probe("module", symbol=MULTIHEAD, arguments=SIZES, inputs=[second], **before)
            for before in ({}, {"warm_up": [first]})
        )
        why = "after a call with another length, the answer is not that of a fresh module"
        check_close(used["output"], fresh["output"], why)


@task("multihead_attention")
def test_multihead_long_sequence(adapters, draw):
    """A sequence of 1025 tokens works: its length has no fixed limit."""
    arguments = {**multihead_arguments(draw, d_model=2), "in_features": draw.normal(1025, 2)}
    arguments["num_heads"] = 1
    start = {**arguments, "in_features": arguments["in_features"][:5]}
    first = adapters.run_multihead_self_attention(**start)
    why = "the shape is not that of the input"
    check(getattr(first, "shape", None) == (5, 2), why)
    check(bool(first.isfinite().all()), "the first tokens alone get NaN or infinity")
    whole = adapters.run_multihead_self_attention(**arguments)
    check(getattr(whole, "shape", None) == (1025, 2), why)
    why = "the first tokens of a long sequence get another answer than alone"
    check_close(whole[:5], first, why)


@ours
@task("multihead_attention")
def test_multihead_in_either_mode(adapters, draw):
    """The answer is the same in training mode and in evaluation mode."""
    x = draw.normal(3, 5, 8)
    training, evaluating = (
        adapters.probe("module", symbol=MULTIHEAD, arguments=SIZES, inputs=[x], training=mode)
        for mode in (True, False)
    )
    why = "the answer changes with `train()` and `eval()`"
    check_close(evaluating["output"], training["output"], why)


@ours
@task("multihead_attention")
def test_multihead_starts_random(adapters):
    """The initial weights are drawn as those of `Linear` from d_model to d_model."""
    seen = adapters.probe(
        "module", symbol=MULTIHEAD, arguments={"d_model": 160, "num_heads": 4}, seed=4
    )
    for name in ("q_proj", "k_proj", "v_proj", "output_proj"):
        check_truncated_normal(value_of(seen, f"{name}.weight"), (2 / 320) ** 0.5)


@ours
@task("multihead_attention")
def test_multihead_device_and_dtype(adapters, draw):
    """`device` and `dtype` reach every projection, and bfloat16 inputs give a bfloat16 output."""
    arguments = SIZES
    seen = adapters.probe(
        "module", symbol=MULTIHEAD, arguments=arguments, device="meta", dtype="bfloat16"
    )
    check_placed(seen["parameters"], device="meta", dtype="bfloat16")
    x = draw.normal(2, 5, 8).bfloat16()
    seen = adapters.probe(
        "module", symbol=MULTIHEAD, arguments=arguments, dtype="bfloat16", inputs=[x], watched=True
    )
    check(seen["output"].dtype == torch.bfloat16, f"bfloat16 in gives {seen['output'].dtype} out")
    check_no_strangers(seen["strangers"])


@ours
@task("multihead_attention")
def test_heads_must_divide_the_width(adapters, draw):
    """`num_heads` must divide `d_model`: ten features and three heads are an error."""
    arguments = {**multihead_arguments(draw, d_model=10), "num_heads": 3}
    adapters.run_multihead_self_attention.error("d_model is 10 and num_heads is 3", **arguments)


@task("multihead_attention_rope")
def test_multihead_rope_matches_saved_tensors(adapters, cases):
    """Queries and keys are rotated head by head; values are not."""
    cases.check(adapters.run_multihead_self_attention_with_rope)


@task("multihead_attention_rope")
def test_multihead_rope_positions(adapters, cases):
    """RoPE uses the given positions; the mask uses the order of the tokens in the sequence."""
    cases.check(adapters.run_multihead_self_attention_with_rope)


@task("multihead_attention_rope")
def test_multihead_rope_positions_of_each_row(adapters, cases):
    """Positions of shape (batch, seq) broadcast to heads of shape (batch, heads, seq, d_head)."""
    cases.check(adapters.run_multihead_self_attention_with_rope)


@task("multihead_attention_rope")
def test_multihead_rope_is_causal(adapters, draw):
    """A token attends to itself and to earlier tokens, never to later ones."""
    check_causal(
        adapters.run_multihead_self_attention_with_rope, rope_arguments(draw, torch.arange(6))
    )


@task("multihead_attention_rope")
def test_moving_all_positions_changes_nothing(adapters, draw):
    """Attention depends only on distances: adding one number to all positions changes nothing."""
    arguments = rope_arguments(draw)
    adapter = adapters.run_multihead_self_attention_with_rope
    start = adapter(**{**arguments, "token_positions": torch.arange(6)})
    moved = adapter(**{**arguments, "token_positions": torch.arange(6) + 20})
    check_close(moved, start, "moving every position by 20 changes the answer")


@ours
@task("multihead_attention_rope")
def test_multihead_rope_gradient(adapters, draw):
    """The gradient of the input is right: it flows through the rotation too."""
    arguments = rope_arguments(draw, torch.arange(6))
    W = {name: arguments[f"{name}_proj_weight"].double() for name in "qkvo"}
    angles = torch.arange(6)[:, None] * 10000.0 ** (-torch.arange(0, 4, 2).double() / 4)
    turn = torch.polar(torch.ones_like(angles), angles)

    def rotate(x):
        return torch.view_as_real(torch.view_as_complex(x.reshape(3, 2, 6, 2, 2)) * turn).flatten(
            -2
        )

    def reference(in_features):
        Q, K, V = (F.linear(in_features, W[n]).unflatten(-1, (2, 4)).transpose(1, 2) for n in "qkv")
        heads = F.scaled_dot_product_attention(rotate(Q), rotate(K), V, is_causal=True)
        return F.linear(heads.transpose(1, 2).flatten(2), W["o"])

    adapter = adapters.run_multihead_self_attention_with_rope
    check_gradients(adapter, arguments, reference, "in_features")


@ours
@task("multihead_attention_rope")
def test_multihead_rope_keeps_the_dtype(adapters, draw):
    """Half-precision weights and inputs give an output of the same dtype."""
    arguments = rope_arguments(draw, torch.arange(6))
    names = ("in_features", *(f"{name}_proj_weight" for name in "qkvo"))
    check_dtype_kept(adapters.run_multihead_self_attention_with_rope, arguments, *names)


@ours
@task("multihead_attention_rope")
def test_multihead_rope_refuses_positions_beyond(adapters, draw):
    """A position of max_seq_len or more is an error, as it is in RoPE."""
    arguments = rope_arguments(draw, torch.arange(6) + 27)
    why = "max_seq_len is 32 and a position is 32"
    adapters.run_multihead_self_attention_with_rope.error(why, **arguments)


@task("multihead_attention_rope")
def test_multihead_rope_memory(adapters, draw):
    """The memory layout does not change the answer, inputs do not change, and two calls agree."""
    arguments = rope_arguments(draw, torch.arange(6))
    check_memory(adapters.run_multihead_self_attention_with_rope, arguments, "in_features")
