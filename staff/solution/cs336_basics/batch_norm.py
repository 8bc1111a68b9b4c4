"""BatchNorm: normalise each feature over the batch, then scale and shift it."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class BatchNorm(nn.Module):
    """Computes `y = (x − mean) / sqrt(variance + eps) · weight + bias` separately for each feature.

    In training mode, mean and variance are those of the feature over the batch; this variance is
    the mean of the squared deviations. The call also updates `running_mean` and `running_var`:

        running ← (1 − momentum) · running + momentum · batch

    The update of `running_var` uses the *unbiased* variance, whose sum is divided by `batch − 1`.
    In evaluation mode the running statistics replace those of the batch, and do not change.

    `weight` and `bias` are learned and start at ones and zeros. `running_mean` and `running_var`
    are saved but not learned. They start at zeros and ones, have no gradient, and are float32, or
    float64 if `dtype` is float64. Half-precision inputs are normalised in float32, and the result
    has the input's dtype (Ioffe & Szegedy 2015, algorithms 1 and 2).

    Args:
        num_features: number of features.
        eps: added to the variance.
        momentum: the share of the newest batch in the running statistics.
        device: the device of the parameters and of the running statistics.
        dtype: the dtype of `weight` and `bias`.
    """

    weight: Float[nn.Parameter, " num_features"]
    bias: Float[nn.Parameter, " num_features"]
    running_mean: Float[Tensor, " num_features"]
    running_var: Float[Tensor, " num_features"]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.eps = eps
        self.momentum = momentum
        self.weight = nn.Parameter(torch.ones(num_features, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.zeros(num_features, device=device, dtype=dtype))
        kept = torch.promote_types(dtype or torch.float32, torch.float32)
        self.register_buffer("running_mean", torch.zeros(num_features, device=device, dtype=kept))
        self.register_buffer("running_var", torch.ones(num_features, device=device, dtype=kept))

    def forward(
        self, x: Float[Tensor, "batch num_features"]
    ) -> Float[Tensor, "batch num_features"]:
        """Normalise every feature, with the statistics of the batch or the running ones.

        Raises:
            ValueError: in training mode, the batch has fewer than two items.
        """
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        mean, variance = self.running_mean, self.running_var
        if self.training:
            if len(x) < 2:
                raise ValueError(f"a batch of {len(x)} has no variance; BatchNorm needs two items")
            mean, variance = wide.mean(dim=0), wide.var(dim=0, correction=0)
            self._follow(mean, wide.var(dim=0, correction=1))
        normal = (wide - mean) / torch.sqrt(variance + self.eps)
        return (normal * self.weight + self.bias).to(x.dtype)

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        """Move the running statistics towards those of a batch."""
        for running, batch in ((self.running_mean, mean), (self.running_var, variance)):
            running.copy_((1 - self.momentum) * running + self.momentum * batch)
