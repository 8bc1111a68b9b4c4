"""The numbers on training in §3 of the handout, computed again without the solution."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from staff.figures import training as figures
from staff.tests.handout.text import printed

LOGITS = torch.tensor([[0, math.log(2), math.log(5)], [0, 0, 0]], dtype=torch.float64)


def test_cross_entropy() -> None:
    """Catches a wrong loss, gradient or perplexity in the example of cross-entropy."""
    logits = LOGITS.clone().requires_grad_()
    loss = F.cross_entropy(logits, torch.tensor([2, 0]))
    loss.backward()
    assert logits.grad is not None
    assert logits.grad[0].tolist() == pytest.approx([0.0625, 0.125, -0.1875], abs=1e-12)
    printed(
        rf"\log(8/5) = {math.log(8 / 5):.4f}",
        rf"\log 3 = {math.log(3):.4f}",
        f"**{loss.item():.4f}**",
        r"(0.0625,\ 0.125,\ -0.1875)",
        rf"\sqrt{{4.8}} = {loss.exp().item():.2f}",
    )
    assert loss.exp().item() == pytest.approx(math.sqrt(4.8))


def test_cross_entropy_of_a_wide_gap() -> None:
    """Catches a wrong number for a loss that is computed from probabilities plus 1e-9."""
    logits, target = torch.tensor([0.0, 200.0], requires_grad=True), torch.tensor(0)
    assert F.cross_entropy(logits, target).item() == 200
    assert (-logits.softmax(0)[0].log()).item() == math.inf
    patched = -(logits.softmax(0)[0] + 1e-9).log()
    printed(f"gives {patched.item():.2f}")
    (gradient,) = torch.autograd.grad(patched, logits)
    assert gradient.tolist() == [0, 0]


def test_perplexity_and_bits() -> None:
    """Catches a wrong perplexity of a mean loss, or wrong bits per byte."""
    printed(f"perplexity of {math.exp((3 * 1 + 1 * 3) / 4):.2f}")
    printed(f"would be {(math.exp(1) + math.exp(3)) / 2:.2f}")
    first, second = 2.0 / (4.0 * math.log(2)), 1.6 / (3.0 * math.log(2))
    assert first < second
    printed(f"| 2.0 | 4.0 | **{first:.3f}** |", f"| 1.6 | 3.0 | {second:.3f} |")


def adam_step_by_step(make: type[torch.optim.Adam]) -> list[float]:
    """Return θ, which starts at 2, after each of the gradients 0.5 and −0.1."""
    theta = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
    optimizer = make([theta], lr=0.1, weight_decay=0.1)
    places = []
    for gradient in (0.5, -0.1):
        theta.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
        places.append(theta.item())
    return places


def test_adamw_table() -> None:
    """Catches a number in the table of two AdamW steps that differs from PyTorch's."""
    first, second = adam_step_by_step(torch.optim.AdamW)
    m, v = 0.9 * 0.05 + 0.1 * -0.1, 0.999 * 0.00025 + 0.001 * 0.01
    m_hat, v_hat = m / (1 - 0.9**2), v / (1 - 0.999**2)
    quotient = m_hat / math.sqrt(v_hat)
    assert first == pytest.approx(1.88, abs=1e-8)
    assert second == pytest.approx(1.88 - 0.1 * quotient - 0.1 * 0.1 * 1.88, abs=1e-7)
    printed(
        f"| 2 | −0.1 | {m:.3f} | {v:.8f} | {m_hat:.4f} | {v_hat:.4f} | {quotient:.4f} |",
        f"$1.88 - {0.1 * quotient:.4f} - {0.01 * 1.88:.4f} = {second:.4f}$",
    )


def test_adamw_that_decays_last() -> None:
    """Catches wrong printed values for an AdamW that decays after the update."""
    theta, m, v = 2.0, 0.0, 0.0
    places = []
    for step, gradient in ((1, 0.5), (2, -0.1)):
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        theta -= 0.1 * (m / (1 - 0.9**step)) / math.sqrt(v / (1 - 0.999**step))
        theta -= 0.1 * 0.1 * theta
        places.append(theta)
    first, second = places
    printed(f"{first:.3f} and {second:.4f} in place of 1.88 and 1.8101")


