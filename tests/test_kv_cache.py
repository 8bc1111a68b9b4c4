"""The key/value cache: the logits are those without it, and the model gets every token once."""

import torch

from tests.harness import ours, task
from tests.harness.compare import check, check_close, check_equal
from tests.harness.properties import check_memory

CACHE = "cs336_basics.kv_cache:KVCache"
NEXT = "cs336_basics.cached_decoding:cached_next_logits"
MODEL = ["cs336_basics.causal_lm:TransformerTrunk", "cs336_basics.causal_lm:CausalLM"]
SIZES = {
    "vocab_size": 11,
    "context_length": 12,
    "d_model": 16,
    "num_layers": 2,
    "num_heads": 4,
    "num_kv_heads": 2,
    "d_ff": 12,
    "rope_theta": 10000.0,
}
BLOCK = {"attn.q_proj": (16, 16), "attn.k_proj": (8, 16), "attn.v_proj": (8, 16)}
BLOCK |= {"attn.output_proj": (16, 16), "ln1": (16,), "ln2": (16,)}
BLOCK |= {"ffn.w1": (12, 16), "ffn.w2": (16, 12), "ffn.w3": (12, 16)}
SHAPES = {"trunk.token_embeddings": (11, 16), "trunk.ln_final": (16,), "lm_head": (11, 16)}
SHAPES |= {f"trunk.layers.{i}.{name}": shape for i in range(2) for name, shape in BLOCK.items()}


def cached_arguments(draw, **more):
    """Draw arguments of `run_cached_forward`: batch 3, six tokens, in chunks of 3, 1 and 2."""
    weights = {
        f"{name}.weight": (len(shape) == 1) + 0.35 * draw.normal(*shape)
        for name, shape in SHAPES.items()
    }
    return {
        **SIZES,
        "weights": weights,
        "token_ids": draw.integers(11, 3, 6),
        "chunk_sizes": [3, 1, 2],
        "max_cached": 8,
        "earlier_ids": None,
        **more,
    }


@ours
@task("kv_cache")
def test_token_by_token(adapters, cases):
    """Tokens that come one at a time get the same logits as in one call, also after a prompt."""
    cases.check(adapters.run_cached_forward)


@ours
@task("kv_cache")
def test_chunks(adapters, cases):
    """Tokens of a chunk attend to the cache and to earlier tokens of the chunk, never to later."""
    cases.check(adapters.run_cached_forward)


@ours
@task("kv_cache")
def test_another_prompt(adapters, cases):
    """After `reset` nothing is left of the earlier text, not even its batch size."""
    cases.check(adapters.run_cached_forward)


@ours
@task("kv_cache")
def test_cached_rows_alone(adapters, draw):
    """Each row of the batch has its own keys and values."""
    arguments = cached_arguments(draw)
    together = adapters.run_cached_forward(**arguments)
    check(getattr(together, "shape", None) == (3, 6, 11), "the logits are not (batch, seq, vocab)")
    for i in range(3):
        alone = {**arguments, "token_ids": arguments["token_ids"][i : i + 1]}
        found = adapters.run_cached_forward(**alone)
        check_close(found[0], together[i], f"alone, row {i} gets other logits than in its batch")


@ours
@task("kv_cache")
def test_cached_weights_and_ids_stay(adapters, draw):
    """Weights and ids do not change, and two calls agree."""
    arguments = cached_arguments(draw)
    check_memory(adapters.run_cached_forward, arguments)


@ours
@task("kv_cache")
def test_full_cache_is_refused(adapters, draw):
    """More tokens than `max_seq_len` are an error: the cache drops or overwrites no old token."""
    for chunks in ([9], [8, 1], [6, 3], [1] * 9):
        ids = draw.integers(11, 2, 9)
        arguments = cached_arguments(draw, token_ids=ids, chunk_sizes=chunks)
        why = f"the cache has room for 8 tokens and 9 come, in chunks of {chunks}"
        adapters.run_cached_forward.error(why, **arguments)
    ids = draw.integers(11, 2, 13)
    long = cached_arguments(draw, token_ids=ids, chunk_sizes=[7, 6], max_cached=20)
    adapters.run_cached_forward.error("context_length is 12 and 13 tokens come", **long)


