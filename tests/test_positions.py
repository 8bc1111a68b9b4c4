"""Other ways to mark positions: sinusoids, and RoPE in the half-split layout."""

import torch

from tests.harness import ours, task
from tests.harness.compare import check, check_close
from tests.harness.properties import (
    check_dtype_kept,
    check_gradients,
    check_memory,
    check_no_strangers,
    check_placed,
)

SINUSOIDAL = "cs336_basics.sinusoidal:SinusoidalPositions"
HALF_SPLIT = "cs336_basics.rope_half_split:HalfSplitRotaryEmbedding"


def sinusoidal_arguments(x, positions, max_seq_len=32):
    """Arguments of `run_sinusoidal_positions`."""
    return {
        "d_model": x.shape[-1],
        "max_seq_len": max_seq_len,
        "in_features": x,
        "token_positions": positions,
    }


def half_split_arguments(q, k, start=0):
    """Arguments of `run_rope_half_split`."""
    return {
        "head_dim": q.shape[-1],
        "theta": 10000.0,
        "in_query": q,
        "in_key": k,
        "start_position": start,
    }


def turned(first, second, angles):
    """The pairs `(first, second)`, turned by their angles."""
    numbers = torch.complex(first.double(), second.double()) * torch.exp(1j * angles)
    return numbers.real, numbers.imag


def angles_of(positions, features, theta=10000.0):
    """The angles of RoPE, one row for each position."""
    return positions[:, None] * theta ** (-torch.arange(0, features, 2).double() / features)


def rotated_halves(x, positions):
    """RoPE on the two halves of the last axis."""
    halves = turned(*x.chunk(2, dim=-1), angles_of(positions, x.shape[-1]))
    return torch.cat(halves, dim=-1)


def rotated_neighbours(x, positions):
    """RoPE on adjacent pairs of the last axis."""
    pairs = turned(x[..., 0::2], x[..., 1::2], angles_of(positions, x.shape[-1]))
    return torch.stack(pairs, dim=-1).flatten(-2)


@ours
@task("sinusoidal_positions")
def test_sinusoidal_matches_saved_tensors(adapters, cases):
    """Even features get a sine, odd ones the cosine of the same angle; positions count from 0."""
    cases.check(adapters.run_sinusoidal_positions)


@ours
@task("sinusoidal_positions")
def test_sinusoidal_positions_are_used(adapters, cases):
    """Positions with gaps, in any order, and others in each row: the given ones count."""
    cases.check(adapters.run_sinusoidal_positions)


@ours
@task("sinusoidal_positions")
def test_odd_number_of_features(adapters, cases):
    """With an odd number of features the last sine has no cosine."""
    cases.check(adapters.run_sinusoidal_positions)


@ours
@task("sinusoidal_positions")
def test_sinusoidal_far_out(adapters, cases):
    """Angles far out need their digits: half precision is wrong there."""
    cases.check(adapters.run_sinusoidal_positions)


@ours
@task("sinusoidal_positions")
def test_sinusoidal_memory(adapters, draw):
    """Inputs that are not contiguous give the same answer, inputs stay, and two calls agree."""
    arguments = sinusoidal_arguments(draw.normal(3, 5, 6), torch.arange(5))
    check_memory(adapters.run_sinusoidal_positions, arguments, "in_features")


@ours
@task("sinusoidal_positions")
def test_sinusoidal_gradient(adapters, draw):
    """What is added has no gradient of its own, and lets the input's through."""
    arguments = sinusoidal_arguments(draw.normal(4, 6), torch.arange(4))
    added = adapters.run_sinusoidal_positions(**{**arguments, "in_features": torch.zeros(4, 6)})
    check_gradients(
        adapters.run_sinusoidal_positions,
        arguments,
        lambda in_features: in_features + added.double(),
        "in_features",
    )


