"""How fast a model writes, with a key/value cache and without, and what the cache costs.

    python -m labs.kv_cache_speed

Without a cache the model is shown the whole text again for every new token, so each costs more than
the one before. With one it is shown the new token alone. First both must write the same tokens;
then the table says how many they write in a second once the text is so long. Nothing is trained:
the speed doesn't depend on what the weights are.
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
"""Takes a text of ids, `(1, seq)`, and gives the next one, `(1, 1)`: the likeliest."""

_SAME = 48
"""How many tokens are compared."""


@dataclass(frozen=True)
class Speed:
    """What was measured with texts of one length."""

    length: int
    plain: float
    """Tokens a second without a cache."""
    cached: float
    """The same with one."""
    cache_bytes: int
    """Size of all keys and values of the text."""


def writers(chosen: argparse.Namespace) -> tuple[Writer, Callable[[], Writer]]:
    """A writer without a cache, and a maker of writers with an empty one each."""
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
    """Let a writer go on; give the text and the time of a token, in seconds.

    It is the shortest time of all, the one that other programs disturbed least. The first token is
    not timed: that is when a cache reads the text so far.
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
    """Compare what both write and how fast, and draw it."""
    plain, with_cache = writers(chosen)
    start = torch.randint(1_000, (1, 16))
    texts = [continued(start, writer, _SAME)[0] for writer in (plain, with_cache())]
    if not torch.equal(*texts):
        place = int((texts[0] != texts[1]).int().argmax()) - 16
        raise LabError(
            f"with the cache another text comes out, from new token {place} on; "
            "pytest --task=kv_cache may say why"
        )
    say(f"both write the same {_SAME} tokens")
    say(f"\n{'':<12}{'tokens a second':^24}")
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
        ("longest", 1024, "the longest text; each is twice as long as the one before"),
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
