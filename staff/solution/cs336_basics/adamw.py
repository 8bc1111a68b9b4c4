"""AdamW: an optimizer with an adaptive step for each parameter and decoupled weight decay."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
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
        for name, value in (("lr", lr), ("eps", eps), ("weight_decay", weight_decay)):
            if not value >= 0:
                raise ValueError(f"{name} must not be negative; it is {value}")
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"betas must be in [0, 1); they are {betas}")
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

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
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    _update(parameter, self.state[parameter], group)
        return loss


def _update(parameter: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Update one parameter and its state."""
    if not state:
        state["step"] = 0
        state["first_moment"] = torch.zeros_like(parameter)
        state["second_moment"] = torch.zeros_like(parameter)
    gradient, lr, (beta1, beta2) = parameter.grad, group["lr"], group["betas"]
    m, v = state["first_moment"], state["second_moment"]
    state["step"] += 1
    m.mul_(beta1).add_(gradient, alpha=1 - beta1)
    v.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    m_hat = m / (1 - beta1 ** state["step"])
    v_hat = v / (1 - beta2 ** state["step"])
    parameter.mul_(1 - lr * group["weight_decay"])
    parameter.addcdiv_(m_hat, v_hat.sqrt() + group["eps"], value=-lr)
