"""RMSNorm: scale every token's vector to a root mean square of 1."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """Computes `y = x / sqrt(mean(x²) + eps) · weight` over the features of each token.

    The gain `weight` has one entry per feature and starts at ones. Half-precision inputs are
    normalised in float32, since their squares overflow, and the result has the input's dtype
    (Zhang & Sennrich 2019, eq. 4).

    Args:
        d_model: number of features.
        eps: added to the mean of squares.
        device: the device of the gain.
        dtype: the dtype of the gain.
    """

    weight: Float[nn.Parameter, " d_model"]

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-5,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        raise NotImplementedError("rmsnorm: handout §2.3")

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Normalise over the last axis; there may be any leading axes."""
        raise NotImplementedError("rmsnorm: handout §2.3")
