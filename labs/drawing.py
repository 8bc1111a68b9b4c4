"""Drawing: colours, style and helpers that the pictures of labs and handout share."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Colour-blind readers can tell Okabe and Ito's blue, vermilion and green apart.
BLUE, RED, GREEN, GOLD, INK, GREY = "#0072b2", "#d55e00", "#009e73", "#e69f00", "#1f2933", "#9aa5b1"
TINTS = {BLUE: "#cfe5f3", RED: "#fadfcc", GREEN: "#ccece3", GOLD: "#fbecc8"}
PAPER_TO_BLUE = LinearSegmentedColormap.from_list("paper_to_blue", ["#f1f7fb", "#7fb8d9", BLUE])
RED_TO_BLUE = LinearSegmentedColormap.from_list(
    "red_to_blue", [RED, "#f0b48f", "#fbfaf8", "#7fb8d9", BLUE]
)

STYLE: dict[str, object] = {
    "svg.hashsalt": "transformer-from-scratch",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "mathtext.fontset": "dejavusans",
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "figure.facecolor": "white",
}


def write(draw: Callable[[], Figure], file: Path) -> None:
    """Draw a figure in our style, and save it as SVG; the same figure gives the same bytes."""
    # The reset keeps a person's own matplotlib settings out of the figures.
    with style.context(STYLE, after_reset=True):
        stamp = {"Date": None, "Creator": None}
        draw().savefig(file, metadata=stamp, bbox_inches="tight", pad_inches=0.1)


def cell(
    axes: Axes,
    left: float,
    top: float,
    text: str,
    shade: object,
    colour: str = INK,
    size: float = 9,
) -> None:
    """Draw a square with a text at its centre."""
    axes.add_patch(Rectangle((left, top), 1, 1, facecolor=shade, edgecolor="white", linewidth=1.5))
    middle = left + 0.5, top + 0.53
    axes.text(*middle, text, ha="center", va="center", color=colour, fontsize=size)


def frame(axes: Axes, width: float, height: float, left: float, bottom: float) -> None:
    """Set the limits of a table of square cells whose top left corner is (0, 0).

    `left` and `bottom` are margins, in cells.
    """
    axes.set(xlim=(-left, width + 0.05), ylim=(height + bottom, -0.45), aspect="equal")
    axes.set_axis_off()


def softmax(scores: Array) -> Array:
    """Return the softmax of the scores along the last axis."""
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights: Array = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return weights
