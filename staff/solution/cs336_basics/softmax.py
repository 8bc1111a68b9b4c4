"""Softmax: scores of any size become probabilities."""

from jaxtyping import Float
from torch import Tensor


def softmax(x: Float[Tensor, "..."], dim: int) -> Float[Tensor, "..."]:
    """`exp(x_i) / Σ_j exp(x_j)` along the axis `dim`; every slice along it sums to one.

    Finite for finite inputs of any size. The input is left as it was.
    """
    exponentials = (x - x.amax(dim=dim, keepdim=True).detach()).exp_()
    return exponentials * exponentials.sum(dim=dim, keepdim=True).reciprocal()
