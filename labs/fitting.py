"""Fitting: train a small model for a minute with the submission's loss, batches and optimizer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import nn


def fit(
    model: nn.Module,
    ids: npt.NDArray[np.integer],
    *,
    steps: int,
    batch_size: int,
    context_length: int,
    learning_rate: float,
    seed: int,
) -> Iterator[float]:
    """Train a language model in place, and yield the loss of each batch before its update.

    The learning rate rises to `learning_rate` over the first twentieth of the steps. Then it falls
    to a tenth of that.
    """
    from cs336_basics.adamw import AdamW
    from cs336_basics.batches import get_batch
    from cs336_basics.cross_entropy import cross_entropy

    torch.manual_seed(seed)
    optimizer = AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.1)
    warmup = max(1, steps // 20)
    for step in range(steps):
        share = min((step + 1) / warmup, 1 - 0.9 * (step + 1 - warmup) / steps)
        for group in optimizer.param_groups:
            group["lr"] = share * learning_rate
        x, y = get_batch(ids, batch_size, context_length, "cpu")
        loss = cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()
