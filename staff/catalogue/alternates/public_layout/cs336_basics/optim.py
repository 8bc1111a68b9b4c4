"""Everything around the update of the weights: AdamW, the schedule, gradient clipping."""

import math
from collections.abc import Callable, Iterable

import torch


class AdamW(torch.optim.Optimizer):
    """AdamW with the step size adjusted for both moments; decays after the update."""

    def __init__(self, params, lr=1e-3, weight_decay=0.01, betas=(0.9, 0.999), eps=1e-8):
        if lr < 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, betas=betas, eps=eps))

    def step(self, closure: Callable | None = None):
        loss = None if closure is None else closure()
        for group in self.param_groups:
            lr, wd, eps = group["lr"], group["weight_decay"], group["eps"]
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data
                state = self.state[p]
                t = state.get("t", 1)
                m = state.get("m", torch.zeros_like(p.data))
                v = state.get("v", torch.zeros_like(p.data))
                m = b1 * m + (1 - b1) * grad
                v = b2 * v + (1 - b2) * grad**2
                step_size = lr * math.sqrt(1 - b2**t) / (1 - b1**t)
                p.data -= step_size * m / (torch.sqrt(v) + eps)
                p.data -= lr * wd * p.data
                state["t"] = t + 1
                state["m"] = m
                state["v"] = v
        return loss


def cosine_lr(t: int, lr_max: float, lr_min: float, t_warm: int, t_cos: int) -> float:
    """Linear warm-up, one half cosine, then flat."""
    if t < t_warm:
        return t / t_warm * lr_max
    if t <= t_cos:
        phase = math.pi * (t - t_warm) / (t_cos - t_warm)
        return lr_min + 0.5 * (1 + math.cos(phase)) * (lr_max - lr_min)
    return lr_min


def clip_grad(params: Iterable[torch.nn.Parameter], max_norm: float, eps: float = 1e-6) -> None:
    """Clip by the global norm, in place."""
    grads = [p.grad for p in params if p.grad is not None]
    total = math.sqrt(sum(float((g.detach().float() ** 2).sum()) for g in grads))
    if total >= max_norm:
        for g in grads:
            g.detach().mul_(max_norm / (total + eps))
