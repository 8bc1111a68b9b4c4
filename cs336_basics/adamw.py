"""AdamW: an optimizer with an adaptive step for each parameter and decoupled weight decay."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2).

    Step t = 1, 2, … changes each parameter θ, whose gradient is g:

        m ← β₁ m + (1 − β₁) g            v ← β₂ v + (1 − β₂) g²
        m̂ = m / (1 − β₁ᵗ)                v̂ = v / (1 − β₂ᵗ)
        θ ← θ − lr · (m̂ / (sqrt(v̂) + eps) + weight_decay · θ)

    m and v start at zeros, and have the dtype of their parameter. Keep parameters in float32, and
    use autocast for half precision: in bfloat16, small steps are lost by rounding.

    Args:
        params: the parameters, or groups of them: dicts with `params` and their own settings.
        lr: the learning rate.
        betas: the decay rates of the two moments, `(β₁, β₂)`.
        eps: added to the denominator, so that the step is finite if all gradients are zero.
        weight_decay: the strength of the weight decay.

    Raises:
        ValueError: `lr`, `eps` or `weight_decay` is negative, or a beta is not in [0, 1).
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        raise NotImplementedError("adamw: handout §3.2")

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient, with the current settings of its group.

        Each parameter counts its own steps. If the `grad` of a parameter is None, neither the
        parameter nor its state changes.

        Args:
            closure: computes the loss and its gradients again, before the update.

        Returns:
            the result of `closure`; None if there is no closure.
        """
        raise NotImplementedError("adamw: handout §3.2")
