"""Compare BatchNorm, LayerNorm and RMSNorm on the handout's example and on random numbers.

    python -m labs.three_norms

The norms differ in which numbers share their statistics, and in whether the mean is subtracted.
The first table is the handout's worked example. The second table shows which differences between
tokens, and between features, are left in random data. The third table shows what one token's
output depends on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from labs.drawing import BLUE, GOLD, GREEN, INK, RED, RED_TO_BLUE, TINTS, cell, frame, write
from labs.program import parser, run, say

Norm = Callable[[Tensor], Tensor]

EXAMPLE = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def random_tokens(tokens: int, features: int, seed: int) -> Tensor:
    """Return random tokens of different sizes and means, whose features differ in mean too."""
    generator = torch.Generator().manual_seed(seed)
    means = torch.randn(features, generator=generator)
    sizes = torch.logspace(-0.6, 0.4, tokens)[torch.randperm(tokens, generator=generator)]
    shifts = torch.randn(tokens, 1, generator=generator)
    noise = 0.7 * torch.randn(tokens, features, generator=generator)
    return sizes[:, None] * (means + shifts + noise)


def norms(features: int) -> dict[str, Norm]:
    """Return the three norms for `features` features, with BatchNorm in training mode."""
    from cs336_basics.batch_norm import BatchNorm
    from cs336_basics.layer_norm import LayerNorm
    from cs336_basics.rmsnorm import RMSNorm

    modules = {
        "BatchNorm": BatchNorm(features),
        "LayerNorm": LayerNorm(features),
        "RMSNorm": RMSNorm(features),
    }
    return {name: torch.no_grad()(module.train()) for name, module in modules.items()}


def lab(chosen: argparse.Namespace) -> None:
    """Print the three tables, and draw the first two."""
    data = random_tokens(chosen.tokens, chosen.features, chosen.seed)
    examples = {"input": EXAMPLE} | {name: norm(EXAMPLE) for name, norm in norms(3).items()}
    wide = norms(chosen.features)
    results = {"input": data} | {name: norm(data) for name, norm in wide.items()}
    say(f"{'worked example':<16}{'token 0':^24}{'token 1':^24}")
    for name, y in examples.items():
        say(f"  {name:<14}" + "".join(f"{value:z8.3f}" for value in y.flatten().tolist()))
    say()
    say(
        f"{'random data':<16}{'mean of a token':^20}{'rms of a token':^20}{'mean of a feature':^20}"
    )
    for name, y in results.items():
        shown = (y.mean(1), y.square().mean(1).sqrt(), y.mean(0))
        spans = (f"{values.min():z.2f} to {values.max():z.2f}" for values in shown)
        say(f"  {name:<14}" + "".join(f"{span:^20}" for span in spans))
    say()
    say(f"{'change of token 0 if':<34}" + "".join(f"{name:>12}" for name in wide))
    for name, other in _changes(data, chosen.seed).items():
        moves = ((norm(other) - norm(data))[0].abs().max().item() for norm in wide.values())
        say(f"  {name:<32}" + "".join(f"{move:12.3f}" for move in moves))
    file = chosen.out / "three-norms.svg"
    write(lambda: _picture(examples, results), file)
    say(f"\npicture: {file}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, and run the lab."""
    options = parser(__doc__ or "")
    options.add_argument(
        "--tokens", type=int, default=20, help="tokens of random data (default: 20)"
    )
    options.add_argument(
        "--features", type=int, default=14, help="features of random data (default: 14)"
    )
    run(lab, options, arguments)


def _changes(data: Tensor, seed: int) -> dict[str, Tensor]:
    tokens, features = data.shape
    first = torch.zeros(tokens, 1)
    first[0] = 1
    others = random_tokens(tokens, features, seed + 1)
    return {
        "its features are multiplied by 10": data * (1 + 9 * first),
        "5 is added to its features": data + 5 * first,
        "all other tokens are replaced": torch.where(first.bool(), data, others),
    }


def _picture(examples: dict[str, Tensor], results: dict[str, Tensor]) -> Figure:
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    tables, maps = figure.subplots(2, 4, height_ratios=[1, 2.1])
    for axes, (name, y) in zip(tables, examples.items(), strict=True):
        _table(axes, name, y)
    for axes, (name, y) in zip(maps, results.items(), strict=True):
        _map(axes, y.numpy(), labelled=name == "input")
    return figure


def _table(axes: Axes, name: str, y: Tensor) -> None:
    colours = [BLUE, GREEN, GOLD]
    for (row, column), value in np.ndenumerate(y.numpy()):
        shade = "#eef1f4" if name == "input" else TINTS[colours[column if name[0] == "B" else row]]
        text = f"{value:.0f}" if name == "input" else f"{value:.3f}".replace("-", "−")
        cell(axes, column, row, text, shade, size=6.5 if len(text) > 1 else 9)
    axes.text(1.5, -0.25, name, ha="center", fontweight="bold", fontsize=10)
    frame(axes, width=3, height=2, left=0.05, bottom=0.05)


def _map(axes: Axes, y: np.ndarray[tuple[int, ...], np.dtype[np.float32]], labelled: bool) -> None:
    """Draw values as colours, each token's mean and rms beside it, each feature's mean below it."""
    tokens, features = y.shape
    axes.imshow(y, cmap=RED_TO_BLUE, vmin=-3, vmax=3, aspect="auto", interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    mean, rms = y.mean(1), np.sqrt((y**2).mean(1))
    for left, values, colour, name in ((1.02, mean, RED, "mean"), (1.27, rms, BLUE, "rms")):
        beside = axes.inset_axes((left, 0, 0.17, 1), sharey=axes)
        beside.barh(range(tokens), values, height=0.65, color=colour)
        beside.axvline(0, color=INK, linewidth=0.6)
        beside.set(xlim=(-2.2, 2.2) if name == "mean" else (0, 3))
        beside.set_xlabel(name, fontsize=6)
        _bare(beside)
    below = axes.inset_axes((0, -0.23, 1, 0.2), sharex=axes)
    below.bar(range(features), y.mean(0), width=0.65, color=RED)
    below.axhline(0, color=INK, linewidth=0.6)
    below.set(ylim=(-2.6, 2.6))
    _bare(below)
    if labelled:
        axes.set_ylabel("tokens")
        below.set_xlabel("mean of each feature", fontsize=7.5)


def _bare(axes: Axes) -> None:
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelleft=False, labelbottom=False)


if __name__ == "__main__":
    main()
