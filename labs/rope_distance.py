"""Show that RoPE's score depends only on the distance, and only in the right layout.

    python -m labs.rope_distance

First the lab checks that equal distances give equal scores: the query v1 is at positions 0 and 1,
and the key v2 at 2 and 3. Both pairs are two apart, so both scores must agree in each layout. Then
it takes a head that looks back a few tokens, and shows its score against the distance: with the
layout that its weights are made for, with the other layout, and with the other layout after the
weights are converted. Last it rotates queries in one layout and keys in the other, so that the
score changes with the position.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from labs.drawing import BLUE, GREY, INK, RED, write
from labs.program import parser, run, say

Turn = Callable[[Tensor, int], Tensor]
"""Rotates one vector to a position."""


def layouts(d_k: int, positions: int) -> dict[str, Turn]:
    """Return the two layouts of RoPE, each as a function that rotates a vector."""
    from cs336_basics.rope import RotaryEmbedding
    from cs336_basics.rope_half_split import HalfSplitRotaryEmbedding

    adjacent = RotaryEmbedding(10_000.0, d_k, positions)
    half_split = HalfSplitRotaryEmbedding(10_000.0, d_k)

    def turn_adjacent(x: Tensor, position: int) -> Tensor:
        return adjacent(x[None], torch.tensor([position]))[0]

    def turn_half_split(x: Tensor, position: int) -> Tensor:
        one = x[None, None, None]
        return half_split(one, one, start_position=position)[0][0, 0, 0]

    return {"adjacent": turn_adjacent, "half-split": turn_half_split}


def score(
    q: Tensor, k: Tensor, at: tuple[int, int], turn: Turn, turn_key: Turn | None = None
) -> float:
    """Return the dot product of a query and a key that are rotated to two positions."""
    return (turn(q, at[0]) @ (turn_key or turn)(k, at[1])).item()


def lab(chosen: argparse.Namespace) -> None:
    """Check the distances, compare the scores of both layouts, and draw them."""
    from cs336_basics.rope_conversion import adjacent_to_half_split

    d_k, length, back = chosen.d_k, chosen.length, chosen.back
    turns = layouts(d_k, 2 * length + back)
    adjacent, half_split = turns["adjacent"], turns["half-split"]
    v1, v2 = torch.randn(2, d_k, generator=torch.Generator().manual_seed(chosen.seed))
    say("score of v1 at the first position with v2 at the second, which is two later")
    for name, turn in turns.items():
        first, second = (score(v1, v2, at, turn) for at in ((0, 2), (1, 3)))
        far = abs(first - second)
        say(f"  {name:<12}(0,2): {first:.6f}   (1,3): {second:.6f}   difference {far:.1e}")

    q = torch.tensor([1.0, 0.0]).repeat(d_k // 2)
    q[d_k // 2 :] = 0  # the slow pairs barely turn over a short distance
    q /= q.norm()
    k = adjacent(q, back)  # rotated ahead by `back`, so that the score is highest at that distance
    q_half, k_half = (adjacent_to_half_split(v[:, None], 1)[:, 0] for v in (q, k))
    places = [(length, length - distance) for distance in range(length)]
    curves = {
        "adjacent": [score(q, k, at, adjacent) for at in places],
        "half-split, weights not converted": [score(q, k, at, half_split) for at in places],
        "half-split, weights converted": [score(q_half, k_half, at, half_split) for at in places],
    }
    right = torch.tensor(curves["adjacent"])
    say(f"\na head for adjacent pairs that looks back {back} tokens: distance of its highest score")
    for name, values in curves.items():
        far = (torch.tensor(values) - right).abs().max().item()
        best = max(range(length), key=values.__getitem__)
        say(f"  {name:<34}{best:3} tokens back   off by up to {far:.1e}")
    fixed = [(m + back, m) for m in range(length)]
    mixed = {
        "both rotated in the same layout": [score(q, k, at, adjacent) for at in fixed],
        "query adjacent, key half-split": [score(q, k, at, adjacent, half_split) for at in fixed],
    }
    say(f"\nthe same distance, {back}, at {length} positions: lowest and highest score")
    for name, values in mixed.items():
        say(f"  {name:<34}{min(values):7.3f} to {max(values):6.3f}")
    file = chosen.out / "rope-distance.svg"
    write(lambda: _picture(curves, mixed, back), file)
    say(f"\npicture: {file}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, and run the lab."""
    options = parser(__doc__ or "")
    for name, default, text in (
        ("d_k", 64, "features of a query, an even number"),
        ("length", 96, "number of distances and of positions to compare"),
        ("back", 16, "how many tokens the head looks back"),
    ):
        options.add_argument(
            f"--{name}", type=int, default=default, metavar="N", help=f"{text} (default: {default})"
        )
    run(lab, options, arguments)


def _picture(curves: dict[str, list[float]], mixed: dict[str, list[float]], back: int) -> Figure:
    figure = Figure(figsize=(7.2, 3.1), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[1.35, 1])
    (_, own), (_, other), (_, converted) = curves.items()
    left.plot(own, color=BLUE, label="adjacent pairs, the weights' own layout")
    left.plot(
        range(0, len(converted), 3),
        converted[::3],
        "o",
        color=BLUE,
        markersize=3.5,
        markerfacecolor="white",
        label="half-split, weights converted",
    )
    left.plot(other, color=RED, label="half-split, weights not converted")
    left.axvline(back, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    left.set(title=f"a head that looks back {back} tokens", xlabel="distance in tokens")
    left.set(ylabel="score", ylim=(-0.45, 1.5), yticks=[0, 0.5, 1])
    (_, same), (_, apart) = mixed.items()
    right.plot(same, color=BLUE, label="query and key in the same layout")
    right.plot(apart, color=RED, label="query adjacent, key half-split")
    right.set(title=f"the same distance, {back}, at all positions", xlabel="position of the key")
    for axes in (left, right):
        axes.axhline(0, color=INK, linewidth=0.6, zorder=0)
        axes.legend(loc="upper right", fontsize=7.5)
    return figure


if __name__ == "__main__":
    main()
