"""Train the same small model with and without residuals, to show what residuals are for.

    python -m labs.residual_ablation

The lab builds four models from your own blocks, with equal starting weights: pre-norm and
post-norm, each with the residual sum and without it. The left picture shows the training loss of
each model. The right picture shows one reason for the difference: how similar the tokens' vectors
are at each block before the first step. A fresh attention is nearly a mean over all earlier
tokens. Without the sum, which keeps each token's own vector, a few such means make all tokens the
same (Dong et al. 2021).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from labs.drawing import BLUE, GREEN, GREY, RED, write
from labs.fitting import fit
from labs.program import parser, run, say
from labs.words import story_words

Half = Callable[[Tensor, nn.Module, nn.Module], Tensor]
"""Computes the new stream of half a block from the old stream, a norm and a layer."""

DESIGNS: dict[str, Half] = {
    "pre-norm": lambda x, norm, layer: x + layer(norm(x)),
    "post-norm": lambda x, norm, layer: norm(x + layer(x)),
    "pre-norm, no residual": lambda x, norm, layer: layer(norm(x)),
    "post-norm, no residual": lambda x, norm, layer: norm(layer(x)),
}
_LOOKS: dict[str, dict[str, Any]] = {
    "pre-norm": {"color": BLUE},
    "post-norm": {"color": GREEN},
    "pre-norm, no residual": {"color": RED},
    "post-norm, no residual": {"color": RED, "linestyle": (0, (3, 2))},
}


class Rebuilt(nn.Module):
    """A block of yours whose norms and layers are combined in another way."""

    def __init__(self, block: Any, half: Half) -> None:
        super().__init__()
        self.block, self.combine = block, half

    def forward(self, x: Tensor) -> Tensor:
        """Apply the attention half, then the feed-forward half."""
        block: Any = self.block
        x = self.combine(x, block.ln1, block.attn)
        return self.combine(x, block.ln2, block.ffn)


@dataclass(frozen=True)
class Outcome:
    """The measurements of one design."""

    losses: list[float]
    alike: list[float]
    """The mean cosine of two tokens at the input of each block, before training."""


def lab(chosen: argparse.Namespace) -> None:
    """Train the four designs, and print and draw their losses and similarities."""
    vocabulary, ids = story_words(400_000, 256, chosen.seed)
    unigram = _unigram_entropy(ids)
    say(f"{'loss at step':<26}" + "".join(f"{step:>8}" for step in _shown(chosen.steps)))
    outcomes = {}
    for name, half in DESIGNS.items():
        outcome = outcomes[name] = _try(half, len(vocabulary.words), ids, chosen)
        smooth = _smooth(outcome.losses)
        say(f"  {name:<24}" + "".join(f"{smooth[s - 1]:8.2f}" for s in _shown(chosen.steps)))
    say(f"  {'(word frequencies alone':<24}{unigram:8.2f})")
    say(f"\n{'similarity of tokens at':<26}{'block 0':>10}{f'block {chosen.layers - 1}':>10}")
    for name, outcome in outcomes.items():
        say(f"  {name:<24}{outcome.alike[0]:10.2f}{outcome.alike[-1]:10.2f}")
    file = chosen.out / "residual-ablation.svg"
    write(lambda: _picture(outcomes, unigram), file)
    say(f"\npicture: {file}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, and run the lab."""
    options = parser(__doc__ or "")
    for name, default, text in (
        ("layers", 6, "blocks of each model, at least 2"),
        ("steps", 240, "steps of training"),
    ):
        options.add_argument(
            f"--{name}", type=int, default=default, metavar="N", help=f"{text} (default: {default})"
        )
    run(lab, options, arguments)


def _try(
    half: Half, vocab_size: int, ids: npt.NDArray[np.integer], chosen: argparse.Namespace
) -> Outcome:
    from cs336_basics.transformer import TransformerLM

    torch.manual_seed(chosen.seed)
    model = TransformerLM(vocab_size, 32, 48, chosen.layers, 4, 128, 10_000.0)
    blocks: Any = model.layers
    model.layers = nn.ModuleList(Rebuilt(block, half) for block in blocks)
    alike: list[float] = []

    def note(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        alike.append(_mean_cosine(inputs[0]))

    hooks = [layer.register_forward_pre_hook(note) for layer in model.layers]
    with torch.no_grad():
        model(torch.from_numpy(ids[: 64 * 32].astype("int64")).reshape(64, 32))
    for hook in hooks:
        hook.remove()
    losses = fit(
        model,
        ids,
        steps=chosen.steps,
        batch_size=16,
        context_length=32,
        learning_rate=3e-3,
        seed=chosen.seed,
    )
    return Outcome(list(losses), alike)


def _mean_cosine(streams: Tensor) -> float:
    """Return the mean cosine over all pairs of different tokens of the same sequence."""
    unit = streams / streams.norm(dim=-1, keepdim=True)
    cosines = unit @ unit.mT
    tokens = cosines.shape[-1]
    pairs = cosines.sum((-2, -1)) - cosines.diagonal(dim1=-2, dim2=-1).sum(-1)
    return (pairs / (tokens * (tokens - 1))).mean().item()


def _unigram_entropy(ids: npt.NDArray[np.integer]) -> float:
    counts = np.bincount(ids)
    shares = counts[counts > 0] / len(ids)
    return float(-(shares * np.log(shares)).sum())


def _shown(steps: int) -> list[int]:
    return sorted({1, *(max(1, steps * part // 4) for part in (1, 2, 3, 4))})


def _smooth(losses: Sequence[float]) -> list[float]:
    """Return the mean of each loss and the seven losses before it."""
    return [float(np.mean(losses[max(0, i - 7) : i + 1])) for i in range(len(losses))]


def _picture(outcomes: dict[str, Outcome], unigram: float) -> Figure:
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    for name, outcome in outcomes.items():
        left.plot(range(1, len(outcome.losses) + 1), _smooth(outcome.losses), **_LOOKS[name])
        right.plot(outcome.alike, marker="o", markersize=3.5, label=name, **_LOOKS[name])
    left.axhline(unigram, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)))
    left.annotate(
        "word frequencies alone",
        (1, unigram),
        (0, 8),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        fontsize=7.5,
    )
    left.set(title="training loss", xlabel="step", ylabel="nats per word", ylim=(0, None))
    right.set(title="tokens before the first step", xlabel="at the input of block")
    right.set(ylabel="mean cosine of two tokens", ylim=(-0.05, 1.05))
    right.set_xticks(range(len(outcome.alike)))
    right.legend(fontsize=7.5)
    return figure


if __name__ == "__main__":
    main()
