"""The Transformer block and the language model."""

import torch

from tests.harness import ours, task
from tests.harness.compare import check, check_close
from tests.harness.properties import (
    check_gradients_reach,
    check_memory,
    check_no_strangers,
    check_placed,
    check_rows_alone,
    check_truncated_normal,
    check_weights,
    value_of,
)

BLOCK = "cs336_basics.transformer:TransformerBlock"
LM = "cs336_basics.transformer:TransformerLM"
BLOCK_SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 12, "max_seq_len": 10, "theta": 10000.0}
LM_SIZES = {
    "vocab_size": 11,
    "context_length": 10,
    "d_model": 8,
    "num_layers": 2,
    "num_heads": 2,
    "d_ff": 12,
    "rope_theta": 10000.0,
}
BLOCK_SHAPES = {
    "attn.q_proj.weight": (8, 8),
    "attn.k_proj.weight": (8, 8),
    "attn.v_proj.weight": (8, 8),
    "attn.output_proj.weight": (8, 8),
    "ln1.weight": (8,),
    "ln2.weight": (8,),
    "ffn.w1.weight": (12, 8),
    "ffn.w2.weight": (8, 12),
    "ffn.w3.weight": (12, 8),
}
LM_SHAPES = {
    "token_embeddings.weight": (11, 8),
    **{f"layers.{i}.{name}": shape for i in range(2) for name, shape in BLOCK_SHAPES.items()},
    "ln_final.weight": (8,),
    "lm_head.weight": (11, 8),
}


def block_arguments(draw):
    """Draw arguments of `run_transformer_block`."""
    return {
        **BLOCK_SIZES,
        "weights": draw.weights(BLOCK_SHAPES),
        "in_features": draw.normal(3, 6, 8),
    }


def lm_arguments(draw):
    """Draw arguments of `run_transformer_lm`."""
    return {
        **LM_SIZES,
        "weights": draw.weights(LM_SHAPES),
        "in_indices": draw.integers(11, 2, 6),
    }


@task("transformer_block")
def test_block_matches_saved_tensors(adapters, cases):
    """The answer is y = x + attn(ln1(x)), then y + ffn(ln2(y))."""
    cases.check(adapters.run_transformer_block)


@task("transformer_block")
def test_block_of_small_features(adapters, cases):
    """Both norms use an eps of 1e-5."""
    cases.check(adapters.run_transformer_block)


@task("transformer_block")
def test_block_without_sublayers_is_identity(adapters, draw):
    """If both sublayers add zeros, the output of the block is its input."""
    arguments = block_arguments(draw)
    weights = dict(arguments["weights"])
    for name in ("attn.output_proj.weight", "ffn.w2.weight"):
        weights[name] = torch.zeros_like(weights[name])
    output = adapters.run_transformer_block(**{**arguments, "weights": weights})
    check_close(output, arguments["in_features"], "the residual path is not x itself")


@ours
@task("transformer_block")
def test_block_passes_gradients_along(adapters, draw):
    """If both sublayers add zeros, the gradient of the input is the cotangent."""
    arguments, cotangent = block_arguments(draw), draw.normal(3, 6, 8)
    weights = dict(arguments["weights"])
    for name in ("attn.output_proj.weight", "ffn.w2.weight"):
        weights[name] = torch.zeros_like(weights[name])
    silent = {**arguments, "weights": weights}
    answer = adapters.run_transformer_block.answer(silent, cotangent, ["in_features"])
    found = answer.gradients["in_features"]
    check(found is not None, "no gradient reaches the input: is something detached on the way?")
    check_close(found, cotangent, "the residual path does not pass gradients on")


@ours
@task("transformer_block")
def test_block_refuses_long_sequences(adapters, draw):
    """A sequence of more than max_seq_len tokens is an error."""
    arguments = {**block_arguments(draw), "in_features": draw.normal(1, 11, 8)}
    why = "max_seq_len is 10 and the sequence has 11 tokens"
    adapters.run_transformer_block.error(why, **arguments)


@ours
@task("transformer_block")
def test_block_starts_random(adapters):
    """The initial weights are drawn by the layers of the block."""
    sizes = {**BLOCK_SIZES, "d_model": 96, "d_ff": 64}
    seen = adapters.probe("module", symbol=BLOCK, arguments=sizes, seed=5)
    check_truncated_normal(value_of(seen, "attn.v_proj.weight"), (2 / 192) ** 0.5)
    check_truncated_normal(value_of(seen, "ffn.w2.weight"), (2 / 160) ** 0.5)


