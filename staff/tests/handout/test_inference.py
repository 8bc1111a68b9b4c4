"""The numbers in §5.8 to §5.12 of the handout, computed again without the solution."""

import math

import pytest
import torch
from torch.nn import functional as F

from staff.tests.handout.text import printed

TOKENS = torch.tensor([[1, 0, 0, 1], [0, 1, 1, 1]], dtype=torch.float64)


def test_shared_heads_by_hand() -> None:
    """Catches a wrong number in the example of two heads that share keys and values."""
    queries = TOKENS.unflatten(-1, (2, 2)).transpose(0, 1)
    shared = TOKENS[None, :, :2]
    heads = F.scaled_dot_product_attention(queries, shared, shared, is_causal=True, enable_gqa=True)
    first, second = heads.transpose(0, 1).flatten(1).tolist()
    assert first == [1, 0, 1, 0]
    assert second == pytest.approx([0.3302, 0.6698, 0.5, 0.5], abs=5e-5)
    printed(r"1 & 0 & 1 & 0 \\ 0.3302 & 0.6698 & 0.5 & 0.5", r"$(0.3302,\ 0.6698,\ 0.5,\ 0.5)$")
    assert [i // 2 for i in range(4)] == torch.arange(2).repeat_interleave(2).tolist()
    printed("| key/value head | 0 | 0 | 1 | 1 |", "| not | 0 | 1 | 0 | 1 |")


def test_memory_of_keys_and_values() -> None:
    """Catches a cache size that omits the values or the two bytes of each number."""
    numbers = torch.empty(2, 32, 32, 128, dtype=torch.bfloat16, device="meta")
    size = numbers.numel() * numbers.element_size()
    printed(f"= {size:,}$ bytes".replace(",", "{,}"))
    assert size * 8192 == 4 * 2**30


def test_loss_table() -> None:
    """Catches a wrong mean or wrongly shifted labels in the table of losses."""
    log = math.log
    logits = torch.tensor([[0, log(2), log(5)], [0, 0, 0], [log(6), 0, 0]], dtype=torch.float64)
    labels = torch.tensor([1, 2, 0])
    shifted = F.cross_entropy(logits[:-1], labels[1:]).item()
    ignored = F.cross_entropy(logits[:-1], torch.tensor([-100, 0])).item()
    unshifted = F.cross_entropy(logits, labels)
    printed(
        rf"| $\log(8/5),\ \log 3$ | **{shifted:.4f}** |",
        rf"| $\log 3$ | {ignored:.4f} |",
        rf"| $\log 4,\ \log 3,\ \log(8/6)$ | {unshifted.item():.4f} |",
    )
    losses = [log(4), log(3), log(8 / 6)]
    assert unshifted.item() == pytest.approx(sum(losses) / 3)
    assert F.cross_entropy(logits[:1], torch.tensor([-100])).isnan()


def test_numbers_of_trunk_and_head() -> None:
    """Catches a logits size in a wrong unit, or dropout that divides by p, not by 1 − p."""
    printed(f"{1024 * 50257 * 4 / 1e6:.0f} MB, and the last ones {50257 * 4 / 1e3:.0f} kB")
    kept = torch.tensor([1.0, 0, 3, 4]) / 0.75
    printed(r",\ ".join(f"{value:.5g}" for value in kept))


def test_cost_and_mask_of_the_cache() -> None:
    """Catches a wrong count of tokens without a cache, or a mask with a wrong diagonal."""
    printed(rf"= {sum(range(1, 1001)):,}$".replace(",", "{,}"))
    places = torch.arange(5)
    rows = (places[3:, None] >= places[None, :]).int().tolist()
    printed(r" \\ ".join(" & ".join(map(str, row)) for row in rows))


def test_mixture_by_hand() -> None:
    """Catches gates or a balancing loss that don't follow from the table's probabilities."""
    p = torch.tensor([[0.5, 0.375, 0.125], [0.125, 0.5, 0.375]], dtype=torch.float64)
    best, chosen = p.topk(2)
    assert chosen.sort(-1).values.tolist() == [[0, 1], [1, 2]]
    one, other = (best / best.sum(-1, keepdim=True))[0].tolist()
    printed(rf"| token A | $(0.5,\ 0.375,\ 0.125)$ | 0, 1 | ${one:.4f},\ {other:.4f}$ |")
    printed(rf"| token B | $(0.125,\ 0.5,\ 0.375)$ | 1, 2 | ${one:.4f},\ {other:.4f}$ |")
    f = F.one_hot(chosen, 3).double().mean((0, 1))
    assert (4 * f).tolist() == [1, 2, 1]
    mean = p.mean(0)
    printed(rf"P = ({mean[0]:.4f},\ {mean[1]:.4f},\ {mean[2]:.2f})")
    total = (f * mean).sum().item()
    printed(rf"L = 3 \cdot {total:.4f} = {3 * total:.4f}")
