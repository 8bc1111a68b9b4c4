"""Mixture of experts: many feed-forward layers; each token goes through a few of them."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class MixtureOfExperts(nn.Module):
    """Computes `Σ g_i(x) E_i(x)` for each token x, over its `top_k` likeliest experts.

    The router's probabilities are `softmax(W_r x)` over all experts. The gates g are the
    probabilities of the chosen experts, divided by their sum. The submodules are `router`, a linear
    layer without bias from `d_model` to `num_experts` features, and `experts`, a list of
    `num_experts` SwiGLUs (Shazeer et al. 2017, section 2; Fedus et al. 2022, section 2.2).

    Args:
        d_model: number of features in and out.
        d_ff: number of hidden features of an expert.
        num_experts: number of experts.
        top_k: number of experts that a token goes through.
        device: the device of the weights.
        dtype: the dtype of the weights.

    Raises:
        ValueError: `top_k` is not between 1 and `num_experts`.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        num_experts: int,
        top_k: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        raise NotImplementedError("mixture_of_experts: handout §5.12")

    def forward(
        self, x: Float[Tensor, "... d_model"]
    ) -> tuple[Float[Tensor, "... d_model"], Float[Tensor, ""]]:
        """Return the mixture, and the load-balancing loss.

        The loss is `num_experts · Σ f_i P_i`. Every token makes `top_k` choices; f_i is the share
        of expert i in all choices, and P_i is its mean probability over the tokens. The loss is 1
        if all probabilities are equal. Gradients reach the router through P (Fedus et al. 2022,
        eq. 4 to 6). Half-precision inputs are routed in float32, and their loss is float32.
        """
        raise NotImplementedError("mixture_of_experts: handout §5.12")
