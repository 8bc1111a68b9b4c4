"""The Transformer language model and the modules it is made of."""

import math

import torch
from torch import Tensor, nn

from .nn_utils import attend, causal_mask, silu


class Lin(nn.Module):
    """y = W x without bias; W is (out_features, in_features)."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sigma = math.sqrt(2.0 / (in_features + out_features))
        self.W = nn.Parameter(torch.empty(out_features, in_features, device=device, dtype=dtype))
        nn.init.trunc_normal_(self.W, mean=0.0, std=sigma, a=-3 * sigma, b=3 * sigma)

    def forward(self, x: Tensor) -> Tensor:
        """(..., in_features) -> (..., out_features)."""
        return torch.matmul(x, self.W.t())


class TokenEmbedding(nn.Module):
    """Lookup table (num_embeddings, embedding_dim)."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        table = torch.empty(num_embeddings, embedding_dim, device=device, dtype=dtype)
        self.table = nn.Parameter(table)
        nn.init.trunc_normal_(self.table, mean=0.0, std=1.0, a=-3.0, b=3.0)

    def forward(self, token_ids: Tensor) -> Tensor:
        """(...) -> (..., embedding_dim)."""
        return self.table[token_ids]


class RootMeanSquareNorm(nn.Module):
    """RMSNorm over the last dimension, computed in float32."""

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-5,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_model) -> (..., d_model), in the dtype of x."""
        in_dtype = x.dtype
        x = x.to(torch.float32)
        rms = torch.sqrt(x.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return (x / rms * self.gain).to(in_dtype)


class GatedFFN(nn.Module):
    """SwiGLU: down(silu(gate(x)) * up(x))."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.gate = Lin(d_model, d_ff, device=device, dtype=dtype)
        self.up = Lin(d_model, d_ff, device=device, dtype=dtype)
        self.down = Lin(d_ff, d_model, device=device, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_model) -> (..., d_model)."""
        return self.down(silu(self.gate(x)) * self.up(x))


class RotaryPositionalEmbedding(nn.Module):
    """RoPE on neighbouring pairs of features, from precomputed tables."""

    def __init__(
        self, theta: float, d_k: int, max_seq_len: int, device: torch.device | None = None
    ) -> None:
        super().__init__()
        # In double precision: for late positions a float32 angle is visibly off.
        exponent = torch.arange(0, d_k, 2, dtype=torch.float64) / d_k
        positions = torch.arange(max_seq_len, dtype=torch.float64)
        angles = positions[:, None] / torch.pow(theta, exponent)[None, :]
        self.register_buffer("cos_table", angles.cos().float().to(device), persistent=False)
        self.register_buffer("sin_table", angles.sin().float().to(device), persistent=False)

    def forward(self, x: Tensor, token_positions: Tensor) -> Tensor:
        """Rotate x (..., seq, d_k) by its token_positions (..., seq)."""
        cos = self.cos_table[token_positions]
        sin = self.sin_table[token_positions]
        first, second = x[..., 0::2], x[..., 1::2]
        rotated = torch.empty_like(x)
        rotated[..., 0::2] = first * cos - second * sin
        rotated[..., 1::2] = first * sin + second * cos
        return rotated


class CausalMHSA(nn.Module):
    """Causal multi-head self-attention; one matrix projects to queries, keys and values."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        rope: RotaryPositionalEmbedding | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        assert d_model % num_heads == 0, "d_model must be divisible by num_heads"
        self.num_heads = num_heads
        self.head_dim = d_model // num_heads
        self.W_qkv = Lin(d_model, 3 * d_model, device=device, dtype=dtype)
        self.W_o = Lin(d_model, d_model, device=device, dtype=dtype)
        self.rope = rope

    def forward(self, x: Tensor, token_positions: Tensor | None = None) -> Tensor:
        """(..., seq, d_model) -> (..., seq, d_model)."""
        *batch, seq_len, d_model = x.shape
        # Each of q, k, v becomes (..., heads, seq, head_dim).
        q, k, v = (
            part.view(*batch, seq_len, self.num_heads, self.head_dim).transpose(-3, -2)
            for part in self.W_qkv(x).split(d_model, dim=-1)
        )
        if self.rope is not None:
            if token_positions is None:
                token_positions = torch.arange(seq_len, device=x.device)
            # The same positions for all heads: (..., seq) -> (..., 1, seq).
            token_positions = token_positions.unsqueeze(-2)
            q = self.rope(q, token_positions)
            k = self.rope(k, token_positions)
        out = attend(q, k, v, causal_mask(seq_len, device=x.device))
        out = out.transpose(-3, -2).contiguous().view(*batch, seq_len, d_model)
        return self.W_o(out)


class Block(nn.Module):
    """Pre-norm Transformer block."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        rope: RotaryPositionalEmbedding | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.norm_attn = RootMeanSquareNorm(d_model, device=device, dtype=dtype)
        self.mhsa = CausalMHSA(d_model, num_heads, rope, device=device, dtype=dtype)
        self.norm_ffn = RootMeanSquareNorm(d_model, device=device, dtype=dtype)
        self.mlp = GatedFFN(d_model, d_ff, device=device, dtype=dtype)

    def forward(self, x: Tensor, token_positions: Tensor | None = None) -> Tensor:
        """(..., seq, d_model) -> (..., seq, d_model)."""
        x = x + self.mhsa(self.norm_attn(x), token_positions)
        return x + self.mlp(self.norm_ffn(x))


class LanguageModel(nn.Module):
    """Token ids to next-token logits. All blocks share one set of RoPE tables."""

    def __init__(
        self,
        vocab_size: int,
        context_length: int,
        d_model: int,
        num_layers: int,
        num_heads: int,
        d_ff: int,
        rope_theta: float,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        rope = RotaryPositionalEmbedding(
            rope_theta, d_model // num_heads, context_length, device=device
        )
        self.embed = TokenEmbedding(vocab_size, d_model, device=device, dtype=dtype)
        self.blocks = nn.ModuleList(
            [
                Block(d_model, num_heads, d_ff, rope, device=device, dtype=dtype)
                for _ in range(num_layers)
            ]
        )
        self.norm_out = RootMeanSquareNorm(d_model, device=device, dtype=dtype)
        self.unembed = Lin(d_model, vocab_size, device=device, dtype=dtype)

    def forward(self, token_ids: Tensor) -> Tensor:
        """(..., seq) -> (..., seq, vocab_size)."""
        h = self.embed(token_ids)
        for block in self.blocks:
            h = block(h)
        return self.unembed(self.norm_out(h))
