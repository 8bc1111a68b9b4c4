"""The key/value cache: it stores keys and values of earlier tokens, so they are computed once."""

import torch
from jaxtyping import Float
from torch import Tensor


class KVCache:
    """The keys and values of one attention layer, for all tokens so far.

    Keys are stored after their rotation. Keys and values have `num_kv_heads` heads. The first
    `append` decides batch, device and dtype. A cache is for inference: its tensors have no gradient
    (Pope et al. 2023).

    Args:
        max_seq_len: number of tokens that the cache can hold.
    """

    max_seq_len: int
    length: int
    """Number of tokens in the cache."""

    def __init__(self, max_seq_len: int) -> None:
        self.max_seq_len = max_seq_len
        self.length = 0
        self._kept: Float[Tensor, "kv *batch heads max_seq_len d_head"] | None = None

    def append(
        self,
        keys: Float[Tensor, "*batch heads seq d_head"],
        values: Float[Tensor, "*batch heads seq d_head"],
    ) -> tuple[
        Float[Tensor, "*batch heads length d_head"], Float[Tensor, "*batch heads length d_head"]
    ]:
        """Store the keys and values of the next `seq` tokens; return those of all tokens so far.

        Raises:
            IndexError: the cache can't hold so many tokens; it does not change.
            ValueError: the other axes differ from those in the cache.
        """
        *batch, heads, seq, d_head = keys.shape
        end = self.length + seq
        if end > self.max_seq_len:
            raise IndexError(
                f"the cache has room for {self.max_seq_len} tokens and holds {self.length}; "
                f"{seq} more don't fit"
            )
        if self._kept is None:
            self._kept = keys.new_empty(2, *batch, heads, self.max_seq_len, d_head)
        room = self._kept[..., self.length : end, :]
        if room[0].shape != keys.shape:
            raise ValueError(
                f"the cache holds keys of shape {tuple(self._kept.shape[1:])}, and these are "
                f"{tuple(keys.shape)}; reset it before another batch"
            )
        with torch.no_grad():
            room[0], room[1] = keys, values
        self.length = end
        seen_keys, seen_values = self._kept[..., :end, :]
        return seen_keys, seen_values

    def reset(self) -> None:
        """Remove all tokens; the next `append` may have another batch, device and dtype."""
        self.length = 0
        self._kept = None
