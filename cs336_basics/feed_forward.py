"""The feed-forward layer of a block: SwiGLU, and SiLU, which it uses."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


def silu(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Compute `x · sigmoid(x)` for every element; the result is finite for every finite input.

    Another name of SiLU is swish (Hendrycks & Gimpel 2016).
    """
    raise NotImplementedError("silu: handout §2.4")


class SwiGLU(nn.Module):
    """A feed-forward layer whose hidden features are gated: `W2 (SiLU(W1 x) ⊙ W3 x)`.

    The three linear layers have no bias: `w1` and `w3` map `d_model` features to `d_ff`, and `w2`
    maps `d_ff` features to `d_model` (Shazeer 2020, eq. 6).

    Args:
        d_model: number of features in and out.
        d_ff: number of hidden features.
        device: the device of the weights.
        dtype: the dtype of the weights.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        raise NotImplementedError("swiglu: handout §2.5")

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Apply the layer to the last axis; there may be any leading axes."""
        raise NotImplementedError("swiglu: handout §2.5")
