"""Write the page of the tour, one HTML file that needs no other file."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape

from cs336_basics.config import TrainingConfig

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2330; --soft: #667085; --line: #dfe3ea;
  --paper: #fbfbf9; --card: #fff; --accent: #2457c5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ee; --soft: #98a2b3; --line: #2c3340;
  --paper: #12151b; --card: #191e27; --accent: #8fb0ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 17px/1.6 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 3rem 1.25rem 5rem; }
h1 { font-size: 2.1rem; line-height: 1.2; margin: 0 0 .5rem; letter-spacing: -.02em; }
h2 { font-size: 1.2rem; margin: 3rem 0 .5rem; }
p { margin: .5rem 0 1rem; } .soft { color: var(--soft); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); gap: .75rem;
  margin: 2rem 0; }
.fact, blockquote { background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: .9rem 1.1rem; }
.fact b { display: block; font-size: 1.5rem; font-variant-numeric: tabular-nums; }
.fact span { color: var(--soft); font-size: .85rem; line-height: 1.3; display: block; }
.tokens { line-height: 2.1; }
.tokens span { border-radius: 5px; padding: .12em .12em; white-space: pre-wrap;
  background: color-mix(in srgb, var(--h) 26%, transparent); }
.words span { border: 1px solid var(--line); border-radius: 6px; padding: .1rem .4rem;
  margin: 0 .3rem .35rem 0; display: inline-block; white-space: pre;
  font: .85rem ui-monospace, monospace; }
figure { margin: 1rem 0; background: #fff; border: 1px solid var(--line); border-radius: 12px;
  padding: .75rem; } figure svg { width: 100%; height: auto; display: block; }
blockquote { margin: .5rem 0 1.25rem; white-space: pre-wrap; font-family: Georgia, serif; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td { border-top: 1px solid var(--line); padding: .4rem 0; } td + td { text-align: right; }
"""
_HUES = ("#3b82f6", "#f59e0b", "#10b981", "#ef4444", "#8b5cf6", "#14b8a6")


@dataclass
class Tour:
    """Everything that the page shows."""

    text_bytes: int = 0
    tokens: int = 0
    longest: list[str] = field(default_factory=list)
    """The longest tokens of the vocabulary."""
    pieces: list[str] = field(default_factory=list)
    """The tokens of one sentence."""
    unigram: float = 0.0
    """Entropy of the tokens' frequencies, in nats per token."""
    config: TrainingConfig | None = None
    parameters: int = 0
    metrics: dict[int, dict[str, float]] = field(default_factory=dict)
    samples: dict[float, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """The time of each stage."""


def page(tour: Tour) -> str:
    """Return the page as HTML."""
    last = tour.metrics[max(tour.metrics)]
    loss = last["validation_loss"]
    facts = {
        "bytes of stories": f"{tour.text_bytes:,}",
        "tokens, from a vocabulary of 1,000": f"{tour.tokens:,}",
        "bytes per token": f"{tour.text_bytes / tour.tokens:.2f}",
        "parameters": f"{tour.parameters:,}",
        "nats per token without context (unigram entropy)": f"{tour.unigram:.2f}",
        "nats per token, final loss on held-out text": f"{loss:.2f}",
    }
    samples = "".join(
        f'<p class="soft">at temperature {temperature:g}</p><blockquote>{escape(text)}</blockquote>'
        for temperature, text in tour.samples.items()
    )
    rows = "".join(f"<tr><td>{k}</td><td>{v:.1f} s</td></tr>" for k, v in tour.seconds.items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>From a text to a model that writes</title><style>{_STYLE}</style></head><body><main>
<h1>From a text to a model that writes</h1>
<p class="soft">Your own code made everything on this page: the vocabulary, the model, the loss, the
optimizer, and the words at the end.</p>
<div class="facts">{_facts(facts)}</div>
<h2>The text becomes tokens</h2>
<p class="tokens">{_coloured(tour.pieces)}</p>
<p>Each colour is one token. Characters that often occur together have become one token. The longest
tokens are:</p>
<p class="words">{_words(tour.longest)}</p>
<h2>The model learns</h2>
<p>A model that knows only the frequency of each token has a loss of {tour.unigram:.2f} nats per
token. Your model has reached {loss:.2f} nats, so it uses the tokens before. This is as if it chose
among {math.exp(loss):.1f} equally likely tokens, not {math.exp(tour.unigram):.0f}.</p>
<figure>{_curve(tour)}</figure>
<h2>The model writes</h2>
{samples}
<h2>How long it took</h2>
<table>{rows}</table>
</main></body></html>
"""


def _facts(facts: Mapping[str, str]) -> str:
    return "".join(
        f'<div class="fact"><b>{value}</b><span>{escape(name)}</span></div>'
        for name, value in facts.items()
    )


def _coloured(pieces: Iterable[str]) -> str:
    return "".join(
        f'<span style="--h: {_HUES[i % len(_HUES)]}">{escape(piece)}</span>'
        for i, piece in enumerate(pieces)
    )


def _words(words: Iterable[str]) -> str:
    return "".join(f"<span>{escape(word)}</span>" for word in words)


def _curve(tour: Tour) -> str:
    """Draw training and validation loss over the steps, with two losses to compare them with."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(7.2, 3.8), layout="constrained")
        axes = figure.subplots()
        for name, style in (("train_loss", "-"), ("validation_loss", "o-")):
            points = [(step, row[name]) for step, row in tour.metrics.items() if name in row]
            steps, losses = zip(*points, strict=True)
            label = name.replace("_", " ")
            axes.plot(steps, losses, style, markersize=4, linewidth=1.2, label=label)
        lines = {"unigram entropy": tour.unigram}
        if tour.config is not None:
            lines["all tokens equally likely"] = math.log(tour.config.vocab_size)
        for label, height in lines.items():
            axes.axhline(height, color="#888", linestyle="--", linewidth=0.9)
            axes.annotate(
                f"{label} {height:.2f}",
                (1, height),
                (-2, 3),
                color="#666",
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                ha="right",
            )
        axes.set(xlabel="step", ylabel="loss in nats per token", ylim=(0, None))
        axes.legend(frameon=False, loc="lower left")
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue().partition("?>")[2].partition(">")[2]
