"""Softmax: scores of any size become probabilities."""

import torch
from jaxtyping import Float
from torch import Tensor


def softmax(x: Float[Tensor, "..."], dim: int) -> Float[Tensor, "..."]:
    """`exp(x_i) / Σ_j exp(x_j)` along the axis `dim`; every slice along it sums to one.

    Finite for finite inputs of any size. The result has the dtype of `x`; half precision is
    computed in float32. The input is left as it was (Goodfellow, Bengio & Courville 2016,
    sections 4.1 and 6.2.2.3).
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    # A shift by the same number changes nothing, so no gradient has to flow through the maximum.
    largest = wide.amax(dim=dim, keepdim=True).detach()
    exponentials = torch.exp(wide - largest)
    return (exponentials / exponentials.sum(dim=dim, keepdim=True)).to(x.dtype)
