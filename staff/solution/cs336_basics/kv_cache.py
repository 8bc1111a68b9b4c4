"""The key/value cache: what attention needs of the tokens before, kept instead of made again."""

import torch
from jaxtyping import Float
from torch import Tensor


class KVCache:
    """The keys and values of one attention layer, for the tokens that it was shown so far.

    Keys are kept as they are compared, rotated already. There are `num_kv_heads` heads of both,
    one for each group of query heads. Batch, device and dtype are those of what is appended first.
    A cache is for inference: what it keeps carries no gradient (Pope et al. 2023).

    Args:
        max_seq_len: number of tokens that there is room for.
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
        """Keep keys and values of the next `seq` tokens; return those of all tokens so far.

        Raises:
            IndexError: there is no room for so many; the cache stays as it was.
            ValueError: the other axes are not those of what is in the cache.
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
        """Forget all tokens; what comes next may have another batch, device and dtype."""
        self.length = 0
        self._kept = None