@task("transformer_block")
def test_block_is_causal(adapters, draw):
    """A change of token 3 does not change the answers for earlier tokens."""
    arguments = block_arguments(draw)
    before = adapters.run_transformer_block(**arguments)
    check(getattr(before, "shape", None) == (3, 6, 8), "the shape is not that of the input")
    changed = arguments["in_features"].clone()
    changed[:, 3] += 1.0
    after = adapters.run_transformer_block(**{**arguments, "in_features": changed})
    check_close(after[:, :3], before[:, :3], "a later token shows in an earlier answer")


@task("transformer_block")
def test_block_of_each_item(adapters, draw):
    """The answer for one item of a batch does not depend on the other items."""
    arguments = block_arguments(draw)
    together = adapters.run_transformer_block(**arguments)
    check(getattr(together, "shape", None) == (3, 6, 8), "the shape is not that of the input")
    for i in range(3):
        one = adapters.run_transformer_block(
            **{**arguments, "in_features": arguments["in_features"][i : i + 1]}
        )
        check_close(one[0], together[i], f"alone, item {i} gets another answer than in its batch")


@task("transformer_block")
def test_block_memory(adapters, draw):
    """The memory layout does not change the answer, inputs do not change, and two calls agree."""
    arguments = block_arguments(draw)
    check_memory(adapters.run_transformer_block, arguments, "in_features")


@ours
@task("transformer_block")
def test_block_module(adapters, draw):
    """The parameters have the documented names, nothing else is saved, gradients reach all."""
    seen = adapters.probe(
        "module",
        symbol=BLOCK,
        arguments=BLOCK_SIZES,
        inputs=[draw.normal(2, 5, 8)],
        cotangent=draw.normal(2, 5, 8),
    )
    check_weights(seen, BLOCK_SHAPES)
    check_gradients_reach(seen["gradients"])


@ours
@task("transformer_block")
def test_block_device_and_dtype(adapters, draw):
    """`device` and `dtype` reach every submodule, and bfloat16 inputs give a bfloat16 output."""
    seen = adapters.probe(
        "module", symbol=BLOCK, arguments=BLOCK_SIZES, device="meta", dtype="bfloat16"
    )
    check_placed(seen["parameters"], device="meta", dtype="bfloat16")
    check_placed(seen["buffers"], device="meta")
    x = draw.normal(2, 5, 8).bfloat16()
    seen = adapters.probe(
        "module", symbol=BLOCK, arguments=BLOCK_SIZES, dtype="bfloat16", inputs=[x], watched=True
    )
    check(seen["output"].dtype == torch.bfloat16, f"bfloat16 in gives {seen['output'].dtype} out")
    check_no_strangers(seen["strangers"])


@ours
@task("transformer_block")
def test_block_of_any_leading_axes(adapters, draw):
    """The input may be a single sequence, a batch, or have two leading axes."""
    weights, x = draw.weights(BLOCK_SHAPES), draw.normal(2, 3, 5, 8)

    def run(inputs):
        seen = adapters.probe(
            "module", symbol=BLOCK, arguments=BLOCK_SIZES, weights=weights, inputs=[inputs]
        )
        return seen["output"]

    batch = run(x[1])
    check_close(
        run(x)[1],
        batch,
        "with two leading axes, the answer is not the one with a single leading axis",
    )
    check_close(run(x[1, 2]), batch[2], "a single sequence gets another answer than in a batch")


@task("transformer_lm")
def test_lm_matches_saved_tensors(adapters, cases):
    """The logits are right: embedding, blocks with their own weights, final norm, untied head."""
    cases.check(adapters.run_transformer_lm)


@task("transformer_lm")
def test_lm_of_a_small_stream(adapters, cases):
    """The final norm uses an eps of 1e-5."""
    cases.check(adapters.run_transformer_lm)


@task("transformer_lm")
def test_lm_lengths(adapters, cases):
    """Sequences may have any length, from one token to context_length."""
    cases.check(adapters.run_transformer_lm)


