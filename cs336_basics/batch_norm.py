"""BatchNorm: bring every feature to mean 0 and variance 1 over the batch, then scale and shift."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class BatchNorm(nn.Module):
    """`y = (x − mean) / sqrt(variance + eps) · weight + bias`, each feature by itself.

    While training, mean and variance are those of the feature over the batch, the variance being
    the mean of the squared deviations. `running_mean` and `running_var` follow them,

        running ← (1 − momentum) · running + momentum · batch,

    the second with the *unbiased* variance of the batch, the sum divided by `batch − 1`. In
    evaluation mode they take the place of the batch's statistics and stay as they are.

    `weight` and `bias` are learned and start at ones and zeros; `running_mean` and `running_var`
    are saved but not learned, start at zeros and ones, carry no gradient, and are float32, or
    float64 where `dtype` asks for it. Half-precision inputs are normalised in float32, and the
    result has the input's dtype (Ioffe & Szegedy 2015, algorithms 1 and 2).

    Args:
        num_features: number of features.
        eps: added to the variance.
        momentum: the share of the newest batch in the running statistics.
        device: where all of it lives.
        dtype: the dtype of gain and shift.
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
        raise NotImplementedError("batch_norm: handout §5.2")

    def forward(
        self, x: Float[Tensor, "batch num_features"]
    ) -> Float[Tensor, "batch num_features"]:
        """Normalise every feature, with the batch's statistics or the running ones.

        Raises:
            ValueError: training, and the batch holds fewer than two items.
        """
        raise NotImplementedError("batch_norm: handout §5.2")
