"""AdamW: steps of a size that suits each parameter, and weight decay beside them."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2).

    With the gradient g at step t = 1, 2, …, for each parameter θ:

        m ← β₁ m + (1 − β₁) g            v ← β₂ v + (1 − β₂) g²
        m̂ = m / (1 − β₁ᵗ)                v̂ = v / (1 − β₂ᵗ)
        θ ← θ − lr · (m̂ / (sqrt(v̂) + eps) + weight_decay · θ)

    m and v start at zeros. They have the dtype of their parameter, so keep parameters in float32
    and leave half precision to autocast: in bfloat16 small steps are rounded away.

    Args:
        params: parameters, or groups of them: dicts with `params` and settings of their own.
        lr: the learning rate.
        betas: decay rates of the two moments, `(β₁, β₂)`.
        eps: keeps the step finite where gradients are zero.
        weight_decay: share of the parameter, times `lr`, that is taken off at each step.

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
        """Move every parameter that has a gradient, by the settings that its group has now.

        Each parameter counts its own steps; one whose `grad` is None stays as it is, and so does
        its state.

        Args:
            closure: computes the loss anew, with its gradients, before the parameters move.

        Returns:
            what `closure` returned; None without one.
        """
        raise NotImplementedError("adamw: handout §3.2")