@ours
@task("sinusoidal_positions")
def test_sinusoidal_dtypes(adapters, draw):
    """Half precision in, half precision out; in between, sines and cosines to their last digit."""
    adapter, positions = adapters.run_sinusoidal_positions, torch.tensor([3, 257, 900, 1023])
    arguments = sinusoidal_arguments(draw.normal(4, 8), positions, 1024)
    check_dtype_kept(adapter, arguments, "in_features")
    exact = adapter(**{**arguments, "in_features": torch.zeros(4, 8)})
    half = adapter(**{**arguments, "in_features": torch.zeros(4, 8).bfloat16()})
    why = "with bfloat16 features, other sines and cosines are added"
    check_close(half, exact.double(), why, dtype=torch.bfloat16)


@ours
@task("sinusoidal_positions")
def test_nothing_in_sinusoidal_is_learned_or_saved(adapters):
    """The table is a buffer that stays out of the state dict, and moves with the model."""
    arguments = {"d_model": 6, "max_seq_len": 16}
    seen = adapters.probe(
        "module", symbol=SINUSOIDAL, arguments=arguments, device="meta", dtype="bfloat16"
    )
    check(not seen["parameters"], f"fixed positions have parameters: {list(seen['parameters'])}")
    check(not seen["state"], f"the table is saved with the model: {seen['state']}")
    check(bool(seen["buffers"]), "the table is no buffer, so it stays behind when the model moves")
    check_placed(seen["buffers"], device="meta")
    seen = adapters.probe("module", symbol=SINUSOIDAL, arguments=arguments)
    check_placed(seen["buffers"], device="cpu")


@ours
@task("sinusoidal_positions")
def test_sinusoidal_beyond_the_table_is_refused(adapters, draw):
    """A position of max_seq_len is an error; the one before it is the last that works."""
    adapter, x = adapters.run_sinusoidal_positions, draw.normal(2, 6)
    last = torch.tensor([0, 15])
    roomy = adapter(**sinusoidal_arguments(x, last, 64))
    tight = adapter(**sinusoidal_arguments(x, last, 16))
    check_close(tight, roomy, "the last position of a table is not that of a longer table")
    for beyond in (16, 40):
        arguments = sinusoidal_arguments(x, torch.tensor([0, beyond]), 16)
        adapter.error(f"max_seq_len is 16 and a position is {beyond}", **arguments)


@ours
@task("rope_half_split")
def test_half_split_matches_saved_tensors(adapters, cases):
    """Feature j and feature j + head_dim/2 are a pair, of queries and of keys."""
    cases.check(adapters.probing("part"))


@ours
@task("rope_half_split")
def test_fewer_key_heads(adapters, cases):
    """There may be fewer key heads than query heads."""
    cases.check(adapters.probing("part"))


@ours
@task("rope_half_split")
def test_any_starting_position(adapters, cases):
    """The first token stands at `start_position`, wherever that is."""
    cases.check(adapters.probing("part"))


@ours
@task("rope_half_split")
def test_half_split_theta(adapters, cases):
    """theta is an argument, not always 10000."""
    cases.check(adapters.probing("part"))


@ours
@task("rope_half_split")
def test_half_split_far_out(adapters, cases):
    """Angles far out need their digits: half precision is wrong there."""
    cases.check(adapters.probing("part"))


@ours
@task("rope_half_split")
def test_half_split_scores_depend_on_distance(adapters, draw):
    """The same query at 0 and at 1 meets the same key at 2 and at 3 alike."""
    q, k = draw.normal(1, 1, 1, 8).expand(1, 1, 2, 8), draw.normal(1, 1, 1, 8).expand(1, 1, 4, 8)
    query = adapters.run_rope_half_split(**half_split_arguments(q.clone(), q.clone()))[0]
    key = adapters.run_rope_half_split(**half_split_arguments(k.clone(), k.clone()))[1]
    check(query.shape == q.shape and key.shape == k.shape, "the shapes are not those of the inputs")
    scores = (query[0, 0] @ key[0, 0].T).double()
    why = "the scores at (0, 2) and (1, 3) differ, though both are at distance 2"
    check_close(scores[1, 3].float(), scores[0, 2], why, dtype=torch.float32)


