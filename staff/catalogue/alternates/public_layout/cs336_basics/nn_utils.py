"""Functions without parameters that the modules in model.py are built on."""

import math

import torch
from torch import Tensor


def silu(x: Tensor) -> Tensor:
    """Elementwise x * sigmoid(x)."""
    return x * torch.sigmoid(x)


def stable_softmax(x: Tensor, dim: int) -> Tensor:
    """Softmax over `dim`; the largest entry is subtracted first, so exp can't overflow."""
    biggest = torch.max(x, dim=dim, keepdim=True).values
    e = torch.exp(x - biggest)
    return e / torch.sum(e, dim=dim, keepdim=True)


def causal_mask(seq_len: int, device: torch.device | None = None) -> Tensor:
    """(seq_len, seq_len) bool, True where the key is not later than the query."""
    t = torch.arange(seq_len, device=device)
    return t[None, :] <= t[:, None]


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Scaled dot-product attention.

    q is (..., queries, d_k), k is (..., keys, d_k), v is (..., keys, d_v). The mask broadcasts to
    (..., queries, keys) and is True where attention is allowed.
    """
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.matmul(stable_softmax(scores, dim=-1), v)
