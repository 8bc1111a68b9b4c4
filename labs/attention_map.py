"""Train a small model for a minute, and see where its heads look.

    python -m labs.attention_map
    python -m labs.attention_map --sentence "The owl looked under the bed. There was no owl."

The model is trained on the stories of labs.stories, word by word. Then it reads one sentence, and
the picture shows the attention weights of every head: each row is a query word, each column a key
word, and the weights above the diagonal are hidden by the causal mask. A ring marks each head's
largest weight on a word that is at least two words back and is not the first word. The table shows
each head's mean weight on the first word, on the word before, and on the word itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from labs.drawing import PAPER_TO_BLUE, RED, write
from labs.fitting import fit
from labs.program import LabError, parser, run, say
from labs.words import UNKNOWN, split, story_words

SENTENCE = (
    "One day Mira lost her golden key. Mira looked under the table. There was a shell, but no "
    "golden key."
)

_CONTEXT = 128


@contextmanager
def weights_noted() -> Iterator[list[Tensor]]:
    """Record the weights of every attention, `(batch, heads, queries, keys)`, layer by layer.

    Your own function computes them: if the values are the identity matrix, its result equals the
    weights.
    """
    from cs336_basics import attention

    noted: list[Tensor] = []
    own = attention.scaled_dot_product_attention

    def noting(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None) -> Tensor:
        identity = torch.eye(K.shape[-2], dtype=V.dtype, device=V.device)
        noted.append(own(Q, K, identity.expand(*V.shape[:-2], -1, -1), mask))
        return own(Q, K, V, mask)

    attention.scaled_dot_product_attention = noting
    try:
        yield noted
    finally:
        attention.scaled_dot_product_attention = own


def look(model: nn.Module, ids: Tensor) -> Tensor:
    """Run the model on one sequence, and return its weights `(layers, heads, queries, keys)`.

    Raises:
        LabError: no weights were recorded.
    """
    with weights_noted() as noted, torch.no_grad():
        model(ids[None])
    if not noted:
        raise LabError(
            "no attention weights were recorded: MultiHeadSelfAttention must call "
            "scaled_dot_product_attention of cs336_basics/attention.py"
        )
    return torch.stack([weights.reshape(-1, *weights.shape[-2:]) for weights in noted])


def habits(weights: Tensor) -> dict[str, float]:
    """Return the mean weight on three kinds of keys, over one head's queries from the third on."""
    rows = weights[2:]
    own = weights.diagonal()[2:]
    before = weights.diagonal(-1)[1:]
    return {
        "first word": rows[:, 0].mean().item(),
        "word before": before.mean().item(),
        "itself": own.mean().item(),
    }


def farthest_look(weights: Tensor) -> tuple[int, int]:
    """Return query and key of one head's largest weight.

    Keys that are the first word, the query itself or the word before it are left out.
    """
    far = weights.tril(-2)
    far[:, 0] = 0
    query, key = divmod(int(far.argmax()), len(weights))
    return query, key


def lab(chosen: argparse.Namespace) -> None:
    """Train a model, run it on the sentence, print each head's mean weights, draw all weights."""
    from cs336_basics.transformer import TransformerLM

    pieces = split(chosen.sentence)
    if not 3 <= len(pieces) <= _CONTEXT:
        raise LabError(f"the sentence has {len(pieces)} words; give one of 3 to {_CONTEXT} words")
    vocabulary, ids = story_words(chosen.bytes, 512, chosen.seed)
    torch.manual_seed(chosen.seed)
    model = TransformerLM(
        vocab_size=len(vocabulary.words),
        context_length=_CONTEXT,
        d_model=64,
        num_layers=2,
        num_heads=4,
        d_ff=192,
        rope_theta=10_000.0,
    )
    run_of_losses = fit(
        model,
        ids,
        steps=chosen.steps,
        batch_size=16,
        context_length=_CONTEXT,
        learning_rate=8e-3,
        seed=chosen.seed,
    )
    for step, loss in enumerate(run_of_losses, 1):
        if step in (1, chosen.steps) or step % 100 == 0:
            say(f"step {step:>4}: loss {loss:.2f}")
    weights = look(model, torch.from_numpy(vocabulary.ids(pieces).astype("int64")))
    say(
        f"\n{'mean weight on':<16}"
        + "".join(f"{name:>14}" for name in habits(weights[0, 0]))
        + "      largest weight farther back"
    )
    for layer, heads in enumerate(weights):
        for head, of_head in enumerate(heads):
            row = "".join(f"{share:14.2f}" for share in habits(of_head).values())
            query, key = farthest_look(of_head)
            look_back = f"{pieces[query]} → {pieces[key]} {of_head[query, key]:.2f}"
            say(f"  layer {layer} head {head}{row}      {look_back}")
    shown = [piece if piece in vocabulary.words else f"{piece} {UNKNOWN}" for piece in pieces]
    file = chosen.out / "attention-map.svg"
    write(lambda: _picture(weights, shown), file)
    say(f"\npicture: {file}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, and run the lab."""
    options = parser(__doc__ or "")
    options.add_argument(
        "--sentence", default=SENTENCE, metavar="TEXT", help="the sentence that the model reads"
    )
    options.add_argument(
        "--steps", type=int, default=600, metavar="N", help="steps of training (default: 600)"
    )
    options.add_argument(
        "--bytes",
        type=int,
        default=1_000_000,
        metavar="N",
        help="size of the stories to train on (default: 1000000)",
    )
    run(lab, options, arguments)


def _picture(weights: Tensor, words: Sequence[str]) -> Figure:
    layers, heads, length, _ = weights.shape
    figure = Figure(figsize=(7.2, 1.95 * layers + 0.5), layout="constrained")
    grid = figure.subplots(layers, heads, squeeze=False)
    for layer, row in enumerate(grid):
        for head, axes in enumerate(row):
            _head(axes, weights[layer, head])
            query, key = farthest_look(weights[layer, head])
            axes.plot([key], [query], "o", color=RED, fillstyle="none", markersize=5, mew=1)
            axes.set_title(
                f"layer {layer}, head {head}\n{words[query]} → {words[key]}", fontsize=7.5
            )
            if head == 0:
                axes.set_yticks(range(length), words, fontsize=5)
            if layer == layers - 1:
                axes.set_xticks(range(length), words, fontsize=5, rotation=90)
    return figure


def _head(axes: Axes, weights: Tensor) -> None:
    length = len(weights)
    future = torch.ones(length, length).triu(1).bool()
    shown = weights.masked_fill(future, torch.nan).numpy()
    axes.imshow(shown, cmap=PAPER_TO_BLUE, vmin=0, vmax=1, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


if __name__ == "__main__":
    main()
