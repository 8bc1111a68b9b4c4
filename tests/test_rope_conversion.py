"""Conversion of weights between the two layouts of RoPE."""

import torch

from tests.harness import ours, task
from tests.harness.compare import check, check_close
from tests.harness.properties import check_dtype_kept, check_memory
from tests.harness.rotations import rotated_halves, rotated_neighbours


@ours
@task("rope_conversion")
def test_rows_to_half_split(adapters, cases):
    """Within each head, rows 2j and 2j + 1 become rows j and j + d_head/2."""
    cases.check(adapters.run_adjacent_to_half_split)


@ours
@task("rope_conversion")
def test_rows_to_adjacent(adapters, cases):
    """Within each head, rows j and j + d_head/2 become rows 2j and 2j + 1."""
    cases.check(adapters.run_half_split_to_adjacent)


@ours
@task("rope_conversion")
def test_one_undoes_the_other(adapters, draw):
    """Each conversion undoes the other: every row returns to its index."""
    weight = {"weight": draw.normal(24, 5), "num_heads": 3}
    there, back = adapters.run_adjacent_to_half_split, adapters.run_half_split_to_adjacent
    for first, second in ((there, back), (back, there)):
        again = second(weight=first(**weight), num_heads=3)
        why = f"{second.name} does not undo {first.name}"
        check_close(again, weight["weight"], why, limit=0.0)


@ours
@task("rope_conversion")
def test_converted_weights_give_the_same_scores(adapters, draw):
    """Converted weights give, with the other layout of RoPE, the same scores as before."""
    x, positions = draw.normal(5, 7).double(), torch.arange(5)
    weights = {name: draw.normal(rows, 7).double() for name, rows in (("q", 16), ("k", 8))}
    heads = {"q": 2, "k": 1}  # queries and keys have different numbers of heads

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
        check(kept, f"{convert.name} changes the shape of `weight`")
        why = f"after {convert.name}, the scores with the other layout differ from those before"
        check_close(scores(converted, after), scores(weights, before), why)


@ours
@task("rope_conversion")
def test_conversion_memory(adapters, draw):
    """The result is the same for non-contiguous weights and in a second call; no input changes."""
    for adapter in (adapters.run_adjacent_to_half_split, adapters.run_half_split_to_adjacent):
        arguments = {"weight": draw.normal(12, 4), "num_heads": 2}
        check_memory(adapter, arguments, "weight")


@ours
@task("rope_conversion")
def test_conversion_keeps_the_dtype(adapters, draw):
    """Rows are only moved: their values and their dtype do not change, in any precision."""
    for adapter in (adapters.run_adjacent_to_half_split, adapters.run_half_split_to_adjacent):
        weight = draw.normal(12, 4).double() + 1e-9
        moved = adapter(weight=weight, num_heads=2)
        check(
            getattr(moved, "dtype", None) == torch.float64, "a float64 weight gives another dtype"
        )
        rows = moved.flatten().sort().values
        why = "the values in the result are not those of `weight`"
        check_close(rows, weight.flatten().sort().values, why, limit=0.0)
        check_dtype_kept(adapter, {"weight": weight, "num_heads": 2}, "weight")


@ours
@task("rope_conversion")
def test_rows_that_are_no_pairs_are_refused(adapters, draw):
    """A weight whose rows are not num_heads heads of an even size is an error."""
    for adapter in (adapters.run_adjacent_to_half_split, adapters.run_half_split_to_adjacent):
        adapter(weight=draw.normal(12, 2), num_heads=2)
        for rows, heads in ((10, 4), (9, 3)):
            why = f"{rows} rows are not {heads} heads of an even size"
            adapter.error(why, weight=draw.normal(rows, 2), num_heads=heads)
