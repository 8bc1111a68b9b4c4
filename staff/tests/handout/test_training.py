"""The numbers that §3 and §4 of the handout work out by hand, computed anew without the solution.

`printed` holds the handout to each of them: a number that changes in one place only is found.
"""

import math
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import regex
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from staff.figures import tokenizer as tokenizer_figures
from staff.figures import training as training_figures

HANDOUT = " ".join(Path(__file__).parents[2].joinpath("handout.md").read_text("utf-8").split())

LOGITS = torch.tensor([[0, math.log(2), math.log(5)], [0, 0, 0]], dtype=torch.float64)
SMALL = {"vocab_size": 10000, "d_model": 128, "num_layers": 4, "d_ff": 512}
LARGE = {"vocab_size": 50257, "d_model": 768, "num_layers": 12, "d_ff": 2048}

WORDS = {"tone": 5, "stone": 4, "no": 4, "not": 4, "on": 1, "ten": 1}
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def printed(*texts: str) -> None:
    """Assert that the handout says so, wherever its lines break."""
    missing = [text for text in texts if text not in HANDOUT]
    assert not missing


def test_cross_entropy() -> None:
    """Catches log 2 for log e, a sum for the mean, and a gradient without the 1/n."""
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
    """Catches a loss that is built on probabilities: infinite, or 20.72 with a gradient of zero."""
    logits, target = torch.tensor([0.0, 200.0], requires_grad=True), torch.tensor(0)
    assert F.cross_entropy(logits, target).item() == 200
    assert (-logits.softmax(0)[0].log()).item() == math.inf
    patched = -(logits.softmax(0)[0] + 1e-9).log()
    printed(f"gives {patched.item():.2f}")
    (gradient,) = torch.autograd.grad(patched, logits)
    assert gradient.tolist() == [0, 0]


def test_perplexity_and_bits() -> None:
    """Catches a mean of perplexities, and losses compared across tokenizers."""
    printed(f"perplexity of {math.exp((3 * 1 + 1 * 3) / 4):.2f}")
    printed(f"would be {(math.exp(1) + math.exp(3)) / 2:.2f}")
    first, second = 2.0 / (4.0 * math.log(2)), 1.6 / (3.0 * math.log(2))
    assert first < second
    printed(f"| 2.0 | 4.0 | **{first:.3f}** |", f"| 1.6 | 3.0 | {second:.3f} |")


def adam_step_by_step(make: type[torch.optim.Optimizer], **settings: object) -> list[float]:
    """Where θ = 2 is after gradients of 0.5 and −0.1."""
    theta = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
    optimizer = make([theta], **{"lr": 0.1, "weight_decay": 0.1, **settings})  # type: ignore[arg-type]
    places = []
    for gradient in (0.5, -0.1):
        theta.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
        places.append(theta.item())
    return places


def test_adamw_table() -> None:
    """Catches a wrong digit in the table of two steps, by PyTorch's AdamW."""
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
    """Catches a claim of equality: the other accepted order gives other digits."""
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
    """Catches a wrong number beside the two usual mistakes, no hats and decay in the gradient."""
    quotient = 0.05 / math.sqrt(0.00025)
    printed(f"= {quotient:.3f}$, and $\\theta = {2 - 0.1 * quotient - 0.02:.4f}$")
    first, _ = adam_step_by_step(torch.optim.Adam)
    assert first == pytest.approx(1.9, abs=1e-8)
    # With betas 0.9 and 0.99 the hats cancel at the first step: 1 − 0.9 = sqrt(1 − 0.99).
    assert math.sqrt(1 - 0.99) == pytest.approx(1 - 0.9)


def test_adamw_eps() -> None:
    """Catches a wrong factor between the two places of ε, at the first step."""
    factor = 1 / math.sqrt(1 - 0.999)
    m, v, eps = 0.1 * 1e-6, 0.001 * 1e-12, 1e-8
    adjusted = m / (math.sqrt(v) + eps) * math.sqrt(1 - 0.999) / (1 - 0.9)
    hats = (m / (1 - 0.9)) / (math.sqrt(v / (1 - 0.999)) + factor * eps)
    assert adjusted == pytest.approx(hats)
    printed(f"for {factor:.0f} times as much")


def test_descent_picture() -> None:
    """Catches a caption that no longer fits its picture."""
    steepness, start = training_figures.STEEPNESS, training_figures.START
    assert steepness.tolist() == [1, 100]
    assert training_figures.STEPS == 80
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
    """Catches a wrong entry of the schedule from 1 to 0.1, with T_w = 4 and T_c = 12."""
    half = math.sqrt(0.5)
    rates = [0, 0.25, 0.5, 1, 0.1 + 0.45 * (1 + half), 0.55, 0.1 + 0.45 * (1 - half), 0.1, 0.1]
    printed(r"| $\eta$ | " + " | ".join(f"{round(rate, 4):g}" for rate in rates) + " |")


