"""The Transformer language model: blocks of attention and feed-forward layers."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cs336_basics.attention import MultiHeadSelfAttention
from cs336_basics.embedding import Embedding
from cs336_basics.feed_forward import SwiGLU
from cs336_basics.linear import Linear
from cs336_basics.rmsnorm import RMSNorm
from cs336_basics.rope import RotaryEmbedding


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
        super().__init__()
        rope = RotaryEmbedding(theta, d_model // num_heads, max_seq_len, device=device, dtype=dtype)
        self.ln1 = RMSNorm(d_model, device=device, dtype=dtype)
        self.attn = MultiHeadSelfAttention(d_model, num_heads, rope, device=device, dtype=dtype)
        self.ln2 = RMSNorm(d_model, device=device, dtype=dtype)
        self.ffn = SwiGLU(d_model, d_ff, device=device, dtype=dtype)

    def forward(self, x: Float[Tensor, "... seq d_model"]) -> Float[Tensor, "... seq d_model"]:
        """Add the outputs of attention and of the feed-forward layer to the residual stream.

        Raises:
            IndexError: `seq` exceeds `max_seq_len`.
        """
        x = x + self.attn(self.ln1(x))
        return x + self.ffn(self.ln2(x))


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
        super().__init__()
        self.token_embeddings = Embedding(vocab_size, d_model, device=device, dtype=dtype)
        self.layers = nn.ModuleList(
            TransformerBlock(
                d_model, num_heads, d_ff, context_length, rope_theta, device=device, dtype=dtype
            )
            for _ in range(num_layers)
        )
        self.ln_final = RMSNorm(d_model, device=device, dtype=dtype)
        self.lm_head = Linear(d_model, vocab_size, device=device, dtype=dtype)

    def forward(self, token_ids: Int[Tensor, "... seq"]) -> Float[Tensor, "... seq vocab_size"]:
        """Return the logits of the next token at every position.

        Raises:
            IndexError: an id is `vocab_size` or greater, or `seq` exceeds `context_length`.
        """
        x = self.token_embeddings(token_ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.ln_final(x))
