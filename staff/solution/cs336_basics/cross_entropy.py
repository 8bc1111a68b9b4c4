"""Cross-entropy: how surprised the model is by the token that really came next."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


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
    # A shift by the same number changes nothing, so no gradient has to flow through the maximum.
    shifted = wide - wide.amax(dim=-1, keepdim=True).detach()
    log_normalisers = shifted.exp().sum(dim=-1).log()
    of_targets = shifted.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    losses = log_normalisers - of_targets
    return losses.mean()
