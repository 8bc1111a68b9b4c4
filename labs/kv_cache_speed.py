"""Measure how fast a model writes with and without a key/value cache, and what the cache costs.

    python -m labs.kv_cache_speed

Without a cache the model reads the whole text again for every new token, so each token costs more
than the one before. With a cache the model reads only the new token. The lab first checks that both
write the same tokens. Then the table shows, for each length of the text, how many tokens each
writes in a second. Nothing is trained, because the speed doesn't depend on the weights.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from torch import Tensor

from labs.drawing import BLUE, GREY, RED, write
from labs.program import LabError, parser, run, say

Writer = Callable[[Tensor], Tensor]
"""Takes the ids of a text, `(1, seq)`, and returns the most likely next id, `(1, 1)`."""

_SAME = 48
"""How many tokens of the two texts are compared."""


@dataclass(frozen=True)
class Speed:
    """The measurements for texts of one length."""

    length: int
    plain: float
    """Tokens per second without a cache."""
    cached: float
    """Tokens per second with a cache."""
    cache_bytes: int
    """Size of all cached keys and values of the text."""


def writers(chosen: argparse.Namespace) -> tuple[Writer, Callable[[], Writer]]:
    """Return a writer without a cache, and a function that makes writers with an empty cache."""
    from cs336_basics.causal_lm import CausalLM, TransformerTrunk
    from cs336_basics.kv_cache import KVCache

    torch.manual_seed(chosen.seed)
    length = chosen.longest + max(chosen.tokens, _SAME)
    trunk = TransformerTrunk(
        vocab_size=1_000,
        context_length=length,
        d_model=chosen.hidden_size,
        num_layers=chosen.layers,
        num_heads=chosen.heads,
        num_kv_heads=chosen.kv_heads,
        d_ff=3 * chosen.hidden_size,
        rope_theta=10_000.0,
    )
    model = CausalLM(trunk).eval()

    def plain(ids: Tensor) -> Tensor:
        logits, _ = model(ids, logits_to_keep=1)
        return logits.argmax(-1)

    def with_cache() -> Writer:
        caches = [KVCache(length) for _ in range(chosen.layers)]
        shown = 0

        def cached(ids: Tensor) -> Tensor:
            nonlocal shown
            logits, _ = model(ids[:, shown:], logits_to_keep=1, caches=caches)
            shown = ids.shape[1]
            return logits.argmax(-1)

        return cached

    return plain, with_cache


@torch.no_grad()
def continued(ids: Tensor, writer: Writer, tokens: int) -> tuple[Tensor, float]:
    """Continue a text; return the new text and the time of one token, in seconds.

    The shortest time counts, because other programs disturbed it least. The first token is not
    timed, because a cache reads the whole text so far for it.
    """
    ids = torch.cat([ids, writer(ids)], dim=1)
    times = []
    for _ in range(tokens - 1):
        start = time.perf_counter()
        token = writer(ids)
        times.append(time.perf_counter() - start)
        ids = torch.cat([ids, token], dim=1)
    return ids, min(times)


def lab(chosen: argparse.Namespace) -> None:
    """Compare what both writers write and how fast they are, and draw their speed."""
    plain, with_cache = writers(chosen)
    start = torch.randint(1_000, (1, 16))
    texts = [continued(start, writer, _SAME)[0] for writer in (plain, with_cache())]
    if not torch.equal(*texts):
        place = int((texts[0] != texts[1]).int().argmax()) - 16
        raise LabError(
            f"the text with the cache differs from the text without it, from new token {place} on; "
            "run  pytest --task=kv_cache  to see why"
        )
    say(f"both write the same {_SAME} tokens")
    say(f"\n{'':<12}{'tokens per second':^24}")
    say(f"{'length':<12}{'without':>12}{'cache':>12}{'kB kept':>12}")
    speeds = []
    length = 32
    while length <= chosen.longest:
        text = torch.randint(1_000, (1, length))
        slow, fast = (continued(text, w, chosen.tokens)[1] for w in (plain, with_cache()))
        kept = 2 * 4 * chosen.layers * length * chosen.kv_heads
        kept *= chosen.hidden_size // chosen.heads
        speeds.append(Speed(length, 1 / slow, 1 / fast, kept))
        say(f"{length:<12}{1 / slow:12.1f}{1 / fast:12.1f}{kept / 1000:12.0f}")
        length *= 2
    file = chosen.out / "kv-cache-speed.svg"
    write(lambda: _picture(speeds), file)
    say(f"\npicture: {file}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, and run the lab."""
    options = parser(__doc__ or "")
    for name, default, text in (
        ("hidden_size", 256, "width of the model"),
        ("layers", 4, "number of blocks"),
        ("heads", 8, "number of query heads"),
        ("kv_heads", 4, "number of key/value heads"),
        (
            "longest",
            1024,
            "length of the longest text; each text is twice as long as the one before",
        ),
        ("tokens", 17, "tokens to write at each length, at least 2"),
    ):
        options.add_argument(
            f"--{name}", type=int, default=default, metavar="N", help=f"{text} (default: {default})"
        )
    run(lab, options, arguments)


def _picture(speeds: Sequence[Speed]) -> Figure:
    lengths = [speed.length for speed in speeds]
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.4, 1])
    for name, values, colour in (
        ("with a cache", [speed.cached for speed in speeds], BLUE),
        ("without", [speed.plain for speed in speeds], RED),
    ):
        left.plot(lengths, values, "o-", color=colour, markersize=4, label=name)
    left.set_xscale("log", base=2)
    left.set_yscale("log")
    left.set(title="speed", ylabel="tokens a second")
    left.legend(loc="lower left")
    right.bar(range(len(speeds)), [speed.cache_bytes / 1e6 for speed in speeds], color=GREY)
    right.set(title="its price", ylabel="MB of keys and values")
    right.set_xticks(range(len(speeds)), [f"{length}" for length in lengths])
    left.set_xticks(lengths, [f"{length}" for length in lengths])
    left.minorticks_off()
    for axes in (left, right):
        axes.set_xlabel("tokens in the text")
    return figure


if __name__ == "__main__":
    main()
