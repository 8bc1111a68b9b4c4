"""Draw two ways to encode positions: sinusoidal vectors that are added, and rotary angles.

    python -m labs.positions

The left picture shows the sinusoidal vectors, one row for each position, with the fast features
first. The middle picture shows the angles by which RoPE turns each pair of a query; they are
measured on your own rotation of (1, 0). The right picture shows the similarity of the sinusoidal
vectors of two positions. It depends on their distance, but only RoPE makes the attention score
itself depend on the distance.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from labs.drawing import PAPER_TO_BLUE, RED_TO_BLUE, write
from labs.program import parser, run, say


def sinusoidal_table(positions: int, d_model: int) -> Tensor:
    """Return the vector that is added to a token at each position, `(positions, d_model)`."""
    from cs336_basics.sinusoidal import SinusoidalPositions

    nothing = torch.zeros(positions, d_model)
    return SinusoidalPositions(d_model, positions)(nothing, torch.arange(positions))


def rotary_angles(positions: int, d_k: int) -> Tensor:
    """Return the angle of each pair at each position, in full turns, `(positions, d_k/2)`."""
    from cs336_basics.rope import RotaryEmbedding

    ones = torch.tensor([1.0, 0.0]).repeat(positions, d_k // 2)
    rotated = RotaryEmbedding(10_000.0, d_k, positions)(ones, torch.arange(positions))
    cos, sin = rotated.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.atan2(sin, cos) / (2 * torch.pi) % 1


def lab(chosen: argparse.Namespace) -> None:
    """Print some rows of both tables, and draw all rows."""
    table = sinusoidal_table(chosen.positions, chosen.features)
    turns = rotary_angles(chosen.positions, chosen.features)
    shown = [0, 1, 2, 10, chosen.positions - 1]
    say("sinusoidal: the first and the last four features")
    for position in shown:
        values = [*table[position, :4].tolist(), *table[position, -4:].tolist()]
        say(f"  position {position:<5}" + "".join(f"{value:z8.3f}" for value in values))
    say("\nrotary: the angles of the first four and the last two pairs, in degrees from 0 to 360")
    for position in shown:
        values = (360 * torch.cat([turns[position, :4], turns[position, -2:]])).tolist()
        say(f"  position {position:<5}" + "".join(f"{value:8.2f}" for value in values))
    file = chosen.out / "positions.svg"
    write(lambda: _picture(table, turns), file)
    say(f"\npicture: {file}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, and run the lab."""
    options = parser(__doc__ or "")
    options.add_argument(
        "--positions", type=int, default=96, metavar="N", help="number of positions (default: 96)"
    )
    options.add_argument(
        "--features",
        type=int,
        default=64,
        metavar="N",
        help="features of a vector, an even number (default: 64)",
    )
    run(lab, options, arguments)


def _picture(table: Tensor, turns: Tensor) -> Figure:
    positions, features = table.shape
    alike = table @ table.T / (features / 2)
    panels = (
        ("sinusoidal vectors", "feature", table, RED_TO_BLUE, (-1, 1), "value that is added"),
        ("rotary angles", "pair", turns, "twilight", (0, 1), "angle in full turns"),
        ("similarity of two vectors", "position", alike, PAPER_TO_BLUE, (0, 1), "1: equal"),
    )
    figure = Figure(figsize=(7.2, 3.5), layout="constrained")
    for axes, (title, name, values, colours, ends, scale) in zip(
        figure.subplots(1, 3, sharey=True), panels, strict=True
    ):
        image = axes.imshow(
            values.numpy(),
            cmap=colours,
            vmin=ends[0],
            vmax=ends[1],
            aspect="auto",
            interpolation="nearest",
        )
        axes.set(title=title, xlabel=name)
        axes.spines[:].set_visible(False)
        bar = figure.colorbar(image, ax=axes, location="bottom", ticks=ends, aspect=30, pad=0.02)
        bar.set_label(scale, fontsize=7.5, labelpad=-6)
        bar.outline.set_visible(False)
    figure.axes[0].set_ylabel("position")
    figure.axes[0].set_yticks([*range(0, positions, 16)])
    return figure


if __name__ == "__main__":
    main()
