"""Draws the figures of `handout.md`: `python -m staff.figures.handout`.

Every figure is computed from the formula that it explains. The same library versions write the same
bytes: the files contain no date and no random identifiers, and text is drawn as outlines. The
background is white and opaque, so that a figure looks the same on a light page and on a dark one.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from matplotlib.figure import Figure

from labs.drawing import write
from staff.figures import further, model, tokenizer, training

FOLDER = Path(__file__).parents[2] / "docs" / "figures"

FIGURES: dict[str, Callable[[], Figure]] = {
    "normalisations": model.normalisations,
    "activations": model.activations,
    "rotations": model.rotations,
    "score-scaling": model.score_scaling,
    "causal-attention": model.causal_attention,
    "splitting-heads": model.splitting_heads,
    "descent": training.descent,
    "learning-rate": training.learning_rate,
    "sampling": training.sampling,
    "pretokens": tokenizer.pretokens,
    "merges": tokenizer.merges,
    "layouts": further.layouts,
}


def draw_all(folder: Path = FOLDER) -> Iterator[Path]:
    """Write every figure as SVG to `folder`, and yield the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        path = folder / f"{name}.svg"
        write(draw, path)
        yield path


if __name__ == "__main__":
    sys.stdout.writelines(f"{drawn}\n" for drawn in draw_all())
