"""The model in two parts: a trunk that gives hidden states, a head that makes logits of them."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cs336_basics.cross_entropy import cross_entropy
from cs336_basics.embedding import Embedding
from cs336_basics.feed_forward import SwiGLU
from cs336_basics.grouped_query_attention import GroupedQueryAttention
from cs336_basics.kv_cache import KVCache
from cs336_basics.linear import Linear
from cs336_basics.rmsnorm import RMSNorm
from cs336_basics.rope import RotaryEmbedding


def causal_lm_loss(
    logits: Float[Tensor, "... seq vocab_size"],
    labels: Int[Tensor, "... seq"],
    ignore_index: int = -100,
) -> Float[Tensor, ""]:
    """The mean cross-entropy of the logits at i with the label at i + 1, in nats.

    `labels` are the ids themselves, not shifted: the model predicts the *next* token, so the first
    label and the last logits have no counterpart. Where a label is `ignore_index`, its prediction
    leaves the mean. If none is left the loss is 0, and so are its gradients. The loss of
    half-precision logits is float32.

    Raises:
        RuntimeError: a label other than `ignore_index` is negative, or `vocab_size` or greater.
    """
    predictions, targets = logits[..., :-1, :], labels[..., 1:]
    kept = targets != ignore_index
    if not kept.any():
        nothing = predictions[kept].sum()
        return nothing.to(torch.promote_types(logits.dtype, torch.float32))
    return cross_entropy(predictions[kept], targets[kept])


class DecoderBlock(nn.Module):
    """A pre-norm block: `y = x + drop(attn(ln1(x)))`, then `y + drop(ffn(ln2(y)))`.

    The parts are called `ln1`, `attn`, `ln2` and `ffn`: RMSNorm, `GroupedQueryAttention`, RMSNorm
    and SwiGLU.

    Args:
        d_model: width of the residual stream.
        num_heads: number of query heads.
        num_kv_heads: number of key/value heads.
        d_ff: number of hidden features of the feed-forward layer.
        rope: the rotary embedding of the attention.
        dropout: probability with which a feature of what a half adds is dropped while training.
        norm_eps: eps of both norms.
        device: where the weights live.
        dtype: the weights' dtype.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        d_ff: int,
        rope: RotaryEmbedding,
        dropout: float = 0.0,
        norm_eps: float = 1e-5,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.ln1 = RMSNorm(d_model, norm_eps, device=device, dtype=dtype)
        self.attn = GroupedQueryAttention(
            d_model, num_heads, num_kv_heads, rope, device=device, dtype=dtype
        )
        self.ln2 = RMSNorm(d_model, norm_eps, device=device, dtype=dtype)
        self.ffn = SwiGLU(d_model, d_ff, device=device, dtype=dtype)

    def forward(
        self, x: Float[Tensor, "... seq d_model"], cache: KVCache | None = None
    ) -> Float[Tensor, "... seq d_model"]:
        """Read the residual stream twice and add to it twice.

        Raises:
            IndexError: the tokens, with those in `cache`, are more than RoPE or the cache takes.
        """
        rate = self.dropout if self.training else 0.0
        x = x + _dropped(self.attn(self.ln1(x), cache=cache), rate)
        return x + _dropped(self.ffn(self.ln2(x)), rate)


