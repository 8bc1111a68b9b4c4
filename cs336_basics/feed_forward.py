"""The feed-forward half of a block: SiLU, and the gated SwiGLU built on it."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


def silu(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """`x · sigmoid(x)`, element by element, finite for every finite input.

    Source: Hendrycks & Gimpel 2016; also known as swish.
    """
    raise NotImplementedError("silu: handout §2.4")


class SwiGLU(nn.Module):
    """`W2 (SiLU(W1 x) ⊙ W3 x)`: a feed-forward layer whose hidden features are gated.

    Three linear layers without bias, `w1` and `w3` from `d_model` to `d_ff`, `w2` back again
    (Shazeer 2020, eq. 6).

    Args:
        d_model: number of features in and out.
        d_ff: number of hidden features.
        device: where the weights live.
        dtype: the weights' dtype.
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
        """Work on the last axis, whatever axes come before it."""
        raise NotImplementedError("swiglu: handout §2.5")