@ours
@task("rope_half_split")
def test_tables_grow(adapters, draw):
    """One module, short and long sequences in turn: the tables follow, and forget nothing."""
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
        before = f"after {lengths[0]} tokens from position {starts[0]} on"
        why = f"{before}, {lengths[1]} tokens from position {starts[1]} on are rotated wrongly"
        check_close(seen["output"][0], expected, why, dtype=torch.float32)
    x = draw.normal(1, 1, 2, 6)
    seen = adapters.probe("module", symbol=HALF_SPLIT, arguments=given, inputs=[x, x])
    why = "without a `start_position` the first token does not stand at 0"
    expected = rotated_halves(x, torch.arange(2))
    check_close(seen["output"][1], expected, why, dtype=torch.float32)


@ours
@task("rope_half_split")
def test_half_split_memory(adapters, draw):
    """Inputs that are not contiguous give the same answer, and stay as they were."""
    arguments = half_split_arguments(draw.normal(2, 3, 4, 6), draw.normal(2, 3, 4, 6), 2)
    check_memory(adapters.run_rope_half_split, arguments, "in_query", "in_key")


@ours
@task("rope_half_split")
def test_half_split_gradient(adapters, draw):
    """The gradient of a rotation is the rotation back."""
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
        why = f"rotating the gradient of `{wrt}` forward does not give the cotangent back"
        check_close(again.float(), cotangent.double(), why, dtype=torch.float32)


@ours
@task("rope_half_split")
def test_half_split_dtypes(adapters, draw):
    """Half precision comes back in half precision, rotated by precise angles; float64 likewise."""
    x, positions = draw.normal(1, 2, 3, 8), torch.arange(3) + 1500
    for dtype, allowed in ((torch.bfloat16, 0.03), (torch.float16, 0.01), (torch.float64, 1e-9)):
        arguments = half_split_arguments(x.to(dtype), x.to(dtype), 1500)
        expected = rotated_halves(x.to(dtype), positions)
        for output in adapters.run_rope_half_split(**arguments):
            check(output.dtype == dtype, f"{dtype} in gives {output.dtype} out")
            worst = (output - expected).abs().max() / x.abs().max()
            why = f"the angles of {dtype} inputs are not precise: {worst:.2g} off"
            check(bool(worst < allowed), why)


@ours
@task("rope_half_split")
def test_nothing_in_half_split_is_learned_or_saved(adapters):
    """Frequencies and tables are buffers that stay out of the state dict, and no parameters."""
    arguments = {"theta": 10000.0, "head_dim": 8}
    seen = adapters.probe("module", symbol=HALF_SPLIT, arguments=arguments)
    check(not seen["parameters"], f"RoPE has parameters: {list(seen['parameters'])}")
    check(not seen["state"], f"a checkpoint would hold them: {seen['state']}")
    check("inv_freq" in seen["buffers"], "`inv_freq` is no buffer of the module")
    shape = tuple(seen["buffers"]["inv_freq"]["shape"])
    check(shape == (4,), f"`inv_freq` has shape {shape}, expected one frequency a pair, (4,)")


@ours
@task("rope_half_split")
def test_half_split_on_a_device(adapters, draw):
    """Buffers go where they are asked to, never in half precision; so do tables that grow."""
    arguments = {"theta": 10000.0, "head_dim": 8}
    seen = adapters.probe(
        "module", symbol=HALF_SPLIT, arguments=arguments, device="meta", dtype="bfloat16"
    )
    check_placed(seen["buffers"], device="meta")
    low = [name for name, b in seen["buffers"].items() if b["dtype"] in ("bfloat16", "float16")]
    check(not low, f"in half precision: {', '.join(low)}")
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
    """An odd head_dim leaves a feature without a partner, and nothing stands before position 0."""
    odd, even = draw.normal(1, 1, 2, 5), draw.normal(1, 1, 2, 4)
    adapter = adapters.run_rope_half_split
    adapter.error("head_dim is 5, which is odd", **half_split_arguments(odd, odd))
    adapter(**half_split_arguments(even, even))
    adapter.error("start_position is −1", **half_split_arguments(even, even, -1))