def test_adamw_mistakes() -> None:
    """Catches a wrong value of θ for missing bias corrections or decay in the gradient."""
    quotient = 0.05 / math.sqrt(0.00025)
    printed(f"= {quotient:.3f}$, and $\\theta = {2 - 0.1 * quotient - 0.02:.4f}$")
    first, _ = adam_step_by_step(torch.optim.Adam)
    assert first == pytest.approx(1.9, abs=1e-8)
    # With betas 0.9 and 0.99 both corrections cancel at the first step: 1 − 0.9 = sqrt(1 − 0.99).
    assert math.sqrt(1 - 0.99) == pytest.approx(1 - 0.9)


def test_adamw_eps() -> None:
    """Catches a wrong factor between ε added before and after bias correction, at step 1."""
    factor = 1 / math.sqrt(1 - 0.999)
    m, v, eps = 0.1 * 1e-6, 0.001 * 1e-12, 1e-8
    adjusted = m / (math.sqrt(v) + eps) * math.sqrt(1 - 0.999) / (1 - 0.9)
    hats = (m / (1 - 0.9)) / (math.sqrt(v / (1 - 0.999)) + factor * eps)
    assert adjusted == pytest.approx(hats)
    printed(f"for {factor:.0f} times as much")


def test_descent_picture() -> None:
    """Catches a caption of the descent picture with other final losses than the picture."""
    steepness, start = figures.STEEPNESS, figures.START
    assert steepness.tolist() == [1, 100]
    assert figures.STEPS == 80
    parameter = torch.nn.Parameter(torch.from_numpy(start.copy()))
    losses = {}
    for name, optimizer in (
        ("descent", torch.optim.SGD([parameter], lr=0.019)),
        ("adam", torch.optim.AdamW([parameter], lr=0.1, weight_decay=0)),
    ):
        parameter.data = torch.from_numpy(start.copy())
        for _ in range(80):
            optimizer.zero_grad()
            loss = (torch.from_numpy(steepness) * parameter**2).sum() / 2
            loss.backward()
            optimizer.step()
        losses[name] = ((torch.from_numpy(steepness) * parameter**2).sum() / 2).item()
    assert 0.35 < losses["descent"] < 0.4
    assert losses["adam"] < 0.01


def test_schedule_table() -> None:
    """Catches a wrong entry in the table of learning rates, which has T_w = 4 and T_c = 12."""
    half = math.sqrt(0.5)
    rates = [0, 0.25, 0.5, 1, 0.1 + 0.45 * (1 + half), 0.55, 0.1 + 0.45 * (1 - half), 0.1, 0.1]
    printed(r"| $\eta$ | " + " | ".join(f"{round(rate, 4):g}" for rate in rates) + " |")


@pytest.mark.parametrize("maximum", [1.0, 5.0, 10.0])
def test_clipping(maximum: float) -> None:
    """Catches a wrong row in the table of clipping the gradients (3, 0) and (4), of norm 5."""
    parameters = [torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(1))]
    parameters[0].grad, parameters[1].grad = torch.tensor([3.0, 0.0]), torch.tensor([4.0])
    norm = torch.nn.utils.clip_grad_norm_(parameters, maximum)
    assert norm.item() == 5
    expected = [0.6, 0, 0.8] if maximum == 1 else [3, 0, 4]
    gradients = [g for p in parameters if p.grad is not None for g in p.grad.tolist()]
    assert gradients == pytest.approx(expected, abs=1e-5)
    printed(r"| 1 | $1/5$ | $(0.6,\ 0)$ and $(0.8)$ |")


def test_windows() -> None:
    """Catches a wrong window, or a wrong number of windows of length 3 in seven tokens."""
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(10, 17), 4)
    printed(
        *(
            f"start {i} x = {' '.join(map(str, w[:-1]))} y = {' '.join(map(str, w[1:]))}"
            for i, w in enumerate(windows)
        )
    )
    assert len(windows) == 4
