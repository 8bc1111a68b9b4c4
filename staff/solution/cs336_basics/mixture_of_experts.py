"""Mixture of experts: many feed-forward layers; each token goes through a few of them."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cs336_basics.feed_forward import SwiGLU
from cs336_basics.linear import Linear
from cs336_basics.softmax import softmax


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
        super().__init__()
        if not 1 <= top_k <= num_experts:
            raise ValueError(f"top_k must be between 1 and {num_experts}; it is {top_k}")
        self.top_k = top_k
        self.router = Linear(d_model, num_experts, device=device, dtype=dtype)
        self.experts = nn.ModuleList(
            SwiGLU(d_model, d_ff, device=device, dtype=dtype) for _ in range(num_experts)
        )

    def forward(
        self, x: Float[Tensor, "... d_model"]
    ) -> tuple[Float[Tensor, "... d_model"], Float[Tensor, ""]]:
        """Return the mixture, and the load-balancing loss.

        The loss is `num_experts · Σ f_i P_i`. Every token makes `top_k` choices; f_i is the share
        of expert i in all choices, and P_i is its mean probability over the tokens. The loss is 1
        if all probabilities are equal. Gradients reach the router through P (Fedus et al. 2022,
        eq. 4 to 6). Half-precision inputs are routed in float32, and their loss is float32.
        """
        tokens = x.reshape(-1, x.shape[-1])
        scores = self.router(tokens)
        wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
        probabilities = softmax(wide, dim=-1)
        best, chosen = probabilities.topk(self.top_k, dim=-1)
        gates = (best / best.sum(dim=-1, keepdim=True)).to(x.dtype)
        output = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows, choices = (chosen == number).nonzero(as_tuple=True)
            given = gates[rows, choices].unsqueeze(-1) * expert(tokens[rows])
            output = output.index_add(0, rows, given)
        return output.reshape(x.shape), _imbalance(probabilities, chosen)


def _imbalance(
    probabilities: Float[Tensor, "tokens num_experts"], chosen: Int[Tensor, "tokens top_k"]
) -> Float[Tensor, ""]:
    num_experts = probabilities.shape[-1]
    counts = torch.bincount(chosen.flatten(), minlength=num_experts)
    shares = counts.to(probabilities.dtype) / chosen.numel()
    return num_experts * (shares * probabilities.mean(dim=0)).sum()
