"""Gradient clipping: it limits the change of the weights that one unusual batch can cause."""

from collections.abc import Iterable

from jaxtyping import Float
from torch import Tensor, nn


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
    raise NotImplementedError("gradient_clipping: handout §3.4")
