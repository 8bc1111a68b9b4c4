"""Pieces of the training loop, mostly as plain functions."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def xent(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy, averaged."""
    logits = logits.reshape(-1, logits.shape[-1])
    labels = labels.reshape(-1)
    top = logits.amax(dim=1, keepdim=True)
    log_z = top[:, 0] + (logits - top).exp().sum(dim=1).log()
    return (log_z - logits[torch.arange(labels.shape[0], device=labels.device), labels]).mean()


class Adam(torch.optim.Optimizer):
    """Adam with decoupled decay, on bias-corrected moments."""

    def __init__(self, params, lr: float, weight_decay=1e-2, betas=(0.9, 0.999), eps=1e-8) -> None:
        defaults = {"lr": lr, "weight_decay": weight_decay, "betas": betas, "eps": eps}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for g in self.param_groups:
            for w in g["params"]:
                if w.grad is None:
                    continue
                s = self.state[w]
                if len(s) == 0:
                    s["n"], s["mean"], s["square"] = 0, torch.zeros_like(w), torch.zeros_like(w)
                s["n"] += 1
                s["mean"].lerp_(w.grad, 1 - g["betas"][0])
                s["square"].lerp_(w.grad.square(), 1 - g["betas"][1])
                mean = s["mean"] / (1 - g["betas"][0] ** s["n"])
                square = s["square"] / (1 - g["betas"][1] ** s["n"])
                w.copy_(w * (1 - g["lr"] * g["weight_decay"]))
                w.copy_(w - g["lr"] * mean / (square.sqrt() + g["eps"]))
        return loss


def schedule(step, high, low, warm, end):
    """Learning rate at a step."""
    if step < warm:
        return high * step / warm
    part = min((step - warm) / max(end - warm, 1), 1.0)
    return low + (high - low) * (1 + np.cos(np.pi * part)) / 2


def clip(params, limit: float) -> None:
    """Scale down gradients that are too long."""
    params = [p for p in params if p.grad is not None]
    norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in params))
    if norm > limit:
        for p in params:
            p.grad.mul_(limit / norm)


def batch(ids, count: int, width: int, device: str):
    """Random rows of width + 1 tokens, cut into inputs and labels."""
    at = np.random.randint(0, len(ids) - width, size=count)
    rows = np.stack([ids[a : a + width + 1] for a in at]).astype(np.int64)
    rows = torch.from_numpy(rows).to(device)
    return rows[:, :-1], rows[:, 1:]


def dump(model, optimizer, step: int, out) -> None:
    """Save as a tuple."""
    torch.save((model.state_dict(), optimizer.state_dict(), step), out)


def restore(src, model, optimizer) -> int:
    """Load what dump has saved."""
    weights, moments, step = torch.load(src, map_location="cpu")
    model.load_state_dict(weights)
    optimizer.load_state_dict(moments)
    return step