@task("transformer_lm")
def test_lm_is_causal(adapters, draw):
    """A change of token 3 changes its own logits, and not those of earlier tokens."""
    arguments = lm_arguments(draw)
    before = adapters.run_transformer_lm(**arguments)
    check(getattr(before, "shape", None) == (2, 6, 11), "the shape is not (batch, seq, vocab_size)")
    changed = arguments["in_indices"].clone()
    changed[:, 3] = (changed[:, 3] + 1) % 11
    after = adapters.run_transformer_lm(**{**arguments, "in_indices": changed})
    check_close(after[:, :3], before[:, :3], "a later token shows in earlier logits")
    check(
        bool(((after - before)[:, 3].abs().amax(-1) > 1e-3).all()),
        "a token does not show in its own logits",
    )


@task("transformer_lm")
def test_lm_memory(adapters, draw):
    """Ids and weights do not change, and two calls agree."""
    arguments = lm_arguments(draw)
    check_memory(adapters.run_transformer_lm, arguments)


@ours
@task("transformer_lm")
def test_lm_of_each_item(adapters, draw):
    """The answer for a sequence is the same alone, without a batch axis, as in a batch."""
    check_rows_alone(adapters.run_transformer_lm, lm_arguments(draw), "in_indices")


@ours
@task("transformer_lm")
def test_lm_refuses_what_it_does_not_know(adapters, draw):
    """An id outside the vocabulary, or a sequence longer than context_length, is an error."""
    arguments = lm_arguments(draw)
    unknown = {**arguments, "in_indices": torch.tensor([[0, 11]])}
    adapters.run_transformer_lm.error("vocab_size is 11 and an id is 11", **unknown)
    for length in (14, 11):
        long = {**arguments, "in_indices": draw.integers(11, 1, length)}
        why = f"context_length is 10 and the sequence has {length} tokens"
        adapters.run_transformer_lm.error(why, **long)


@ours
@task("transformer_lm")
def test_lm_module(adapters, draw):
    """The parameters have the documented names, nothing else is saved, gradients reach all."""
    seen = adapters.probe(
        "module",
        symbol=LM,
        arguments=LM_SIZES,
        inputs=[draw.integers(11, 4, 8)],
        cotangent=draw.normal(4, 8, 11),
    )
    check_weights(seen, LM_SHAPES)
    check_gradients_reach(seen["gradients"])


@ours
@task("transformer_lm")
def test_lm_starts_random(adapters):
    """The initial weights are drawn by the layers: embedding, head and blocks."""
    sizes = {**LM_SIZES, "d_model": 96, "d_ff": 64, "vocab_size": 100, "num_layers": 1}
    seen = adapters.probe("module", symbol=LM, arguments=sizes, seed=6)
    check_truncated_normal(value_of(seen, "token_embeddings.weight"), 1.0)
    check_truncated_normal(value_of(seen, "lm_head.weight"), (2 / 196) ** 0.5)
    check_truncated_normal(value_of(seen, "layers.0.ffn.w1.weight"), (2 / 160) ** 0.5)


@ours
@task("transformer_lm")
def test_lm_layers_start_unlike(adapters):
    """Every layer draws its own weights, and the head does not share those of the embedding."""
    seen = adapters.probe("module", symbol=LM, arguments=LM_SIZES)
    first, second = (value_of(seen, f"layers.{i}.ffn.w1.weight") for i in (0, 1))
    check(not torch.equal(first, second), "all layers start with the same weights")
    tied = torch.equal(value_of(seen, "token_embeddings.weight"), value_of(seen, "lm_head.weight"))
    check(not tied, "the head and the embedding start with the same weights")


@ours
@task("transformer_lm")
def test_lm_device_and_dtype(adapters, draw):
    """`device` and `dtype` reach every submodule, and a bfloat16 model gives bfloat16 logits."""
    seen = adapters.probe("module", symbol=LM, arguments=LM_SIZES, device="meta", dtype="bfloat16")
    check_placed(seen["parameters"], device="meta", dtype="bfloat16")
    check_placed(seen["buffers"], device="meta")
    ids = draw.integers(11, 2, 5)
    seen = adapters.probe(
        "module", symbol=LM, arguments=LM_SIZES, dtype="bfloat16", inputs=[ids], watched=True
    )
    check(seen["output"].dtype == torch.bfloat16, f"a bfloat16 model gives {seen['output'].dtype}")
    check_no_strangers(seen["strangers"])
