"""The feed-forward layer of the first Transformer: two linear layers with a ReLU between them."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cs336_basics.linear import Linear


class ReLUFeedForward(nn.Module):
    """Computes `ReLU(x W1ᵀ + b1) W2ᵀ + b2`, with `ReLU(x) = max(0, x)`.

    The linear layer `w1` maps `d_model` features to `d_ff`, and `w2` maps `d_ff` features to
    `d_model`. Their initial weights are drawn as those of `Linear`. The biases `b1` and `b2` are
    learned and start at zeros (Vaswani et al. 2017, eq. 2).

    Args:
        d_model: number of features in and out.
        d_ff: number of hidden features.
        device: the device of the weights and biases.
        dtype: the dtype of the weights and biases.
    """

    b1: Float[nn.Parameter, " d_ff"]
    b2: Float[nn.Parameter, " d_model"]

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.w1 = Linear(d_model, d_ff, device=device, dtype=dtype)
        self.b1 = nn.Parameter(torch.zeros(d_ff, device=device, dtype=dtype))
        self.w2 = Linear(d_ff, d_model, device=device, dtype=dtype)
        self.b2 = nn.Parameter(torch.zeros(d_model, device=device, dtype=dtype))

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Apply the layer to the last axis; there may be any leading axes."""
        hidden = torch.relu(self.w1(x) + self.b1)
        return self.w2(hidden) + self.b2
