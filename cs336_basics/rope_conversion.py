"""From one layout of RoPE to the other: the rows of query and key weights change places."""

from jaxtyping import Float
from torch import Tensor


def adjacent_to_half_split(
    weight: Float[Tensor, "d_out ..."], num_heads: int
) -> Float[Tensor, "d_out ..."]:
    """Make query or key weights for code that pairs neighbours fit code that pairs halves.

    Within each head of `d_head = d_out / num_heads` rows, row 2j becomes row j and row 2j + 1
    becomes row `j + d_head/2`. Nothing is computed, and the input is left as it was.

    Args:
        weight: a weight, or a bias: whatever stacks the heads along its first axis.
        num_heads: number of heads in `weight`; for keys the number of key heads.

    Raises:
        ValueError: the rows don't divide into `num_heads` heads of pairs.
    """
    raise NotImplementedError("rope_conversion: handout §5.6")


def half_split_to_adjacent(
    weight: Float[Tensor, "d_out ..."], num_heads: int
) -> Float[Tensor, "d_out ..."]:
    """Undo `adjacent_to_half_split`: from halves, as in Hugging Face's Llama, to neighbours.

    Within each head of `d_head = d_out / num_heads` rows, row j becomes row 2j and row
    `j + d_head/2` becomes row 2j + 1. Nothing is computed, and the input is left as it was.

    Args:
        weight: a weight, or a bias: whatever stacks the heads along its first axis.
        num_heads: number of heads in `weight`; for keys the number of key heads.

    Raises:
        ValueError: the rows don't divide into `num_heads` heads of pairs.
    """
    raise NotImplementedError("rope_conversion: handout §5.6")
