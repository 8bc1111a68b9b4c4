"""The causal language model: the trunk, the output head, and the loss of the next token."""

import math

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

TRUNK = "cs336_basics.causal_lm:TransformerTrunk"
LM = "cs336_basics.causal_lm:CausalLM"
SIZES = {
    "vocab_size": 11,
    "context_length": 10,
    "d_model": 16,
    "num_layers": 2,
    "num_heads": 4,
    "num_kv_heads": 2,
    "d_ff": 12,
    "rope_theta": 10000.0,
}
BLOCK_SHAPES = {
    "attn.q_proj.weight": (16, 16),
    "attn.k_proj.weight": (8, 16),
    "attn.v_proj.weight": (8, 16),
    "attn.output_proj.weight": (16, 16),
    "ln1.weight": (16,),
    "ln2.weight": (16,),
    "ffn.w1.weight": (12, 16),
    "ffn.w2.weight": (16, 12),
    "ffn.w3.weight": (12, 16),
}
TRUNK_SHAPES = {
    "token_embeddings.weight": (11, 16),
    **{f"layers.{i}.{name}": shape for i in range(2) for name, shape in BLOCK_SHAPES.items()},
    "ln_final.weight": (16,),
}


def silent_weights(width):
    """Return weights of a one-layer trunk: embeddings of ones, and sublayers that add zeros."""
    square = torch.zeros(width, width)
    return {
        "token_embeddings.weight": torch.ones(11, width),
        "layers.0.attn.q_proj.weight": square,
        "layers.0.attn.k_proj.weight": square[: width // 2],
        "layers.0.attn.v_proj.weight": square[: width // 2],
        "layers.0.attn.output_proj.weight": square,
        "layers.0.ln1.weight": torch.ones(width),
        "layers.0.ln2.weight": torch.ones(width),
        "layers.0.ffn.w1.weight": square,
        "layers.0.ffn.w2.weight": square,
        "layers.0.ffn.w3.weight": square,
        "ln_final.weight": torch.ones(width),
    }


def lm_arguments(draw):
    """Return arguments of `run_causal_lm`."""
    weights = {f"trunk.{name}": weight for name, weight in draw.weights(TRUNK_SHAPES).items()}
    weights["lm_head.weight"] = draw.normal(11, 16, scale=0.35)
    return {**SIZES, "weights": weights, "token_ids": draw.integers(11, 2, 6)}


@ours
@task("causal_lm_loss")
def test_causal_loss_matches_saved_numbers(adapters, cases):
    """The loss is the mean cross-entropy of each position's logits with the next label."""
    cases.check(adapters.run_causal_lm_loss)


@ours
@task("causal_lm_loss")
def test_ignored_labels_leave_the_mean(adapters, cases):
    """The mean is taken over the predictions whose label is not `ignore_index`."""
    cases.check(adapters.run_causal_lm_loss)


@ours
@task("causal_lm_loss")
def test_nothing_to_predict(adapters, cases):
    """If there is no prediction to average over, the loss is 0, not NaN."""
    cases.check(adapters.run_causal_lm_loss)


@ours
@task("causal_lm_loss")
def test_labels_outside_the_classes_are_refused(adapters, draw):
    """A label outside 0 to vocab_size - 1 is an error, unless it is `ignore_index`."""
    for label, ignored in ((5, -100), (-1, -100), (-100, -1)):
        why = f"with vocab_size=5 and ignore_index={ignored}, a label is {label}"
        labels = torch.tensor([[0, label, 2]])
        adapters.run_causal_lm_loss.error(
            why, logits=draw.normal(1, 3, 5), labels=labels, ignore_index=ignored
        )


@ours
@task("causal_lm_loss")
def test_causal_loss_memory(adapters, draw):
    """The loss is the same for non-contiguous logits and in a second call; no input changes."""
    labels = draw.integers(7, 2, 5)
    labels[0, 3] = -100
    arguments = {"logits": draw.normal(2, 5, 7), "labels": labels, "ignore_index": -100}
    check_memory(adapters.run_causal_lm_loss, arguments, "logits")


@ours
@task("causal_lm_loss")
def test_causal_loss_gradient(adapters, draw):
    """The gradient of the logits is right, and zero at the last position and ignored labels."""
    labels = draw.integers(7, 2, 5)
    labels[1, 2] = -100
    check_gradients(
        adapters.run_causal_lm_loss,
        {"logits": draw.normal(2, 5, 7), "labels": labels, "ignore_index": -100},
        lambda logits: F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()),
        "logits",
    )
    arguments = {"logits": draw.normal(2, 3, 5), "labels": torch.full((2, 3), -100)}
    answer = adapters.run_causal_lm_loss.answer(
        {**arguments, "ignore_index": -100}, torch.tensor(1.0), ["logits"]
    )
    found = answer.gradients["logits"]
    why = "if all labels are ignored, the gradient of the logits is not zeros"
    check_close(found, torch.zeros(2, 3, 5), why)


@ours
@task("causal_lm_loss")
def test_causal_loss_of_half_precision(adapters, draw):
    """The loss of half-precision logits is computed and returned in float32."""
    labels = draw.integers(7, 3, 9)
    half = draw.normal(3, 9, 7, scale=4.0).bfloat16()
    loss = adapters.run_causal_lm_loss(logits=half, labels=labels)
    expected = F.cross_entropy(half[:, :-1].double().flatten(0, 1), labels[:, 1:].flatten())
    check_close(
        loss,
        expected,
        "the loss of bfloat16 logits is not that of a computation in float32",
        dtype=torch.float32,
    )
    nothing = adapters.run_causal_lm_loss(logits=half[:, :1], labels=labels[:, :1])
    why = "for bfloat16 logits without a prediction, the loss is not a float32 zero"
    check_close(nothing, torch.tensor(0.0), why)


@ours
@task("causal_lm")
def test_causal_lm_matches_saved_tensors(adapters, cases):
    """Embedding, blocks with grouped queries, final norm and untied head give the logits."""
    cases.check(adapters.probing("part"))


@ours
@task("causal_lm")
def test_last_positions_alone(adapters, cases):
    """With `logits_to_keep`, only the last positions get logits, and their values are the same."""
    cases.check(adapters.probing("part"))


@ours
@task("causal_lm")
def test_loss_comes_with_labels(adapters, cases):
    """With labels, the model returns the logits of all positions and the loss."""
    cases.check(adapters.probing("part"))


@ours
@task("causal_lm")
def test_hidden_states_of_the_trunk(adapters, draw):
    """The trunk returns hidden states of width d_model, and `lm_head` makes them logits."""
    arguments = lm_arguments(draw)
    ids, head = arguments["token_ids"], arguments["weights"]["lm_head.weight"]
    weights = {
        name.removeprefix("trunk."): weight
        for name, weight in arguments["weights"].items()
        if name != "lm_head.weight"
    }
    seen = adapters.probe("module", symbol=TRUNK, arguments=SIZES, weights=weights, inputs=[ids])
    hidden = seen["output"]
    shape = tuple(hidden.shape)
    check(shape == (2, 6, 16), f"the trunk's hidden states have shape {shape}, expected (2, 6, 16)")
    logits = adapters.probe("part", adapter="run_causal_lm", index=0, **arguments)
    check_close(logits, hidden @ head.T, "the logits are not `lm_head` of the trunk's output")
    loss = adapters.probe("part", adapter="run_causal_lm", index=1, **arguments)
    check(loss is None, f"without labels the loss is {loss}, expected None")


@ours
@task("causal_lm")
def test_causal_lm_memory(adapters, draw):
    """A call changes no ids, labels or weights, and a second call gives the same answer."""
    arguments = lm_arguments(draw)
    arguments["labels"] = arguments["token_ids"].clone()
    check_memory(adapters.run_causal_lm, arguments)


@ours
@task("causal_lm")
def test_trunk_module(adapters, draw):
    """Parameters have the documented names, nothing else is saved, and all get gradients."""
    seen = adapters.probe(
        "module",
        symbol=TRUNK,
        arguments=SIZES,
        inputs=[draw.integers(11, 4, 8)],
        cotangent=draw.normal(4, 8, 16),
    )
    check_weights(seen, TRUNK_SHAPES)
    check_gradients_reach(seen["gradients"])


@ours
@task("causal_lm")
def test_head_is_its_own(adapters):
    """`CausalLM` adds an untied `lm_head` to its trunk, initialised like `Linear`."""
    sizes = {**SIZES, "vocab_size": 100, "d_model": 96}
    seen = adapters.probe("module", symbol=TRUNK, around=LM, arguments=sizes, seed=3)
    names = {f"trunk.{name}" for name in TRUNK_SHAPES} | {"lm_head.weight"}
    found = set(seen["parameters"])
    check(
        found == names, f"these parameters are missing or not documented: {sorted(found ^ names)}"
    )
    head, table = (value_of(seen, n) for n in ("lm_head.weight", "trunk.token_embeddings.weight"))
    check(not torch.equal(head, table), "`lm_head` and the embedding start with the same weights")
    check_truncated_normal(head, (2 / 196) ** 0.5)


@ours
@task("causal_lm")
def test_eps_of_every_norm(adapters):
    """`norm_eps` is used by every norm, including the final one."""
    sizes = {**SIZES, "num_layers": 1, "d_ff": 16, "norm_eps": 1e8}
    weights = {name: torch.ones_like(w) for name, w in silent_weights(16).items()}
    ids = torch.zeros(1, 3, dtype=torch.int64)
    seen = adapters.probe("module", symbol=TRUNK, arguments=sizes, weights=weights, inputs=[ids])
    # A norm with eps 1e8 divides by 10⁴. So attention adds 16² / 10⁴ to 1, and SwiGLU adds less.
    expected = torch.full((1, 3, 16), (1 + 16**2 / 1e4) / 1e4)
    off = (seen["output"] / expected - 1).abs().max()
    check(
        bool(off < 0.01),
        "with norm_eps=1e8 every norm should divide by 10⁴, and at least one does not",
    )


def dropped(adapters, p, weights, training=True, seed=0):
    """Return the input of the final norm in a one-layer trunk with dropout p, (4, 10, 64).

    The final norm has an eps of 1e8, so it divides by 10⁴, whatever its input is.
    """
    sizes = {**SIZES, "d_model": 64, "num_layers": 1, "d_ff": 64}
    seen = adapters.probe(
        "module",
        symbol=TRUNK,
        arguments={**sizes, "dropout": p, "norm_eps": 1e8},
        weights=weights,
        inputs=[torch.zeros(4, 10, dtype=torch.int64)],
        training=training,
        seed=seed,
    )
    return seen["output"] * 1e4


def check_share(zeros, p, what):
    """Check that the share of True values is p; a correct one fails once in ten million times."""
    count, share = zeros.numel(), zeros.double().mean().item()
    bound = math.sqrt(math.log(2e7) / (2 * count))
    check(
        abs(share - p) < bound,
        f"with dropout={p}, the share of zeros among the features of {what} is {{:.3f}}",
        share,
    )


@ours
@task("causal_lm")
def test_dropout_of_embeddings(adapters):
    """In training, dropout zeroes single features of the embeddings and scales the others."""
    for p in (0.25, 0.6):
        values = dropped(adapters, p, silent_weights(64))
        zeros = values.abs() < 1e-3
        check_share(zeros, p, "the embeddings")
        scale = values[~zeros].mean().item() * (1 - p)
        why = (
            f"dropout={p} scales the other features by {{:.3f}} / {1 - p:g}, expected 1 / {1 - p:g}"
        )
        check(abs(scale - 1) < 0.01, why, scale)
        check(
            not bool((zeros == zeros[:1]).all()),
            "dropout zeroes the same features in every row of the batch",
        )
    again = dropped(adapters, 0.6, silent_weights(64), seed=1)
    check(
        not torch.equal(again.abs() < 1e-3, zeros), "dropout zeroes the same features in two calls"
    )


def loud_weights():
    """Yield the name of each sublayer's output, and weights that make this output large."""
    loud = torch.full((64, 64), 1e3)
    for part, names in {
        "the output of attention": ("attn.v_proj", "attn.output_proj"),
        "the output of the feed-forward layer": ("ffn.w1", "ffn.w2", "ffn.w3"),
    }.items():
        weights = silent_weights(64)
        for name in names:
            weights[f"layers.0.{name}.weight"] = loud[: len(weights[f"layers.0.{name}.weight"])]
        yield part, weights


@ours
@task("causal_lm")
def test_dropout_of_sublayers(adapters):
    """In training, dropout zeroes single features of what attention and feed-forward output."""
    for part, weights in loud_weights():
        values = dropped(adapters, 0.4, weights)
        # A feature of the embedding is at most 1 / 0.6; what the sublayer adds is far larger.
        check_share(values.abs() < 2, 0.4, part)


@ours
@task("causal_lm")
def test_no_dropout_in_evaluation(adapters):
    """After `eval()`, or with dropout=0, no feature is zeroed or scaled."""
    for p, training in ((0.5, False), (0.0, True)):
        values = dropped(adapters, p, silent_weights(64), training)
        why = f"with dropout={p} and training={training}, embeddings of ones don't stay ones"
        check(bool(((values - 1).abs() < 1e-3).all()), why)
    for part, weights in loud_weights():
        whole = dropped(adapters, 0.0, weights)
        check(bool((whole.abs() > 2).all()), f"with dropout=0, {part} has zeros in training")
        evaluated = dropped(adapters, 0.5, weights, training=False)
        check_close(evaluated, whole, f"after `eval()`, dropout=0.5 changes {part}")


@ours
@task("causal_lm")
def test_causal_lm_device_and_dtype(adapters, draw):
    """`device` and `dtype` reach every parameter; a bfloat16 model gives bfloat16 logits."""
    whole = {"symbol": TRUNK, "around": LM, "arguments": SIZES, "dtype": "bfloat16"}
    seen = adapters.probe("module", device="meta", **whole)
    check_placed(seen["parameters"], device="meta", dtype="bfloat16")
    check_placed(seen["buffers"], device="meta")
    seen = adapters.probe("module", inputs=[draw.integers(11, 2, 5)], watched=True, **whole)
    found = seen["output"][0].dtype
    check(found == torch.bfloat16, f"a bfloat16 model gives logits of {found}")
    check_no_strangers(seen["strangers"])


@ours
@task("causal_lm")
def test_logits_to_keep_that_make_no_sense(adapters, draw):
    """A negative `logits_to_keep` is an error, and so is `logits_to_keep` with labels."""
    arguments = lm_arguments(draw)
    adapters.run_causal_lm.error("logits_to_keep is negative, -1", logits_to_keep=-1, **arguments)
    labels = arguments["token_ids"].clone()
    why = "logits_to_keep is 2 and labels were given, whose loss needs all logits"
    adapters.run_causal_lm.error(why, logits_to_keep=2, labels=labels, **arguments)
