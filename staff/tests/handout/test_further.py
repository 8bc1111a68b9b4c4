"""The numbers in §5.1 to §5.7 of the handout, computed again without the solution."""

import math

import pytest
import torch
import torch.nn.functional as F

from staff.tests.handout.text import printed

F64 = torch.float64


def row(values: torch.Tensor) -> str:
    """Format a row of numbers as the handout does, without decimals for whole numbers."""
    numbers = (f"{v:.0f}" if abs(v - round(v)) < 1e-9 else f"{v:.4f}" for v in values.tolist())
    return "(" + r",\ ".join(numbers) + ")"


def test_layer_norm() -> None:
    """Catches a LayerNorm example that divides the variance by d − 1 or scales the shift."""
    x = torch.tensor([1, 2, 3], dtype=F64)
    gain, shift = torch.tensor([1, 2, 1], dtype=F64), torch.tensor([0, 0, 5], dtype=F64)
    printed(rf"2/3 = {2 / 3:.4f}$, whose root is ${math.sqrt(2 / 3):.4f}$")
    printed(row(F.layer_norm(x, (3,), eps=0)), row(F.layer_norm(x, (3,), gain, shift, eps=0)))
    assert ((x - 2) / x.std()).tolist() == pytest.approx([-1, 0, 1])


def test_variance_far_from_zero() -> None:
    """Catches numbers in the example of lost digits that float32 does not produce."""
    x = torch.tensor([3000.0, 3001.0, 3002.0])
    assert x.double().square().mean().item() == pytest.approx(9006001 + 2 / 3)
    assert x.double().mean().square().item() == 9006001
    left = (x.square().mean() - x.mean().square()).item()
    assert left in (0, 1)
    above, least = torch.tensor(torch.inf), torch.tensor(2.0**23)
    assert (torch.nextafter(least, above) - least).item() == 1
    printed("$9006001.667 - 9006001$", "$2^{23} = 8388608$")


def test_batch_norm() -> None:
    """Catches a BatchNorm example that exchanges the biased and the unbiased variance."""
    x, mean, variance = torch.tensor([[1], [5]], dtype=F64), *torch.tensor([[0], [1]], dtype=F64)
    y = F.batch_norm(x, mean, variance, training=True, momentum=0.1, eps=1e-30)
    assert y.flatten().tolist() == [-1, 1]
    assert (mean.item(), variance.item()) == pytest.approx((0.3, 1.7))
    evaluated = F.batch_norm(torch.tensor([[3.0]], dtype=F64), mean, variance, eps=1e-30).item()
    printed(r"$0.1 \cdot 3 = 0.3$", rf"$(3 - 0.3)/\sqrt{{1.7}} = {evaluated:.4f}$")


def test_relu_feed_forward() -> None:
    """Catches numbers in the feed-forward example that don't follow from its matrices."""
    x = torch.tensor([1.0, 2.0])
    w1 = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]])
    w2 = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
    hidden = F.linear(x, w1, torch.tensor([0.0, -3.0, 2.0]))
    assert hidden.tolist() == [1, -1, 1]
    assert F.linear(hidden.relu(), w2, torch.tensor([0.5, 0.5])).tolist() == [2.5, -0.5]
    printed("| plus $b_1$ | 1 | −1 | 1 |", r"(0.5, 0.5) = (2.5,\ -0.5)$")


@pytest.mark.parametrize("i", [0, 1, 2, 100])
def test_sinusoidal_table(i: int) -> None:
    """Catches a wrong number in the table of sinusoidal positions, or in their product."""
    values = [math.sin(i), math.cos(i), math.sin(i / 100), math.cos(i / 100)]
    numbers = r",\ ".join(f"{v:.4f}" if i else f"{v:.0f}" for v in values)
    printed(f"| {i} | $({numbers})$ |")
    on = [math.sin(i + 1), math.cos(i + 1), math.sin((i + 1) / 100), math.cos((i + 1) / 100)]
    product = sum(a * b for a, b in zip(values, on, strict=True))
    assert product == pytest.approx(math.cos(1) + math.cos(0.01))
    printed(f"$k = 1$ it is ${product:.4f}$")


def test_half_split() -> None:
    """Catches an example of half-split RoPE that rotates adjacent pairs."""
    fast = (1 + 3j) * complex(math.cos(1), math.sin(1))
    slow = (2 + 4j) * complex(math.cos(0.01), math.sin(0.01))
    printed(row(torch.tensor([fast.real, slow.real, fast.imag, slow.imag])))


def test_order_of_rows() -> None:
    """Catches two printed row orders that aren't inverse to each other."""
    there, back = [0, 2, 4, 1, 3, 5], [0, 3, 1, 4, 2, 5]
    assert [there[i] for i in back] == list(range(6))
    printed(f"| adjacent to half-split | {', '.join(map(str, there))} |")
    printed(f"| half-split to adjacent | {', '.join(map(str, back))} |")
    four = [0, 2, 1, 3]
    assert [four[i] for i in four] == list(range(4))


def test_compression() -> None:
    """Catches a compression ratio that counts characters in place of bytes."""
    text = "naïve 🦊"
    assert (len(text), len(text.encode())) == (7, 11)
    printed(f"$11/4 = {11 / 4}$")
