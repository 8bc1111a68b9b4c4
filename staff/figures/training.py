"""The figures of §3 of the handout, training and decoding."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labs.drawing import BLUE, GOLD, GREEN, GREY, INK, RED, TINTS, Array, softmax

STEEPNESS = np.array([1.0, 100.0])
START = np.array([-4.0, 2.0])
STEPS = 80

NEXT_WORDS = ("mat", "sofa", "floor", "bed", "roof", "moon", "idea", "of")
NEXT_SCORES = np.array([3.0, 2.4, 2.1, 1.6, 0.9, 0.1, -0.8, -1.6])


def learning_rate() -> Figure:
    """Draw the learning rate in its three phases, with a dot for each iteration of the example."""
    warmup, cycle, last, top, bottom = 4, 12, 16, 1.0, 0.1

    def rate(it: Array) -> Array:
        turned = np.clip((it - warmup) / (cycle - warmup), 0, 1) * np.pi
        return np.where(
            it < warmup, top * it / warmup, bottom + (1 + np.cos(turned)) / 2 * (top - bottom)
        )

    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    axes = figure.subplots()
    for left, right, colour, name in (
        (0, warmup, GOLD, "warm-up"),
        (warmup, cycle, BLUE, "half a cosine"),
        (cycle, last, GREEN, "minimum"),
    ):
        axes.axvspan(left, right, color=TINTS[colour], alpha=0.55, linewidth=0)
        axes.text((left + right) / 2, 1.1, name, ha="center", va="center")
    fine = np.linspace(0, last, 641)
    axes.plot(fine, rate(fine), color=BLUE)
    whole = np.arange(last + 1, dtype=np.float64)
    axes.plot(whole, rate(whole), "o", color=BLUE, markersize=4.5, clip_on=False)
    axes.plot([0, 8, 8], [0.55, 0.55, 0], color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.text(8.25, 0.6, "half-way: the mean of max and min", fontsize=8)
    axes.set(xlim=(0, last), ylim=(0, 1.2), xlabel="iteration", ylabel="learning rate")
    ticks = {0: "0", 4: "4\n$T_w$", 8: "8", 12: "12\n$T_c$", 16: "16"}
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_yticks([0, bottom, 0.55, top], ["0", "min", "0.55", "max"])
    return figure


def descent() -> Figure:
    """Draw the paths of gradient descent and AdamW down a narrow valley from the same start."""
    figure = Figure(figsize=(7.2, 2.65), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.25, 1.25, 1])
    walks = (
        (left, RED, "gradient descent", _walk(_descend())),
        (middle, BLUE, "AdamW", _walk(_adam())),
    )
    x, y = np.meshgrid(np.linspace(-4.6, 1.6, 200), np.linspace(-2.5, 2.5, 200))
    height = (STEEPNESS[0] * x**2 + STEEPNESS[1] * y**2) / 2
    for axes, colour, name, points in walks:
        axes.contour(x, y, height, levels=2.0 ** np.arange(-1, 10), colors=GREY, linewidths=0.6)
        axes.plot(*points.T, "o-", color=colour, markersize=2.2, linewidth=0.9)
        axes.plot(*START, "o", color=INK, markersize=4.5)
        axes.plot(0, 0, "+", color=INK, markersize=8)
        axes.set(title=name, xlim=(-4.6, 1.6), ylim=(-2.5, 2.5), xticks=[], yticks=[])
        axes.spines[:].set_visible(True)
        losses = (points**2 * STEEPNESS).sum(1) / 2
        right.plot(losses, color=colour, label=name)
    right.set_yscale("log")
    right.set(title="loss", xlabel="step", xlim=(0, STEPS))
    right.legend(loc="upper right", fontsize=8)
    return figure


def sampling() -> Figure:
    """Draw one distribution at three temperatures, and the tokens that top-p keeps."""
    figure = Figure(figsize=(7.2, 2.8), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, temperature in zip(panels, (0.5, 1.0, 2.0), strict=True):
        weights = softmax(NEXT_SCORES / temperature)
        kept = int(np.searchsorted(weights.cumsum(), 0.9)) + 1
        _bars(axes, weights, kept)
        axes.set_title(f"temperature {temperature:g}")
        axes.text(
            7.6, 0.70, f"top-p 0.9 keeps {kept},\ntogether {weights[:kept].sum():.3f}", ha="right"
        )
    panels[0].set_ylabel("probability")
    return figure


def _bars(axes: Axes, weights: Array, kept: int) -> None:
    ranks = np.arange(len(weights))
    colours = [BLUE if rank < kept else TINTS[BLUE] for rank in ranks]
    axes.bar(ranks, weights, 0.78, color=colours)
    axes.plot([kept - 0.5] * 2, [0, 0.6], color=RED, linewidth=1, linestyle=(0, (4, 3)))
    axes.set(ylim=(0, 0.82), xlim=(-0.6, 7.6))
    axes.set_xticks(ranks, NEXT_WORDS, rotation=50, ha="right", rotation_mode="anchor")
    axes.tick_params(axis="x", length=0)


def _walk(step: Callable[[Array], Array]) -> Array:
    points = [START]
    for _ in range(STEPS):
        points.append(points[-1] - step(STEEPNESS * points[-1]))
    return np.array(points)


def _descend() -> Callable[[Array], Array]:
    # With a rate of 0.02 the steep direction would oscillate for ever; above 0.02 it diverges.
    return lambda gradient: 0.019 * gradient


def _adam() -> Callable[[Array], Array]:
    first, second, count = np.zeros(2), np.zeros(2), 0

    def step(gradient: Array) -> Array:
        nonlocal first, second, count
        count += 1
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        return 0.1 * first / (1 - 0.9**count) / np.sqrt(second / (1 - 0.999**count))

    return step
