"""Conversion between the two layouts of RoPE: the rows of query and key weights are reordered."""

from einops import rearrange
from jaxtyping import Float
from torch import Tensor


def adjacent_to_half_split(
    weight: Float[Tensor, "d_out ..."], num_heads: int
) -> Float[Tensor, "d_out ..."]:
    """Convert query or key weights from the adjacent layout to the half-split layout.

    Within each head of `d_head = d_out / num_heads` rows, row 2j becomes row j and row 2j + 1
    becomes row `j + d_head/2`. The values do not change, and neither does the input.

    Args:
        weight: a weight or a bias; its first axis holds the rows of all heads.
        num_heads: number of heads in `weight`; for keys the number of key heads.

    Raises:
        ValueError: the rows don't divide into `num_heads` heads of pairs.
    """
    _check_pairs(weight, num_heads)
    pattern = "(heads pair two) ... -> (heads two pair) ..."
    return rearrange(weight, pattern, heads=num_heads, two=2)


def half_split_to_adjacent(
    weight: Float[Tensor, "d_out ..."], num_heads: int
) -> Float[Tensor, "d_out ..."]:
    """Convert query or key weights from the half-split layout to the adjacent layout.

    Hugging Face's Llama has the half-split layout. Within each head of `d_head = d_out / num_heads`
    rows, row j becomes row 2j and row `j + d_head/2` becomes row 2j + 1. The values do not change,
    and neither does the input.

    Args:
        weight: a weight or a bias; its first axis holds the rows of all heads.
        num_heads: number of heads in `weight`; for keys the number of key heads.

    Raises:
        ValueError: the rows don't divide into `num_heads` heads of pairs.
    """
    _check_pairs(weight, num_heads)
    pattern = "(heads two pair) ... -> (heads pair two) ..."
    return rearrange(weight, pattern, heads=num_heads, two=2)


def _check_pairs(weight: Tensor, num_heads: int) -> None:
    if len(weight) % (2 * num_heads):
        raise ValueError(f"{len(weight)} rows don't divide into {num_heads} heads of pairs")
