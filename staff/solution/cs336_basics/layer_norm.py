"""LayerNorm: normalise each token over its features, then scale and shift them."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Computes `y = (x − mean(x)) / sqrt(var(x) + eps) · weight + bias` over each token's features.

    The variance is the mean of the squared deviations: their sum divided by `d_model`. The gain
    `weight` and the shift `bias` have one entry per feature and start at ones and at zeros.
    Half-precision inputs are normalised in float32, and the result has the input's dtype
    (Ba et al. 2016, eq. 4).

    Args:
        d_model: number of features.
        eps: added to the variance.
        device: the device of `weight` and `bias`.
        dtype: the dtype of `weight` and `bias`.
    """

    weight: Float[nn.Parameter, " d_model"]
    bias: Float[nn.Parameter, " d_model"]

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-5,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.zeros(d_model, device=device, dtype=dtype))

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Normalise over the last axis; there may be any leading axes."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        centred = wide - wide.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        normal = centred / torch.sqrt(variance + self.eps)
        return (normal * self.weight + self.bias).to(x.dtype)
