"""Decoding with a cache: the model computes every token only once."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cs336_basics.causal_lm import CausalLM
from cs336_basics.decoding import NextLogits
from cs336_basics.kv_cache import KVCache


def cached_next_logits(model: CausalLM) -> NextLogits:
    """Turn a model into a `next_logits` function for `decode`, with a cache inside.

    The returned function takes ids on any device, and returns the logits at the last position,
    without gradients. If the ids extend those of the last call, the model gets only the new ones;
    otherwise the cache is reset. For more than `context_length` ids the function raises
    `IndexError`: unlike `next_token_logits`, it does not drop the oldest ids.

    Args:
        model: the model, in training or in evaluation mode; the mode is not changed.
    """
    caches = [KVCache(model.trunk.context_length) for _ in model.trunk.layers]
    shown = torch.empty(0, 0, dtype=torch.int64)

    @torch.no_grad()
    def next_logits(token_ids: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch vocab_size"]:
        nonlocal shown
        ids = token_ids.to(model.lm_head.weight.device)
        if not _continues(ids, shown):
            shown = ids[:, :0]
            for cache in caches:
                cache.reset()
        logits, _ = model(ids[:, shown.shape[1] :], logits_to_keep=1, caches=caches)
        shown = ids.clone()
        return logits[:, -1]

    return next_logits


def _continues(ids: Int[Tensor, "batch seq"], shown: Int[Tensor, "batch shorter"]) -> bool:
    length = shown.shape[1]
    return ids.shape[1] > length and torch.equal(ids[:, :length], shown)
