"""The figures of §2 of the handout, the model."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Wedge

from labs.drawing import (
    BLUE,
    GOLD,
    GREEN,
    GREY,
    INK,
    PAPER_TO_BLUE,
    RED,
    TINTS,
    Array,
    cell,
    frame,
    softmax,
)

WORDS = ("the", "cat", "sat", "on", "the", "mat")
# The scores are chosen by hand to suit the sentence. The mask hides those above the diagonal.
SCORES = np.array(
    [
        [0.5, 0.0, 0.0, 0.0, 0.0, 0.0],
        [1.2, 0.4, 0.0, 0.0, 0.0, 0.0],
        [0.1, 2.0, 0.6, 0.0, 0.0, 0.0],
        [0.0, 0.7, 1.9, 0.5, 0.0, 0.0],
        [0.3, 0.2, 0.4, 1.6, 0.5, 0.0],
        [0.2, 1.1, 1.4, 1.5, 0.9, 0.3],
    ]
)


def normalisations() -> Figure:
    """Show over which numbers of `[[1, 2, 3], [4, 5, 6]]` each normalisation averages."""
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    centred = {axis: x - x.mean(axis, keepdims=True) for axis in (0, 1)}
    shifted, plain = r"$(x-\mu)\,/\,\sigma$", r"$x\,/\,\mathrm{rms}$"
    panels = [
        ("BatchNorm", shifted, "feature", centred[0] / x.std(0), 1),
        ("LayerNorm", shifted, "token", centred[1] / x.std(1, keepdims=True), 0),
        ("RMSNorm", plain, "token", x / np.sqrt((x**2).mean(1, keepdims=True)), 0),
    ]
    figure = Figure(figsize=(7.2, 2.55), layout="constrained")
    rows = figure.subplots(1, 3)
    for axes, (name, formula, scope, y, group_axis) in zip(rows, panels, strict=True):
        for index, value in np.ndenumerate(y):
            colour = [BLUE, GREEN, GOLD][index[group_axis]]
            text = f"{value:.3f}".replace("-", "−")
            cell(axes, index[1], index[0], text, TINTS[colour])
            axes.text(index[1] + 0.07, index[0] + 0.19, f"{x[index]:.0f}", fontsize=6.5)
        axes.text(1.5, -0.42, name, ha="center", fontweight="bold", fontsize=10)
        axes.text(1.5, -0.14, f"{formula} over one {scope}", ha="center", fontsize=7.5)
        axes.text(1.5, 2.24, "features", ha="center", fontsize=7.5)
        axes.text(-0.14, 1, "tokens", rotation=90, ha="center", va="center", fontsize=7.5)
        frame(axes, width=3, height=2, left=0.32, bottom=0.4)
    return figure


def activations() -> Figure:
    """Draw SiLU and ReLU, and their slopes."""
    x = np.linspace(-6, 4, 401)
    sigmoid = 1 / (1 + np.exp(-x))
    lowest = -1.278465
    figure = Figure(figsize=(7.2, 2.7), layout="constrained")
    value, slope = figure.subplots(1, 2)
    value.plot(x, np.maximum(x, 0), color=GREY, label="ReLU")
    value.plot(x, x * sigmoid, color=BLUE, label="SiLU")
    value.plot([lowest], [lowest / (1 + np.exp(-lowest))], "o", color=RED, markersize=5)
    value.annotate(
        "lowest point\n(−1.278, −0.278)",
        (lowest, -0.278),
        xytext=(-3.4, 1.1),
        arrowprops={"arrowstyle": "-", "color": GREY},
        ha="center",
    )
    value.set(title="value", xlabel="$x$", xlim=(-6, 4), ylim=(-0.8, 4))
    slope.plot(x, np.heaviside(x, np.nan), color=GREY, label="ReLU")
    slope.plot(x, sigmoid * (1 + x * (1 - sigmoid)), color=BLUE, label="SiLU")
    slope.set(title="slope", xlabel="$x$", xlim=(-6, 4), ylim=(-0.25, 1.25), yticks=[0, 0.5, 1])
    for axes in (value, slope):
        axes.axhline(0, color=GREY, linewidth=0.6, zorder=0)
        axes.axvline(0, color=GREY, linewidth=0.6, zorder=0)
        axes.legend(loc="upper left")
    return figure


def rotations() -> Figure:
    """Draw the four pairs of an 8-feature query as clocks; each turns ten times more slowly."""
    figure = Figure(figsize=(7.2, 4.5), layout="constrained")
    positions = (1, 10, 100)
    for dials, position in zip(figure.subplots(3, 4), positions, strict=True):
        for pair, axes in enumerate(dials):
            frequency = 10000 ** (-2 * pair / 8)
            _dial(axes, position * frequency)
            if position == positions[0]:
                axes.set_title(f"pair {pair}\n$\\theta_{pair}={frequency:g}$")
        dials[0].text(-1.75, 0, f"$m={position}$", ha="right", va="center", fontsize=10)
    return figure


def score_scaling() -> Figure:
    """Show that softmax gets peaked when scores grow with the width of the key."""
    # NumPy's legacy generator draws the same numbers in every version.
    random = np.random.RandomState(7)
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    bars, curve = figure.subplots(1, 2, width_ratios=[1.15, 1])
    scores = random.standard_normal((16, 64)) @ random.standard_normal(64)
    ranked, ranks = np.sort(scores)[::-1], np.arange(1, 17)
    bars.bar(ranks - 0.2, softmax(ranked), 0.4, color=RED, label="without scaling")
    bars.bar(ranks + 0.2, softmax(ranked / 8), 0.4, color=BLUE, label=r"divided by $\sqrt{d_k}=8$")
    bars.set(title="one query, 16 keys, $d_k=64$", xlabel="key, by rank", ylabel="weight")
    bars.set(ylim=(0, 1), xticks=[1, 4, 8, 12, 16])
    bars.legend()
    widths = 2 ** np.arange(0, 11)
    for power, height, colour, label in (
        (0.0, 0.68, RED, "without scaling"),
        (0.5, 0.29, BLUE, r"divided by $\sqrt{d_k}$"),
    ):
        largest = [_mean_largest_weight(width, power) for width in widths.tolist()]
        curve.plot(widths, largest, "o-", color=colour, markersize=3.5)
        curve.text(34, height, label, color=colour)
    curve.axhline(1 / 16, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    curve.annotate("all 16 alike", (widths[-1], 1 / 16 + 0.02), ha="right", fontsize=7.5)
    curve.set_xscale("log", base=2)
    curve.set(
        title="average over 20,000 queries", xlabel="$d_k$", ylabel="largest weight", ylim=(0, 1)
    )
    return figure


def causal_attention() -> Figure:
    """Draw the scores of a short sentence, with future keys hidden, and the attention weights."""
    hidden = np.triu(np.ones_like(SCORES, dtype=bool), k=1)
    weights = np.array([softmax(row) for row in np.where(hidden, -np.inf, SCORES)])
    figure = Figure(figsize=(7.2, 3.75), layout="constrained")
    left, right = figure.subplots(1, 2)
    _heat_map(left, SCORES / 2.4, [[f"{score:.1f}" for score in row] for row in SCORES])
    _heat_map(right, weights, [[f"{weight:.2f}" for weight in row] for row in weights])
    for axes, title, blank in (
        (left, "scores + mask", "−∞"),
        (right, "weights: every row sums to 1", "0"),
    ):
        axes.set(title=title, xlabel="key: is looked at", ylabel="query: looks")
        for row, column in zip(*np.nonzero(hidden), strict=True):
            cell(axes, column, row, blank, "#e4e7eb", "#616e7c")
    return figure


def splitting_heads() -> Figure:
    """Split two tokens of six features into three heads: each head gets two columns."""
    tokens, width, heads = 2, 6, 3
    size = width // heads
    figure = Figure(figsize=(7.2, 2.2), layout="constrained")
    axes = figure.subplots()
    colours = [BLUE, GREEN, GOLD]
    for token in range(tokens):
        for feature in range(width):
            head, column = divmod(feature, size)
            label, tint = str(token * width + feature), TINTS[colours[head]]
            cell(axes, feature, token, label, tint)
            cell(axes, 8.2 + head * 3.2 + column, token, label, tint)
    axes.annotate(
        "", (7.75, 1), xytext=(6.4, 1), arrowprops={"arrowstyle": "-|>", "color": INK}, va="center"
    )
    axes.text(3, -0.25, "(seq, d_model) = (2, 6)", ha="center", family="DejaVu Sans Mono")
    axes.text(
        12.4, -0.25, "(heads, seq, d_head) = (3, 2, 2)", ha="center", family="DejaVu Sans Mono"
    )
    for head, colour in enumerate(colours):
        axes.text(9.2 + head * 3.2, 2.42, f"head {head}", ha="center", color=INK, va="center")
        axes.plot([8.25 + head * 3.2, 10.15 + head * 3.2], [2.1, 2.1], color=colour, linewidth=2)
    for token in range(tokens):
        axes.text(-0.2, token + 0.5, f"token {token}", ha="right", va="center")
    frame(axes, width=16.7, height=2, left=1.7, bottom=0.55)
    return figure


def _heat_map(axes: Axes, shades: Array, texts: list[list[str]]) -> None:
    for (row, column), shade in np.ndenumerate(shades):
        text = texts[row][column] if column <= row else ""
        cell(axes, column, row, text, PAPER_TO_BLUE(shade), "white" if shade > 0.7 else INK)
    axes.set(xlim=(-0.05, 6.05), ylim=(6.05, -0.05), aspect="equal")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xticks(np.arange(6) + 0.5, WORDS)
    axes.set_yticks(np.arange(6) + 0.5, WORDS)


def _dial(axes: Axes, angle: float) -> None:
    axes.add_patch(Circle((0, 0), 1, facecolor="#f5f7fa", edgecolor=GREY, linewidth=1))
    degrees = np.degrees(angle)
    axes.add_patch(Wedge((0, 0), 0.45, 0, degrees % 360, facecolor=TINTS[BLUE]))
    axes.plot([0, 1], [0, 0], color=GREY, linewidth=1, linestyle=(0, (3, 2)))
    tip = np.cos(angle), np.sin(angle)
    arrow = {"arrowstyle": "-|>", "color": BLUE, "shrinkA": 0, "shrinkB": 0, "linewidth": 1.8}
    axes.annotate("", tip, xytext=(0, 0), arrowprops=arrow)
    axes.plot([0], [0], "o", color=BLUE, markersize=3)
    turns = f" = {angle / (2 * np.pi):.1f} turns" if degrees > 360 else ""
    axes.text(
        0, -1.32, f"{float(f'{degrees:.3g}'):,g}°{turns}", ha="center", va="center", fontsize=8
    )
    axes.set(xlim=(-1.1, 1.1), ylim=(-1.5, 1.1), aspect="equal")
    axes.set_axis_off()


def _mean_largest_weight(width: int, power: float) -> float:
    random = np.random.RandomState(11)
    # For one query and normal keys, the scores are normal, and the query's length is their
    # standard deviation.
    lengths = np.sqrt(random.chisquare(width, size=(20_000, 1)))
    scores = lengths * random.standard_normal((20_000, 16))
    return float(softmax(scores / width**power).max(-1).mean())