@ours
@task("rope_conversion")
def test_rows_to_half_split(adapters, cases):
    """Within each head rows 2j and 2j + 1 become rows j and j + d_head/2."""
    cases.check(adapters.run_adjacent_to_half_split)


@ours
@task("rope_conversion")
def test_rows_to_adjacent(adapters, cases):
    """Within each head rows j and j + d_head/2 become rows 2j and 2j + 1."""
    cases.check(adapters.run_half_split_to_adjacent)


@ours
@task("rope_conversion")
def test_one_undoes_the_other(adapters, draw):
    """There and back again every row is in its old place, in either order."""
    weight = {"weight": draw.normal(24, 5), "num_heads": 3}
    there, back = adapters.run_adjacent_to_half_split, adapters.run_half_split_to_adjacent
    for first, second in ((there, back), (back, there)):
        again = second(weight=first(**weight), num_heads=3)
        why = f"{second.name} does not undo {first.name}"
        check_close(again, weight["weight"], why, limit=0.0)


@ours
@task("rope_conversion")
def test_converted_weights_give_the_same_scores(adapters, draw):
    """Queries and keys of converted weights, rotated in the other layout, meet as before."""
    x, positions = draw.normal(5, 7).double(), torch.arange(5)
    weights = {name: draw.normal(rows, 7).double() for name, rows in (("q", 16), ("k", 8))}
    heads = {"q": 2, "k": 1}  # fewer heads of keys: each kind is converted with its own number

    def scores(weights, rotate):
        q, k = (
            rotate((x @ weights[n].T).unflatten(-1, (heads[n], 8)).transpose(0, 1), positions)
            for n in "qk"
        )
        return q @ k.transpose(-1, -2)

    there, back = adapters.run_adjacent_to_half_split, adapters.run_half_split_to_adjacent
    for convert, before, after in (
        (there, rotated_neighbours, rotated_halves),
        (back, rotated_halves, rotated_neighbours),
    ):
        converted = {n: convert(weight=w, num_heads=heads[n]) for n, w in weights.items()}
        kept = all(getattr(w, "shape", None) == weights[n].shape for n, w in converted.items())
        check(kept, f"{convert.name} changes the shape")
        why = f"after {convert.name} the scores in the other layout are not those of before"
        check_close(scores(converted, after), scores(weights, before), why)


@ours
@task("rope_conversion")
def test_conversion_memory(adapters, draw):
    """Weights that are not contiguous are converted alike, stay, and two calls agree."""
    for adapter in (adapters.run_adjacent_to_half_split, adapters.run_half_split_to_adjacent):
        arguments = {"weight": draw.normal(12, 4), "num_heads": 2}
        check_memory(adapter, arguments, "weight")


@ours
@task("rope_conversion")
def test_conversion_keeps_the_dtype(adapters, draw):
    """Rows are moved, not computed: half precision and float64 stay what they are, bit for bit."""
    for adapter in (adapters.run_adjacent_to_half_split, adapters.run_half_split_to_adjacent):
        weight = draw.normal(12, 4).double() + 1e-9
        moved = adapter(weight=weight, num_heads=2)
        check(getattr(moved, "dtype", None) == torch.float64, "float64 in gives another dtype out")
        rows = moved.flatten().sort().values
        check_close(rows, weight.flatten().sort().values, "the numbers are not the same", limit=0.0)
        check_dtype_kept(adapter, {"weight": weight, "num_heads": 2}, "weight")


@ours
@task("rope_conversion")
def test_rows_that_are_no_pairs_are_refused(adapters, draw):
    """Ten rows are no four heads, and nine rows no three heads of pairs."""
    for adapter in (adapters.run_adjacent_to_half_split, adapters.run_half_split_to_adjacent):
        adapter(weight=draw.normal(12, 2), num_heads=2)
        for rows, heads in ((10, 4), (9, 3)):
            why = f"{rows} rows don't divide into {heads} heads of pairs"
            adapter.error(why, weight=draw.normal(rows, 2), num_heads=heads)