class TransformerTrunk(nn.Module):
    """Token ids in, one hidden state for every token out: everything but the output projection.

    `token_embeddings`, dropout, the blocks `layers`, the final norm `ln_final`.

    Args:
        vocab_size: number of tokens.
        context_length: the longest sequence, in tokens.
        d_model: width of the residual stream, and of a hidden state.
        num_layers: number of blocks.
        num_heads: number of query heads of a block.
        num_kv_heads: number of key/value heads of a block.
        d_ff: number of hidden features of a feed-forward layer.
        rope_theta: base of RoPE's angles.
        dropout: probability with which a feature of an embedding, or of what a block adds, is set
            to 0 while training; the others are scaled by `1 / (1 - dropout)`.
        norm_eps: eps of every norm.
        device: where the weights live.
        dtype: the weights' dtype.
    """

    context_length: int
    token_embeddings: Embedding
    layers: nn.ModuleList
    ln_final: RMSNorm

    def __init__(
        self,
        vocab_size: int,
        context_length: int,
        d_model: int,
        num_layers: int,
        num_heads: int,
        num_kv_heads: int,
        d_ff: int,
        rope_theta: float,
        dropout: float = 0.0,
        norm_eps: float = 1e-5,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.dropout = dropout
        rope = RotaryEmbedding(
            rope_theta, d_model // num_heads, context_length, device=device, dtype=dtype
        )
        self.token_embeddings = Embedding(vocab_size, d_model, device=device, dtype=dtype)
        self.layers = nn.ModuleList(
            DecoderBlock(
                d_model,
                num_heads,
                num_kv_heads,
                d_ff,
                rope,
                dropout,
                norm_eps,
                device=device,
                dtype=dtype,
            )
            for _ in range(num_layers)
        )
        self.ln_final = RMSNorm(d_model, norm_eps, device=device, dtype=dtype)

    def forward(
        self, token_ids: Int[Tensor, "... seq"], caches: Sequence[KVCache] | None = None
    ) -> Float[Tensor, "... seq d_model"]:
        """Give the normalised hidden state of every token.

        With `caches`, one for each layer, the ids come after those that the caches have seen.

        Raises:
            IndexError: an id is `vocab_size` or greater, or the tokens, with those in the caches,
                are more than `context_length` or than a cache has room for.
        """
        x = _dropped(self.token_embeddings(token_ids), self.dropout if self.training else 0.0)
        for i, layer in enumerate(self.layers):
            x = layer(x, None if caches is None else caches[i])
        return self.ln_final(x)


class CausalLM(nn.Module):
    """A trunk, called `trunk`, and the output projection `lm_head`, which shares nothing with it.

    Args:
        trunk: gives the hidden states; its embedding decides size, device and dtype of the head.
    """

    trunk: TransformerTrunk
    lm_head: Linear

    def __init__(self, trunk: TransformerTrunk) -> None:
        super().__init__()
        self.trunk = trunk
        table = trunk.token_embeddings.weight
        vocab_size, d_model = table.shape
        self.lm_head = Linear(d_model, vocab_size, device=table.device, dtype=table.dtype)

    def forward(
        self,
        token_ids: Int[Tensor, "... seq"],
        labels: Int[Tensor, "... seq"] | None = None,
        logits_to_keep: int = 0,
        caches: Sequence[KVCache] | None = None,
    ) -> tuple[Float[Tensor, "... kept vocab_size"], Float[Tensor, ""] | None]:
        """Give the logits, and the loss if there are labels; otherwise None in its place.

        Args:
            token_ids: the tokens.
            labels: what `causal_lm_loss` is given; usually the ids themselves.
            logits_to_keep: only the last so many positions are projected; 0 for all of them.
            caches: one for each layer, as in `TransformerTrunk`.

        Raises:
            ValueError: `logits_to_keep` is negative, or not 0 although there are labels.
            IndexError: as in `TransformerTrunk`.
        """
        if logits_to_keep < 0:
            raise ValueError(f"logits_to_keep must be 0 or more; it is {logits_to_keep}")
        if labels is not None and logits_to_keep:
            raise ValueError("the loss needs the logits of all positions; leave logits_to_keep out")
        hidden_states = self.trunk(token_ids, caches)
        logits = self.lm_head(hidden_states[..., -logits_to_keep:, :])
        return logits, None if labels is None else causal_lm_loss(logits, labels)


def _dropped(x: Float[Tensor, "..."], rate: float) -> Float[Tensor, "..."]:
    if not rate:
        return x
    kept = torch.rand_like(x, dtype=torch.float32) >= rate
    return torch.where(kept, x / (1 - rate), torch.zeros_like(x))