@pytest.mark.parametrize("maximum", [1.0, 5.0, 10.0])
def test_clipping(maximum: float) -> None:
    """Catches clipping parameter by parameter, or below the maximum: the 3-4-5 gradient."""
    parameters = [torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(1))]
    parameters[0].grad, parameters[1].grad = torch.tensor([3.0, 0.0]), torch.tensor([4.0])
    norm = torch.nn.utils.clip_grad_norm_(parameters, maximum)
    assert norm.item() == 5
    expected = [0.6, 0, 0.8] if maximum == 1 else [3, 0, 4]
    gradients = [g for p in parameters if p.grad is not None for g in p.grad.tolist()]
    assert gradients == pytest.approx(expected, abs=1e-5)
    printed(r"| 1 | $1/5$ | $(0.6,\ 0)$ and $(0.8)$ |")


def test_windows() -> None:
    """Catches a start too many or too few: seven tokens hold four windows of three and a target."""
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(10, 17), 4)
    printed(
        *(
            f"start {i} x = {' '.join(map(str, w[:-1]))} y = {' '.join(map(str, w[1:]))}"
            for i, w in enumerate(windows)
        )
    )
    assert len(windows) == 4


@pytest.mark.parametrize(("temperature", "kept"), [(0.5, 2), (1.0, 2), (2.0, 3)])
def test_sampling_table(temperature: float, kept: int) -> None:
    """Catches a set that stops short of p, and temperature after top-p."""
    weights = (torch.tensor([0.5, 0.41, 0.09], dtype=torch.float64).log() / temperature).softmax(0)
    sums = weights.cumsum(0)
    assert int((sums < 0.9).sum()) + 1 == kept
    digits = 4 if temperature != 1 else 2
    row = r",\ ".join(f"{weight:.{digits}f}" for weight in weights)
    row = row.replace("0.50,", "0.5,")
    shown = ", ".join(f"{total:.{digits}f}" for total in sums[:2]).replace("0.50,", "0.5,")
    printed(f"| {temperature:g} | $({row})$ | {shown}, 1 | {kept} |")


def test_sampling_shares() -> None:
    """Catches shares that don't sum to one."""
    printed(f"$0.5/0.91 = {0.5 / 0.91:.4f}$ and $0.41/0.91 = {0.41 / 0.91:.4f}$")


@pytest.mark.parametrize(
    ("temperature", "likeliest", "kept"),
    [(0.5, 0.65, "three"), (1.0, 0.41, "four"), (2.0, 0.27, "six")],
)
def test_sampling_picture(temperature: float, likeliest: float, kept: str) -> None:
    """Catches a caption that no longer fits its picture."""
    scores = torch.from_numpy(training_figures.NEXT_SCORES)
    weights = (scores / temperature).softmax(0)
    assert weights[0].item() == pytest.approx(likeliest, abs=5e-3)
    assert ["three", "four", "five", "six"][int((weights.cumsum(0) < 0.9).sum()) - 2] == kept


def products(
    vocab_size: int, d_model: int, num_layers: int, d_ff: int, batch: int, seq: int
) -> list[tuple[Tensor, Tensor]]:
    """Both sides of every matrix product of a forward pass, as tensors without contents."""

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
    """Let PyTorch count."""
    with FlopCounterMode(display=False) as counter:
        for left, right in pairs:
            _ = left @ right
    return counter.get_total_flops()


def parameters_of(vocab_size: int, d_model: int, num_layers: int, d_ff: int) -> int:
    """Count the entries of every weight, one shape after the other."""
    block = [(d_model, d_model)] * 4 + [(d_ff, d_model)] * 3 + [(d_model,)] * 2
    shapes = block * num_layers + [(vocab_size, d_model)] * 2 + [(d_model,)]
    return sum(math.prod(shape) for shape in shapes)


def test_flops_table() -> None:
    """Catches a 2 or a 4 that is missing from the table of products."""
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
    """Catches a wrong answer to a question that students are told to check themselves."""
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


def test_utf8() -> None:
    """Catches a wrong byte in the table of characters."""
    for character in "Aé漢🦊":
        code_point = f"U+{ord(character):04X}"
        printed(f"| {character} | {code_point} | `{character.encode().hex(' ')}` |")
    text = "naïve 🦊"
    printed(f"has {len(text)} characters and {len(text.encode())} bytes")
    assert (len("\u00e9".encode()), len("e\u0301".encode())) == (2, 3)


