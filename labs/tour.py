"""Go the whole way from a text to a model that writes, and show it on one page.

    python -m labs.tour --out tour

The tour makes 2 MB of stories. Your code trains a vocabulary of 1,000 tokens and a small model on
them, and the model writes. A few minutes later `tour/index.html` shows the results.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from cs336_basics.accounting import count_parameters
from cs336_basics.config import make_config
from cs336_basics.decoding import decode, next_token_logits
from cs336_basics.tokenizer import Tokenizer
from cs336_basics.train_bpe import train_bpe
from cs336_basics.training import build_model, train
from labs.stories import SEPARATOR, text_of
from labs.tour_page import Tour, page

TEMPERATURES = (0.4, 0.8, 1.2)
SENTENCE = "The curious badger couldn't find her golden key, so she asked an old sailor."


def main() -> None:
    """Run every stage of the tour, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path("tour"), help="the folder to write to (default: tour)"
    )
    parser.add_argument(
        "--bytes", type=int, default=2_000_000, help="size of the text in bytes (default: 2000000)"
    )
    parser.add_argument("--steps", type=int, default=400, help="steps of training (default: 400)")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    tour = Tour()
    tokenizer, ids = _text_to_ids(tour, chosen.out, chosen.bytes)
    _train_and_write(tour, chosen.out, tokenizer, ids, chosen.steps)
    file = chosen.out / "index.html"
    file.write_text(page(tour), "utf-8")
    sys.stdout.write(f"open {file}\n")


def unigram_entropy(ids: npt.NDArray[np.integer]) -> float:
    """Return `−Σ p log p` over the tokens' frequencies, in nats per token.

    No model that ignores the context has a lower loss, so a loss below it shows that the model uses
    the context.
    """
    counts = np.bincount(ids)
    shares = counts[counts > 0] / len(ids)
    return float(-(shares * np.log(shares)).sum())


def _text_to_ids(tour: Tour, out: Path, size: int) -> tuple[Tokenizer, npt.NDArray[np.integer]]:
    text_file = out / "stories.txt"
    with _stop(tour, "write stories"):
        text = "".join(text_of(size, seed=1))
        text_file.write_text(text, "utf-8", newline="")
        tour.text_bytes = text_file.stat().st_size
    with _stop(tour, "train the vocabulary"):
        vocab, merges = train_bpe(text_file, 1_000, [SEPARATOR])
        tokenizer = Tokenizer(vocab, merges, [SEPARATOR])
        words = {token.decode("utf-8", "replace") for token in vocab.values()} - {SEPARATOR}
        tour.longest = sorted(words, key=lambda word: (-len(word), word))[:24]
    with _stop(tour, "encode"):
        ids = np.fromiter(tokenizer.encode_iterable([text]), dtype=np.uint16)
        tour.tokens, tour.unigram = len(ids), unigram_entropy(ids)
        tour.pieces = [tokenizer.decode([token]) for token in tokenizer.encode(SENTENCE)]
    return tokenizer, ids


def _train_and_write(
    tour: Tour, out: Path, tokenizer: Tokenizer, ids: npt.NDArray[np.integer], steps: int
) -> None:
    sizes = {"vocab_size": 1_000, "context_length": 128, "d_model": 128, "num_layers": 4}
    sizes |= {"num_heads": 4, "d_ff": 344}
    tour.parameters = count_parameters(**sizes)
    tour.config = make_config(
        {
            **sizes,
            "steps": steps,
            "batch_size": 16,
            "max_learning_rate": 3e-3,
            "min_learning_rate": 3e-4,
            "warmup_iters": max(1, steps // 20),
            "validation_tokens": 20_000,
            "validate_every": max(1, steps // 12),
            "log_every": max(1, steps // 150),
        }
    )
    with _stop(tour, "train the model"):
        tour.metrics = train(
            ids,
            tour.config,
            out / "run",
            on_log=lambda step, row: _say(f"\rstep {step}: {row['train_loss']:.3f}  "),
        )
    with _stop(tour, "write"):
        model = build_model(tour.config)
        state = torch.load(out / "run" / "checkpoint.pt", map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        next_logits = next_token_logits(model, tour.config.context_length)
        (stop,) = tokenizer.encode(SEPARATOR)
        for temperature in TEMPERATURES:
            written = decode(
                next_logits, [stop], 120, temperature, top_p=0.95, stop_token=stop, seed=7
            )
            tour.samples[temperature] = tokenizer.decode(written).strip()


@contextmanager
def _stop(tour: Tour, name: str) -> Iterator[None]:
    """Print the stage of the tour, and measure its time."""
    _say(f"{name} …\n")
    start = time.perf_counter()
    yield
    tour.seconds[name] = time.perf_counter() - start
    _say(f"\r{name}: {tour.seconds[name]:.1f} s\n")


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


if __name__ == "__main__":
    main()
