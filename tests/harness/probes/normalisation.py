"""A probe of BatchNorm, whose running statistics change with each batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from tests.harness.plain import Plain, plain
from tests.harness.probes.symbols import resolve


def batch_norm_run(
    symbol: str, arguments: Mapping[str, Plain], batches: Sequence[Tensor], evaluated: Tensor
) -> dict[str, Plain]:
    """Call a new BatchNorm in training mode, then in evaluation mode, then in training mode again.

    Args:
        symbol: the class, as `package.module:Name`.
        arguments: the keyword arguments of its constructor.
        batches: the batches of training, in order; they require gradients.
        evaluated: the batch that follows in evaluation mode, and then in training mode.
    """
    norm = resolve(symbol)(**arguments)
    norm.train()
    for batch in batches:
        norm(batch.requires_grad_())
    state = {name: plain(value) for name, value in norm.state_dict().items()}
    norm.eval()
    answer = plain(norm(evaluated))
    after = {name: plain(value) for name, value in norm.state_dict().items()}
    norm.train()
    return {
        "state": state,
        "evaluated": answer,
        "after": after,
        "trained": plain(norm(evaluated)),
        "with_gradient": [name for name, b in norm.named_buffers() if b.requires_grad],
    }
