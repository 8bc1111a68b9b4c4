"""The figure of §5 of the handout, going further."""

from matplotlib.figure import Figure

from labs.drawing import BLUE, GOLD, GREEN, RED, TINTS, cell, frame

COLOURS = (BLUE, GREEN, GOLD, RED)


def layouts() -> Figure:
    """Show the pairs of eight features in both layouts of RoPE, and where each feature moves."""
    width, gap = 8, 2.2
    figure = Figure(figsize=(7.2, 2.7), layout="constrained")
    axes = figure.subplots()
    for feature in range(width):
        pair, member = divmod(feature, 2)
        goes_to = pair + member * width // 2
        colour = COLOURS[pair]
        for column, top in ((feature, 0.0), (goes_to, gap)):
            cell(axes, column, top, f"$x_{feature}$", TINTS[colour])
        ends, style = [feature + 0.5, goes_to + 0.5], "--" if member else "-"
        axes.plot(ends, [1.06, gap - 0.06], style, color=colour, linewidth=1.4)
    axes.plot([width / 2, width / 2], [gap - 0.1, gap + 1.1], color="black", linewidth=1)
    for text, top in (
        ("adjacent:\nneighbours are a pair", 0.0),
        ("half-split:\none of each half", gap),
    ):
        axes.text(-0.3, top + 0.5, text, ha="right", va="center")
    frame(axes, width=width, height=gap + 1, left=3.4, bottom=0.1)
    return figure
