"""The causal language model: a trunk computes hidden states, and a head turns them into logits."""

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
    """Compute the mean cross-entropy of the logits at i with the label at i + 1, in nats.

    `labels` are the ids themselves, not shifted. The model predicts the *next* token, so the first
    label and the last logits are not used. A prediction whose label is `ignore_index` is left out
    of the mean. If no prediction is left, the loss and its gradients are 0. The loss of
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

    The submodules are `ln1` (RMSNorm), `attn` (`GroupedQueryAttention`), `ln2` (RMSNorm) and `ffn`
    (SwiGLU).

    Args:
        d_model: width of the residual stream.
        num_heads: number of query heads.
        num_kv_heads: number of key/value heads.
        d_ff: number of hidden features of the feed-forward layer.
        rope: the rotary embedding of the attention.
        dropout: probability that a feature of a sublayer's output is dropped in training mode.
        norm_eps: eps of both norms.
        device: the device of the weights.
        dtype: the dtype of the weights.
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
        """Add the outputs of attention and of the feed-forward layer to the residual stream.

        Raises:
            IndexError: there are more tokens, with those in `cache`, than RoPE or the cache allows.
        """
        rate = self.dropout if self.training else 0.0
        x = x + _dropped(self.attn(self.ln1(x), cache=cache), rate)
        return x + _dropped(self.ffn(self.ln2(x)), rate)


class TransformerTrunk(nn.Module):
    """The model without its output projection: it maps each token id to a hidden state.

    The order is `token_embeddings`, dropout, the blocks `layers`, and the final norm `ln_final`.

    Args:
        vocab_size: number of tokens.
        context_length: the longest sequence, in tokens.
        d_model: width of the residual stream, and of a hidden state.
        num_layers: number of blocks.
        num_heads: number of query heads of a block.
        num_kv_heads: number of key/value heads of a block.
        d_ff: number of hidden features of a feed-forward layer.
        rope_theta: base of RoPE's angles.
        dropout: probability that a feature of an embedding, or of a sublayer's output, is set to 0
            in training mode; the others are scaled by `1 / (1 - dropout)`.
        norm_eps: eps of every norm.
        device: the device of the weights.
        dtype: the dtype of the weights.
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
        """Return the normalised hidden state of every token.

        With `caches`, one for each layer, the ids come after the tokens in the caches.

        Raises:
            IndexError: an id is `vocab_size` or greater; or there are more tokens, with those in
                the caches, than `context_length` or than a cache can hold.
        """
        x = _dropped(self.token_embeddings(token_ids), self.dropout if self.training else 0.0)
        for i, layer in enumerate(self.layers):
            x = layer(x, None if caches is None else caches[i])
        return self.ln_final(x)


class CausalLM(nn.Module):
    """A language model: the trunk `trunk`, and the output projection `lm_head` with its own weight.

    Args:
        trunk: computes the hidden states; `lm_head` has the sizes, device and dtype of its
            embedding.
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
        """Return the logits, and the loss if there are labels, otherwise None.

        Args:
            token_ids: the tokens.
            labels: the labels for `causal_lm_loss`, usually the ids themselves.
            logits_to_keep: number of last positions that get logits; 0 means all positions.
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
