"""The Transformer language model: blocks of attention and feed-forward layers."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    """A pre-norm block: `y = x + attn(ln1(x))`, then `y + ffn(ln2(y))`.

    The submodules are `ln1`, `attn`, `ln2` and `ffn`. Both norms use an eps of 1e-5, and positions
    are counted from 0 (Xiong et al. 2020, figure 1b).

    Args:
        d_model: width of the residual stream.
        num_heads: number of attention heads.
        d_ff: number of hidden features of the feed-forward layer.
        max_seq_len: number of positions in RoPE's tables.
        theta: base of RoPE's angles.
        device: the device of the weights.
        dtype: the dtype of the weights.

    Raises:
        ValueError: `num_heads` does not divide `d_model`, or `d_model / num_heads` is odd.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        max_seq_len: int,
        theta: float,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        raise NotImplementedError("transformer_block: handout §2.11")

    def forward(self, x: Float[Tensor, "... seq d_model"]) -> Float[Tensor, "... seq d_model"]:
        """Add the outputs of attention and of the feed-forward layer to the residual stream.

        Raises:
            IndexError: `seq` exceeds `max_seq_len`.
        """
        raise NotImplementedError("transformer_block: handout §2.11")


class TransformerLM(nn.Module):
    """A language model: it maps token ids to the logits of the next token, at every position.

    The order is `token_embeddings`, the blocks `layers`, the final norm `ln_final`, and the output
    projection `lm_head`, which does not share the embedding's weight. The parameters have the names
    of the weights of `run_transformer_lm`.

    Args:
        vocab_size: number of tokens.
        context_length: the longest sequence, in tokens.
        d_model: width of the residual stream.
        num_layers: number of blocks.
        num_heads: number of attention heads of a block.
        d_ff: number of hidden features of a feed-forward layer.
        rope_theta: base of RoPE's angles.
        device: the device of the weights.
        dtype: the dtype of the weights.
    """

    def __init__(
        self,
        vocab_size: int,
        context_length: int,
        d_model: int,
        num_layers: int,
        num_heads: int,
        d_ff: int,
        rope_theta: float,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        raise NotImplementedError("transformer_lm: handout §2.12")

    def forward(self, token_ids: Int[Tensor, "... seq"]) -> Float[Tensor, "... seq vocab_size"]:
        """Return the logits of the next token at every position.

        Raises:
            IndexError: an id is `vocab_size` or greater, or `seq` exceeds `context_length`.
        """
        raise NotImplementedError("transformer_lm: handout §2.12")