@ours
@task("kv_cache")
def test_cache_keeps_the_dtype(adapters, draw):
    """Cached logits have the dtype of the model, bfloat16 or float64, and its precision."""
    arguments = cached_arguments(draw)
    for dtype in (torch.bfloat16, torch.float64):
        weights = {name: weight.to(dtype) for name, weight in arguments["weights"].items()}
        output = adapters.run_cached_forward(**{**arguments, "weights": weights})
        check(output.dtype == dtype, f"weights of {dtype} give logits of {output.dtype}")
        check(bool(output.isfinite().all()), f"weights of {dtype} give NaN or infinity")
    model = {name: arguments[name] for name in (*SIZES, "token_ids")}
    logits = adapters.probe("part", adapter="run_causal_lm", index=0, weights=weights, **model)
    why = "with float64 weights the logits differ from those of `run_causal_lm` after a few digits"
    check_close(output, logits, why, limit=1e-4)


@ours
@task("kv_cache")
def test_cache_by_itself(adapters, draw):
    """`append` returns all keys and values so far, in order; `reset` empties the cache."""
    pairs = [(draw.normal(2, 3, n, 4), draw.normal(2, 3, n, 4)) for n in (3, 1, 2)]
    other = (draw.normal(5, 1, 2, 6).bfloat16(), draw.normal(5, 1, 2, 6).bfloat16())
    steps = adapters.probe(
        "cache_steps", symbol=CACHE, max_seq_len=6, steps=[*pairs, None, None, other]
    )
    check_equal([s["error"] for s in steps], [None] * 6, "a call that should work raises an error")
    lengths = [step["length"] for step in steps]
    check_equal(lengths, [3, 4, 6, 0, 0, 2], "`length` does not count the tokens in the cache")
    for i in range(3):
        for part, name in enumerate(("keys", "values")):
            expected = torch.cat([pair[part] for pair in pairs[: i + 1]], dim=-2)
            why = f"after {i + 1} calls of `append`, the {name} are not those of all tokens so far"
            check_close(steps[i][name], expected, why, limit=0.0)
    for part, name in enumerate(("keys", "values")):
        why = f"after `reset`, the {name} of another batch in bfloat16 don't come back as they are"
        check_close(steps[5][name], other[part], why, limit=0.0)


@ours
@task("kv_cache")
def test_refused_tokens_change_nothing(adapters, draw):
    """A refused `append` does not change the cache, which still accepts tokens that fit."""
    first, second = ((draw.normal(1, 2, 3, 4), draw.normal(1, 2, 3, 4)) for _ in range(2))
    last = tuple(part[:, :, :1] for part in second)
    steps = adapters.probe("cache_steps", symbol=CACHE, max_seq_len=4, steps=[first, second, last])
    check(steps[1]["error"] is not None, "the cache has room for 4 tokens and takes 6")
    check_equal([s["length"] for s in steps], [3, 3, 4], "a refused `append` changes the length")
    for part, name in enumerate(("keys", "values")):
        expected = torch.cat([first[part], last[part]], dim=-2)
        check_close(steps[2][name], expected, f"a refused `append` changes the {name}", limit=0.0)


@ours
@task("kv_cache")
def test_keys_of_another_batch_are_refused(adapters, draw):
    """Keys with another batch size are an error: they do not broadcast to the rows in the cache."""
    kept, row = ((draw.normal(n, 2, 1, 4), draw.normal(n, 2, 1, 4)) for n in (3, 1))
    steps = adapters.probe("cache_steps", symbol=CACHE, max_seq_len=4, steps=[kept, row])
    check(steps[1]["error"] is not None, "the cache holds 3 rows, and takes keys of 1 row")


@ours
@task("kv_cache")
def test_next_logits_show_every_token_once(adapters, draw):
    """If ids extend the cached text, the model gets only the new ones; otherwise it gets all."""
    text, other = draw.integers(11, 1, 8), draw.integers(11, 1, 6)
    other[0, 0] = (text[0, 0] + 1) % 11
    changed = text.clone()
    changed[0, 2] = (changed[0, 2] + 1) % 11
    texts = [text[:, :4], text[:, :5], text, other[:, :3], other, changed, other[:, :3]]
    texts += [draw.integers(11, 3, 4), other[:, :3], other[:, :3]]
    fresh = [4, 1, 3, 3, 3, 8, 3, 4, 3, 3]
    seen = adapters.probe("cached_logits", symbol=NEXT, model=MODEL, arguments=SIZES, texts=texts)
    for i, (ids, new, found) in enumerate(zip(texts, fresh, seen, strict=True)):
        where = f"text {i + 1}, of which {new} of {ids.shape[1]} tokens are new"
        why = f"{where}: the logits are not those without a cache"
        check_close(found["logits"], found["expected"], why)
        check(not found["requires_grad"], "the logits are part of a graph of gradients")
        shown = [part.tolist() for part in found["shown"]]
        check_equal(shown, [ids[:, -new:].tolist()], f"{where}: the model is shown other ids")
