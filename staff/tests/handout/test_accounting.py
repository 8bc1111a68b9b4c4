"""The operations and parameters in §3.9 of the handout, counted without the solution."""

import math

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from staff.tests.handout.text import printed

SMALL = {"vocab_size": 10000, "d_model": 128, "num_layers": 4, "d_ff": 512}
LARGE = {"vocab_size": 50257, "d_model": 768, "num_layers": 12, "d_ff": 2048}


def products(
    vocab_size: int, d_model: int, num_layers: int, d_ff: int, batch: int, seq: int
) -> list[tuple[Tensor, Tensor]]:
    """Return the factors of each matrix product in a forward pass, as tensors without data."""

    def empty(*shape: int) -> Tensor:
        return torch.empty(shape, device="meta")

    heads, tokens = 4, batch * seq
    square = (empty(tokens, d_model), empty(d_model, d_model))
    queries = empty(batch, heads, seq, d_model // heads)
    scores = empty(batch, heads, seq, seq)
    up = (empty(tokens, d_model), empty(d_model, d_ff))
    down = (empty(tokens, d_ff), empty(d_ff, d_model))
    block = [*[square] * 4, (queries, queries.mT), (scores, queries), up, up, down]
    return block * num_layers + [(empty(tokens, d_model), empty(d_model, vocab_size))]


def flops_of(pairs: list[tuple[Tensor, Tensor]]) -> int:
    """Return the number of operations that PyTorch counts for these matrix products."""
    with FlopCounterMode(display=False) as counter:
        for left, right in pairs:
            _ = left @ right
    return counter.get_total_flops()


def parameters_of(vocab_size: int, d_model: int, num_layers: int, d_ff: int) -> int:
    """Compute the number of parameters from the shapes of all weights."""
    block = [(d_model, d_model)] * 4 + [(d_ff, d_model)] * 3 + [(d_model,)] * 2
    shapes = block * num_layers + [(vocab_size, d_model)] * 2 + [(d_model,)]
    return sum(math.prod(shape) for shape in shapes)


def test_flops_table() -> None:
    """Catches a wrong count in the handout's table of matrix products."""
    pairs = products(**SMALL, batch=2, seq=16)
    rows = {
        r"$8\,BS\,d^2$ per block": flops_of(pairs[:4]),
        r"weights times $V$ | the same, turned | $2\,BS^2 d$ per block": flops_of(pairs[5:6]),
        r"$6\,BS\,d\,d_{\mathrm{ff}}$ per block": flops_of(pairs[6:9]),
        r"$2\,BS\,dV$": flops_of(pairs[-1:]),
    }
    printed(*(f"{label} | {count:,} |" for label, count in rows.items()))
    printed(
        f"| all blocks | | | {flops_of(pairs[:-1]):,} |", f"| **all** | | | **{flops_of(pairs):,}**"
    )
    assert flops_of(pairs[4:5]) == flops_of(pairs[5:6])


def test_accounting_answers() -> None:
    """Catches a wrong number in the handout's answers to the questions about cost."""
    small, large = products(**SMALL, batch=2, seq=16), products(**LARGE, batch=1, seq=1024)
    shares = [flops_of(pairs[-1:]) / flops_of(pairs) for pairs in (small, large)]
    total = flops_of(large)
    printed(f"{shares[0]:.1%} of 150,077,440, and {shares[1]:.1%} of {total:,}".replace("%", " %"))
    even = products(**SMALL, batch=1, seq=1024)
    assert flops_of(even[4:6]) == flops_of(even[:4]) + flops_of(even[6:9])
    parameters = parameters_of(**LARGE)
    printed(
        f"${parameters:,}".replace(",", "{,}")
        + rf" \cdot 16$ bytes: {parameters * 16 / 1e9:.2f} GB"
    )
    per_token = total // 1024
    operations = 3 * per_token * 10**9
    printed(f"{per_token:,} FLOPs a token", f"{operations / 1e17:.2f} \\cdot 10^{{17}}$")
    printed(f"or {operations / 1e12 / 86400:.1f} days")
    assert parameters_of(**SMALL) == 3_609_728