def test_pretokens() -> None:
    """Catches a caption that no longer fits its picture, and a wrong pattern in the text."""
    assert f'PATTERN = r"""{PATTERN}"""' in HANDOUT
    pieces = regex.findall(PATTERN, tokenizer_figures.SENTENCE)
    assert "".join(pieces) == tokenizer_figures.SENTENCE
    named = ", ".join("a line break" if p == "\n" else f'"{p}"' for p in pieces)
    printed(f"cut into {len(pieces)} pre-tokens: {named}.")
    assert regex.findall(PATTERN, "DON'T") == ["DON", "'", "T"]
    assert "|".join(tokenizer_figures.ALTERNATIVES.values()) == PATTERN


Word = tuple[bytes, ...]
Pair = tuple[bytes, bytes]


def letters(word: str) -> Word:
    """Cut a word into bytes."""
    return tuple(bytes([byte]) for byte in word.encode())


def merged(word: Word, pair: Pair) -> Word:
    """Merge a pair from left to right."""
    out: list[bytes] = []
    rest = list(word)
    while rest:
        taken = 2 if tuple(rest[:2]) == pair else 1
        out.append(b"".join(rest[:taken]))
        del rest[:taken]
    return tuple(out)


def training() -> list[tuple[Counter[Pair], Pair, list[Word]]]:
    """Train six merges on the six words: the counts, the merge, and the words after it."""
    words = {word: letters(word) for word in WORDS}
    steps = []
    for _ in range(6):
        counts: Counter[Pair] = Counter()
        for word, tokens in words.items():
            for pair in pairwise(tokens):
                counts[pair] += WORDS[word]
        best = max(counts, key=lambda pair: (counts[pair], pair))
        words = {word: merged(tokens, best) for word, tokens in words.items()}
        steps.append((counts, best, list(words.values())))
    return steps


def test_bpe_counts_and_merges() -> None:
    """Catches a wrong count, a tie decided otherwise, and a pair that was forgotten."""
    for number, (counts, best, _) in enumerate(training()):
        found = re.search(
            rf"\| {number} \| (\([^|]*) \| (\w+) (\w+) → \*\*(\w+)\*\* \| (\d+) \|", HANDOUT
        )
        assert found is not None
        row, first, second, token, token_id = found.groups()
        pairs = re.findall(r"\((\w+), (\w+)\) \**(\d+)", row)
        shown = [((a.encode(), b.encode()), int(count)) for a, b, count in pairs]
        assert dict(shown) == counts
        assert [count for _, count in shown] == sorted(counts.values(), reverse=True)
        assert (first.encode(), second.encode()) == best
        assert token.encode() == b"".join(best)
        assert int(token_id) == 256 + number


def test_bpe_words() -> None:
    """Catches a wrong row in the table of words, from single bytes to whole words."""
    rows = {"none": [letters(word) for word in WORDS]}
    rows |= {str(number): words for number, (_, _, words) in enumerate(training())}
    for name, words in rows.items():
        printed(f"| {name} | " + " | ".join(b" ".join(word).decode() for word in words) + " |")


def test_bpe_ties_need_bytes() -> None:
    """Catches an example that ids would decide the same way."""
    steps = training()
    ids = {bytes([byte]): byte for byte in range(256)}
    ties = 0
    for number, (counts, best, _) in enumerate(steps):
        level = [pair for pair in counts if counts[pair] == counts[best]]
        if len(level) > 1:
            ties += 1
            assert max(level, key=lambda pair: (ids[pair[0]], ids[pair[1]])) != best
        ids[b"".join(best)] = 256 + number
    assert ties == 2
    assert (b"b", b"a") > (b"ab", b"z")


def encoded(pretoken: str) -> list[bytes]:
    """Apply the six merges in their order."""
    tokens = letters(pretoken)
    for _, pair, _ in training():
        tokens = merged(tokens, pair)
    return list(tokens)


def test_encoding() -> None:
    """Catches the longest match in place of the earliest merge, and a wrong id."""
    merges = [pair for _, pair, _ in training()]
    ids = {bytes([byte]): byte for byte in range(256)}
    ids |= {b"".join(pair): 256 + rank for rank, pair in enumerate(merges)}
    assert encoded("non") == [b"n", b"on"]
    assert b"no" in ids  # what the longest match would take
    assert merges.index((b"n", b"o")) == 3
    text = "not one stone"
    tokens = []
    for pretoken in regex.findall(PATTERN, text):
        tokens += encoded(pretoken)
        shown, cut = pretoken.replace(" ", "␣"), " ".join(letter for letter in pretoken)
        joined = b" ".join(t.replace(b" ", "␣".encode()) for t in encoded(pretoken)).decode()
        numbers = ", ".join(str(ids[token]) for token in encoded(pretoken))
        cut = cut.replace("   ", " ").replace("  ", "␣ ")
        printed(f"| `{shown}` | {cut} | {joined} | {numbers} |")
    printed(f"{len(text)} bytes of text became {len(tokens)} tokens")
    printed(f"a ratio of {len(text) / len(tokens):.2f}")
    assert [ids[token] for token in encoded("stone")] == [260]
