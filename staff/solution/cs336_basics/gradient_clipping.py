"""Gradient clipping: it limits the change of the weights that one unusual batch can cause."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn

_EPS = 1e-6


def clip_gradients(parameters: Iterable[nn.Parameter], max_l2_norm: float) -> Float[Tensor, ""]:
    """Scale all gradients by `max_l2_norm / (norm + 1e-6)` if `norm` exceeds `max_l2_norm`.

    `norm` is the L2 norm of all gradients together, as if they were one long vector (Pascanu et al.
    2013, algorithm 1). The gradients are changed in place. If the norm is not above the maximum,
    they do not change, not even by one bit. Parameters without a gradient and frozen parameters
    (`requires_grad` is False) are skipped.

    Args:
        parameters: the parameters, which may be an iterator.
        max_l2_norm: the largest norm allowed.

    Returns:
        the norm before clipping, in float32 or float64; zero if there are no gradients.
    """
    gradients = [p.grad for p in parameters if p.requires_grad and p.grad is not None]
    if not gradients:
        return torch.zeros(())
    wide = torch.promote_types(gradients[0].dtype, torch.float32)
    norms = [torch.linalg.vector_norm(g, dtype=wide).to(gradients[0].device) for g in gradients]
    norm = torch.linalg.vector_norm(torch.stack(norms))
    if norm > max_l2_norm:
        for gradient in gradients:
            gradient.mul_((max_l2_norm / (norm + _EPS)).to(gradient.device))
    return norm
