"""The key/value cache: it stores keys and values of earlier tokens, so they are computed once."""

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
        raise NotImplementedError("kv_cache: handout §5.11")

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
        raise NotImplementedError("kv_cache: handout §5.11")

    def reset(self) -> None:
        """Remove all tokens; the next `append` may have another batch, device and dtype."""
        raise NotImplementedError("kv_cache: handout §5.11")
