"""Cross-entropy: how surprised the model is by the token that really came next."""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

_LOG2_E = math.log2(math.e)
_ROWS = 128  # at a time: they stay in a processor's cache, where a whole batch has no room


def cross_entropy(
    logits: Float[Tensor, "... vocab_size"], targets: Int[Tensor, "..."]
) -> Float[Tensor, ""]:
    """`−log softmax(logits)[target]` in nats, averaged over all targets whatever axes they have.

    Finite for finite logits of any size. Half-precision logits are taken to float32 first, and the
    loss of them is float32; otherwise it has the dtype of the logits. The inputs are left as they
    were (Goodfellow, Bengio & Courville 2016, section 6.2.2.3).

    Args:
        logits: unnormalised log-probabilities.
        targets: for each row of logits, the id of the right class.

    Raises:
        RuntimeError: a target is negative, or `vocab_size` or greater; no target is ignored.
    """
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    rows = wide.reshape(-1, wide.shape[-1])
    ids = targets.expand(logits.shape[:-1]).reshape(-1, 1)
    losses: Tensor = _Losses.apply(rows, ids)  # type: ignore[no-untyped-call]
    return losses.mean()


class _Losses(torch.autograd.Function):
    """The loss of every row, with its gradient by hand: `softmax(logits) − one_hot(target)`.

    Only two numbers of a row are kept for it, and a second derivative is refused. e^x is taken as
    2^(x log2 e), as in the softmax.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Float[Tensor, "rows vocab_size"], targets: Int[Tensor, "rows 1"]
    ) -> Float[Tensor, " rows"]:
        """Shift each row by its maximum, so that no power overflows."""
        largest, sums = [], []
        for rows in logits.split(_ROWS):
            largest.append(rows.amax(dim=-1, keepdim=True))
            powers = (rows - largest[-1]).mul_(_LOG2_E).exp2_()
            sums.append(powers.sum(dim=-1, keepdim=True))
        shift, normaliser = torch.cat(largest), torch.cat(sums)
        ctx.save_for_backward(logits, targets, shift, normaliser)
        return (normaliser.log() - (logits.gather(-1, targets) - shift)).squeeze(-1)

    @staticmethod
    def backward(
        ctx: Any, gradient: Float[Tensor, " rows"]
    ) -> tuple[Float[Tensor, "rows vocab_size"], None]:
        """Write the gradient of each piece where it belongs, in one place for all rows."""
        logits, targets, shift, normaliser = ctx.saved_tensors
        column = gradient.unsqueeze(-1)
        result = torch.empty_like(logits)
        pieces = (part.split(_ROWS) for part in (logits, shift, column / normaliser, result))
        for rows, largest, share, out in zip(*pieces, strict=True):
            torch.sub(rows, largest, out=out).mul_(_LOG2_E).exp2_().mul_(share)
        return result.scatter_add_(-1, targets, -column), None
