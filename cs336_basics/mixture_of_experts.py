"""Mixture of experts: many feed-forward layers, of which each token goes through a few."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class MixtureOfExperts(nn.Module):
    """`Σ g_i(x) E_i(x)` over the `top_k` experts that the router gives most, for each token alone.

    The router's probabilities are `softmax(W_r x)` over all experts. The gates g are those of the
    chosen experts, divided by their sum. The parts are `router`, a linear layer without bias from
    `d_model` to `num_experts`, and `experts`, as many SwiGLUs (Shazeer et al. 2017, section 2;
    Fedus et al. 2022, section 2.2).

    Args:
        d_model: number of features in and out.
        d_ff: number of hidden features of an expert.
        num_experts: number of experts.
        top_k: number of experts that a token goes through.
        device: where the weights live.
        dtype: the weights' dtype.

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
        """Give the mixture, and the loss that balances the load.

        The loss is `num_experts · Σ f_i P_i`. f_i is the share of expert i in all choices, of which
        every token makes `top_k`; P_i is its mean probability over the tokens. It is 1 if all
        probabilities are equal, and gradients reach the router through P (Fedus et al. 2022, eq. 4
        to 6). Half-precision inputs are routed in float32, and the loss of them is float32.
        """
        raise NotImplementedError("mixture_of_experts: handout §5.12")
