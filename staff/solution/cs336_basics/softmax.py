"""Softmax: scores of any size become probabilities."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

_LOG2_E = math.log2(math.e)


def softmax(x: Float[Tensor, "..."], dim: int) -> Float[Tensor, "..."]:
    """`exp(x_i) / Σ_j exp(x_j)` along the axis `dim`; every slice along it sums to one.

    Finite for finite inputs of any size. The input is left as it was.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    weights: Tensor = _Softmax.apply(wide, dim)  # type: ignore[no-untyped-call]
    return weights.to(x.dtype)


class _Softmax(torch.autograd.Function):
    """Softmax, with its gradient by hand: `w · (g − Σ_j g_j w_j)` needs the weights w alone.

    e^x is taken as 2^(x log2 e), which processors are faster at, at −∞ above all.
    """

    @staticmethod
    def forward(ctx: Any, x: Float[Tensor, "..."], dim: int) -> Float[Tensor, "..."]:
        """Shift each slice by its maximum, so that no power overflows."""
        powers = (x - x.amax(dim=dim, keepdim=True)).mul_(_LOG2_E).exp2_()
        weights = powers.mul_(powers.sum(dim=dim, keepdim=True).reciprocal_())
        ctx.save_for_backward(weights)
        ctx.dim = dim
        return weights

    @staticmethod
    def backward(ctx: Any, gradient: Float[Tensor, "..."]) -> tuple[Float[Tensor, "..."], None]:
        """Take each slice's mean gradient, by its weights, off the gradients."""
        (weights,) = ctx.saved_tensors
        shares = gradient * weights
        return shares.addcmul_(weights, shares.sum(dim=ctx.dim, keepdim=True), value=-1), None
