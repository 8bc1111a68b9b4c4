"""Draw the residual stream as a diagram, from ids to logits, with all submodules beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch

from labs.drawing import BLUE, GOLD, GREEN, INK, RED, TINTS

_STREAM, _NORM, _LAYER, _RIGHT = 2.2, 4.75, 8.3, 10.1
"""Horizontal positions of the stream, the norms, the layers, and the arrow back to the stream."""
_FIRST, _PITCH = 1.75, 3.6
"""Vertical position of the first block, and distance from one block to the next."""
_MONO = "DejaVu Sans Mono"
_SMALL: dict[str, Any] = {"fontsize": 7, "family": _MONO}


@dataclass(frozen=True)
class Part:
    """A submodule of the model, and the shape of its output."""

    name: str
    kind: str
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Block:
    """A block, and the shapes of the stream before it, between its halves, and after it."""

    name: str
    stream: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    attention_norm: Part
    attention: Part
    feed_forward_norm: Part
    feed_forward: Part


def stream_diagram(ends: tuple[Part, Part, Part, Part], blocks: Sequence[Block]) -> Figure:
    """Draw ids, embedding, blocks, final norm and head, from top to bottom.

    Args:
        ends: ids, embedding, final norm and head.
        blocks: the blocks between embedding and final norm.
    """
    end = _FIRST + _PITCH * len(blocks)
    width, height = 10.4, end + 2.7
    figure = Figure(figsize=(7.2, 7.2 * height / width), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(0.3, 0.3 + width), ylim=(height - 0.2, -0.2), aspect="equal")
    axes.set_axis_off()
    ids, embedding, norm, head = ends
    _caption(axes, 0, ids)
    _arrow(axes, (_STREAM, 0.18), (_STREAM, 0.6))
    _box(axes, _STREAM, 0.95, embedding, BLUE)
    axes.plot([_STREAM] * 2, [1.3, end], color=BLUE, linewidth=6, zorder=1, solid_capstyle="butt")
    for number, block in enumerate(blocks):
        _block(axes, _FIRST + _PITCH * number, block)
    _shape(axes, end - 0.22, blocks[-1].stream[2])
    _box(axes, _STREAM, end + 0.35, norm, GOLD)
    _arrow(axes, (_STREAM, end + 0.7), (_STREAM, end + 1.12))
    _box(axes, _STREAM, end + 1.47, head, BLUE)
    _arrow(axes, (_STREAM, end + 1.82), (_STREAM, end + 2.2))
    _caption(axes, end + 2.38, Part("logits", "", head.shape))
    return figure


def _caption(axes: Axes, y: float, part: Part) -> None:
    text = f"{part.name}  {part.shape}"
    axes.text(_STREAM, y, text, ha="center", va="center", family=_MONO, fontsize=8)


def _block(axes: Axes, top: float, block: Block) -> None:
    """Draw a block as a panel, with the stream's shapes above it and between its halves."""
    panel = FancyBboxPatch(
        (0.4, top),
        10.2,
        _PITCH - 0.45,
        boxstyle="round,pad=0,rounding_size=0.15",
        facecolor="#f5f7fa",
        edgecolor="#e4e7eb",
        zorder=0,
    )
    axes.add_patch(panel)
    axes.text(0.55, top + 0.12, block.name, va="top", fontsize=8, color="#616e7c")
    _shape(axes, top - 0.22, block.stream[0])
    _half(axes, top + 0.55, block.attention_norm, block.attention, RED)
    _shape(axes, top + 1.7, block.stream[1])
    _half(axes, top + 2.05, block.feed_forward_norm, block.feed_forward, GREEN)


def _half(axes: Axes, branch: float, norm: Part, layer: Part, colour: str) -> None:
    """Draw a norm and a layer that read from the stream, and the arrow that adds their output."""
    back, middle = branch + 0.8, (_NORM + _LAYER - 0.35) / 2
    _arrow(axes, (_STREAM + 0.06, branch), (_NORM - 0.95, branch))
    _box(axes, _NORM, branch, norm, GOLD, width=1.9)
    _arrow(axes, (_NORM + 0.95, branch), (_LAYER - 1.3, branch))
    _box(axes, _LAYER, branch, layer, colour, width=2.6)
    axes.plot([_LAYER + 1.3, _RIGHT, _RIGHT], [branch, branch, back], color=INK, linewidth=1)
    _arrow(axes, (_RIGHT, back), (_STREAM + 0.17, back))
    for y, part in ((branch, norm), (back, layer)):
        axes.text(middle, y - 0.06, f"{part.shape}", ha="center", va="bottom", **_SMALL)
    axes.add_patch(Circle((_STREAM, back), 0.17, facecolor="white", edgecolor=BLUE, zorder=4))
    axes.text(_STREAM, back, "+", ha="center", va="center_baseline", fontsize=11, zorder=5)


def _shape(axes: Axes, y: float, shape: tuple[int, ...]) -> None:
    """Write the stream's shape on the left of the stream."""
    axes.text(_STREAM - 0.2, y, f"{shape}", ha="right", va="center", **_SMALL)


def _box(axes: Axes, x: float, y: float, part: Part, colour: str, width: float = 2.6) -> None:
    box = FancyBboxPatch(
        (x - width / 2, y - 0.35),
        width,
        0.7,
        boxstyle="round,pad=0,rounding_size=0.12",
        facecolor=TINTS[colour],
        edgecolor=colour,
        zorder=2,
    )
    axes.add_patch(box)
    axes.text(x, y - 0.1, part.name, ha="center", va="center", fontweight="bold", zorder=3)
    axes.text(x, y + 0.17, part.kind, ha="center", va="center", fontsize=7, zorder=3)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    shape = {"arrowstyle": "-|>", "color": INK, "linewidth": 1, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, xytext=start, arrowprops=shape, zorder=2)
