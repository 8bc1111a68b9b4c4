"""The numbers on sampling in §3.8 of the handout, computed again without the solution."""

import pytest
import torch

from staff.figures import training as figures
from staff.tests.handout.text import printed


@pytest.mark.parametrize(("temperature", "kept"), [(0.5, 2), (1.0, 2), (2.0, 3)])
def test_sampling_table(temperature: float, kept: int) -> None:
    """Catches kept tokens with a sum below p, or a temperature applied after top-p."""
    weights = (torch.tensor([0.5, 0.41, 0.09], dtype=torch.float64).log() / temperature).softmax(0)
    sums = weights.cumsum(0)
    assert int((sums < 0.9).sum()) + 1 == kept
    digits = 4 if temperature != 1 else 2
    row = r",\ ".join(f"{weight:.{digits}f}" for weight in weights)
    row = row.replace("0.50,", "0.5,")
    shown = ", ".join(f"{total:.{digits}f}" for total in sums[:2]).replace("0.50,", "0.5,")
    printed(f"| {temperature:g} | $({row})$ | {shown}, 1 | {kept} |")


def test_sampling_shares() -> None:
    """Catches wrong renormalised shares of the two kept tokens."""
    printed(f"$0.5/0.91 = {0.5 / 0.91:.4f}$ and $0.41/0.91 = {0.41 / 0.91:.4f}$")


@pytest.mark.parametrize(
    ("temperature", "likeliest", "kept"),
    [(0.5, 0.65, "three"), (1.0, 0.41, "four"), (2.0, 0.27, "six")],
)
def test_sampling_picture(temperature: float, likeliest: float, kept: str) -> None:
    """Catches a caption of the sampling picture with other shares than the picture."""
    scores = torch.from_numpy(figures.NEXT_SCORES)
    weights = (scores / temperature).softmax(0)
    assert weights[0].item() == pytest.approx(likeliest, abs=5e-3)
    assert ["three", "four", "five", "six"][int((weights.cumsum(0) < 0.9).sum()) - 2] == kept
