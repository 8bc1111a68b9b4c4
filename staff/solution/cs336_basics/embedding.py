"""The embedding: a table with one learned vector per token of the vocabulary."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class Embedding(nn.Module):
    """A look-up table that replaces each token id by a row.

    The table `weight` has the shape `(vocab_size, d_model)`. Its initial values come from a normal
    distribution of mean 0 and standard deviation 1, truncated at ±3.

    Args:
        vocab_size: number of rows, one per token.
        d_model: length of each row.
        device: the device of the table.
        dtype: the dtype of the table.
    """

    weight: Float[nn.Parameter, "vocab_size d_model"]

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model, device=device, dtype=dtype))
        nn.init.trunc_normal_(self.weight, std=1.0, a=-3.0, b=3.0)

    def forward(self, token_ids: Int[Tensor, "..."]) -> Float[Tensor, "... d_model"]:
        """Replace every id by its row of the table, bit for bit.

        Raises:
            IndexError: an id is `vocab_size` or greater.
        """
        return self.weight[token_ids]
