"""Cross-entropy: how surprised the model is by the token that really came next."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

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
    rows = logits.reshape(-1, logits.shape[-1]).split(_ROWS)
    ids = targets.expand(logits.shape[:-1]).reshape(-1).split(_ROWS)
    losses = torch.cat([_losses(*piece) for piece in zip(rows, ids, strict=True)])
    return losses.mean()


def _losses(
    logits: Float[Tensor, "rows vocab_size"], targets: Int[Tensor, " rows"]
) -> Float[Tensor, " rows"]:
    """The loss of every row by itself."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    largest = wide.amax(dim=-1, keepdim=True).detach()
    of_targets = (wide.gather(-1, targets.unsqueeze(-1)) - largest).squeeze(-1)
    log_normalisers = (wide - largest).exp_().sum(dim=-1).log()
    return log_normalisers - of_targets
