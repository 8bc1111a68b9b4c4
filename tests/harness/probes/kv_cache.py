"""Probes of a key/value cache: on its own, and used by a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tests.harness.plain import Plain, plain
from tests.harness.probes.symbols import resolve


def cache_steps(
    symbol: str, max_seq_len: int, steps: Sequence[tuple[Tensor, Tensor] | None]
) -> list[dict[str, Plain]]:
    """Append to a cache at each step, and describe the results.

    Args:
        symbol: the class of the cache, as `package.module:Name`.
        max_seq_len: its only argument.
        steps: the keys and values to append; None resets the cache.
    """
    cache = resolve(symbol)(max_seq_len)
    seen: list[dict[str, Plain]] = []
    for step in steps:
        found: dict[str, Plain] = {"error": None}
        if step is None:
            cache.reset()
        else:
            try:
                keys, values = cache.append(*step)
                found |= {"keys": plain(keys), "values": plain(values)}
                found["requires_grad"] = keys.requires_grad or values.requires_grad
            except (IndexError, RuntimeError, ValueError) as error:
                found["error"] = type(error).__name__
        seen.append(found | {"length": cache.length})
    return seen


def cached_logits(
    symbol: str,
    model: Sequence[str],
    arguments: Mapping[str, Plain],
    texts: Sequence[Tensor],
) -> list[dict[str, Plain]]:
    """Compute the next logits of several texts, and record the ids that the model got.

    Args:
        symbol: the function that turns a model into `next_logits` with a cache.
        model: the class of the trunk, and that of the whole model, which takes a trunk.
        arguments: the keyword arguments of the trunk.
        texts: the ids of each text.
    """
    torch.default_generator.manual_seed(0)
    trunk = resolve(model[0])(**arguments)
    built = resolve(model[1])(trunk)
    shown: list[Tensor] = []

    def note(_: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        shown.append([*args, *named.values()][0].clone())

    next_logits = resolve(symbol)(built)
    seen = []
    for ids in texts:
        shown.clear()
        watching = trunk.register_forward_pre_hook(note, with_kwargs=True)
        logits = next_logits(ids.clone())
        watching.remove()
        with torch.no_grad():
            expected = built(ids)[0][:, -1]
        seen.append(
            {
                "logits": plain(logits),
                "requires_grad": logits.requires_grad,
                "shown": list(shown),
                "expected": plain(expected),
            }
        )
    return seen
