"""The figures of §4 of the handout, the tokenizer."""

from dataclasses import dataclass

import regex
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from labs.drawing import BLUE, GOLD, GREEN, GREY, INK, RED, TINTS

# The alternatives of GPT-2's pattern, under the names that the figure uses.
ALTERNATIVES = {
    "contraction": r"'(?:[sdmt]|ll|ve|re)",
    "letters": r" ?\p{L}+",
    "digits": r" ?\p{N}+",
    "other signs": r" ?[^\s\p{L}\p{N}]+",
    "white space": r"\s+(?!\S)|\s+",
}
COLOURS = {
    "contraction": RED,
    "letters": BLUE,
    "digits": GREEN,
    "other signs": GOLD,
    "white space": GREY,
}
SENTENCE = "She can't wait;  it's 24 °C…\n\nOK"
VISIBLE = str.maketrans({" ": "␣", "\n": "⏎"})


def pretokens() -> Figure:
    """Split a text into pre-tokens; colours show which alternative of the pattern matched each."""
    pattern = "|".join(f"(?P<a{i}>{text})" for i, text in enumerate(ALTERNATIVES.values()))
    names = list(ALTERNATIVES)
    tints = TINTS | {GREY: "#e4e7eb"}
    figure = Figure(figsize=(7.2, 1.25), layout="constrained")
    axes = figure.subplots()
    left = 0.0
    for match in regex.finditer(pattern, SENTENCE):
        colour = COLOURS[names[int((match.lastgroup or "a0")[1:])]]
        width = 0.5 * len(match.group()) + 0.3
        _box(axes, left, 0, width, 1, tints[colour], colour)
        for i, sign in enumerate(match.group().translate(VISIBLE)):
            faint = "#7b8794" if sign in "␣⏎" else INK
            x = left + 0.15 + 0.5 * (i + 0.5)
            axes.text(
                x, 0.48, sign, family="DejaVu Sans Mono", ha="center", va="center", color=faint
            )
        left += width + 0.2
    for i, (name, colour) in enumerate(COLOURS.items()):
        x = left * (0.02 + 0.2 * i)
        _box(axes, x, -1.25, 0.55, 0.55, tints[colour], colour)
        axes.text(x + 0.8, -1.0, name, va="center", fontsize=8)
    axes.set(xlim=(-0.1, left), ylim=(-1.4, 1.1), aspect="equal")
    axes.set_axis_off()
    return figure


@dataclass(frozen=True)
class Node:
    """A token in a tree of merges: a single byte, or two tokens and the rank of their merge."""

    text: str
    rank: int | None = None
    children: tuple["Node", ...] = ()


def merges() -> Figure:
    """Draw how the merges of the worked example build the tokens of three words."""
    one, two, three = Node("on", 0, _leaves("on")), _leaves("t"), _leaves("e")
    tone = Node("tone", 2, (Node("ton", 1, (*two, one)), *three))
    stone = Node("stone", 4, (*_leaves("s"), tone))
    nought = Node("not", 5, (Node("no", 3, _leaves("no")), *_leaves("t")))
    figure = Figure(figsize=(7.2, 3.1), layout="constrained")
    panels = figure.subplots(1, 3, width_ratios=[5.4, 3.6, 3.6])
    for axes, roots, title in zip(
        panels,
        ((stone,), (nought,), (*_leaves("n"), one)),
        ("stone → 1 token", "not → 1 token", "non → 2 tokens"),
        strict=True,
    ):
        left = 0.0
        for root in roots:
            _tree(axes, root, left)
            left += len(root.text)
        axes.set_title(title)
        axes.set(xlim=(-0.3, left + 0.3), ylim=(-0.6, 5.0))
        axes.set_axis_off()
    _too_late(panels[2])
    return figure


def _leaves(text: str) -> tuple[Node, ...]:
    return tuple(Node(letter) for letter in text)


def _tree(axes: Axes, node: Node, left: float) -> tuple[float, float]:
    """Draw a token above its children; return the centre of its box."""
    if not node.children:
        _token(axes, left + 0.5, 0, node.text, GREY)
        return left + 0.5, 0
    ends, child_left = [], left
    for child in node.children:
        ends.append(_tree(axes, child, child_left))
        child_left += len(child.text)
    centre, height = left + len(node.text) / 2, max(end[1] for end in ends) + 1.1
    for x, y in ends:
        axes.plot([x, centre], [y, height], color=GREY, linewidth=1.1, zorder=0)
    _token(axes, centre, height, node.text, BLUE)
    _badge(axes, centre, height, node)
    return centre, height


def _too_late(axes: Axes) -> None:
    """Show a merge that doesn't happen: an earlier merge has already used its second letter."""
    ghost = Node("no", 3)
    for x in (0.5, 1.5):
        axes.plot([x, 1.0], [0, 2.3], color=GREY, linewidth=1, linestyle=(0, (2, 2)), zorder=0)
    box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": GREY, "linestyle": "--"}
    axes.text(1.0, 2.3, "no", family="DejaVu Sans Mono", ha="center", va="center", bbox=box)
    _badge(axes, 1.0, 2.3, ghost)
    axes.text(1.0, 3.0, "too late:\nthe o is taken", ha="center", fontsize=8)


def _badge(axes: Axes, centre: float, height: float, node: Node) -> None:
    """Draw the rank of a merge at the corner of its token."""
    axes.text(
        centre - 0.0675 * len(node.text) - 0.09,
        height + 0.22,
        f"{node.rank}",
        fontsize=6.5,
        fontweight="bold",
        color="white",
        ha="center",
        va="center",
        bbox={"boxstyle": "circle,pad=0.22", "facecolor": RED, "edgecolor": "white"},
        zorder=4,
    )


def _token(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    tint = TINTS.get(colour, "#e4e7eb")
    box = {"boxstyle": "round,pad=0.35", "facecolor": tint, "edgecolor": colour, "linewidth": 0.8}
    axes.text(x, y, text, family="DejaVu Sans Mono", ha="center", va="center", bbox=box)


def _box(
    axes: Axes, left: float, bottom: float, width: float, height: float, tint: str, edge: str
) -> None:
    shape = "round,pad=0,rounding_size=0.15"
    axes.add_patch(
        FancyBboxPatch(
            (left, bottom), width, height, shape, facecolor=tint, edgecolor=edge, linewidth=0.8
        )
    )
