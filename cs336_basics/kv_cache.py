"""The key/value cache: what attention needs of the tokens before, kept instead of made again."""

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
        raise NotImplementedError("kv_cache: handout §5.11")

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
        raise NotImplementedError("kv_cache: handout §5.11")

    def reset(self) -> None:
        """Forget all tokens; what comes next may have another batch, device and dtype."""
        raise NotImplementedError("kv_cache: handout §5.11")
