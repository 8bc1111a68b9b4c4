"""The building blocks, smallest first. Weights are arguments; nothing here keeps any state."""

import torch
from torch import Tensor

NEG_INF = float("-inf")


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """(..., i) -> (..., o) with a weight (o, i)."""
    return torch.einsum("...i,oi->...o", x, weight)


def embed(token_ids: Tensor, table: Tensor) -> Tensor:
    """Pick the rows of the table."""
    rows = torch.index_select(table, 0, token_ids.flatten())
    return rows.reshape(*token_ids.shape, table.shape[1])


def rms_norm(x: Tensor, gain: Tensor, eps: float = 1e-5) -> Tensor:
    """Divide by the root mean square of the last axis, then scale by the gain."""
    wide = x.float()
    inverse_rms = torch.rsqrt((wide * wide).mean(-1, keepdim=True) + eps)
    return (wide * inverse_rms * gain.float()).to(x.dtype)


def silu(x: Tensor) -> Tensor:
    """Swish with beta 1."""
    return torch.sigmoid(x).mul(x)


def softmax(x: Tensor, dim: int) -> Tensor:
    """exp(x - log sum exp x), shifted by the maximum along `dim`."""
    x = x - x.amax(dim, keepdim=True)
    return torch.exp(x - torch.log(torch.exp(x).sum(dim, keepdim=True)))


def swiglu(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    """Gated feed-forward network."""
    return linear(silu(linear(x, w1)) * linear(x, w3), w2)


def rope(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Read feature pairs as complex numbers and turn them by position * theta^(-2k/d)."""
    d = x.shape[-1]
    frequencies = 1.0 / theta ** (torch.arange(0, d, 2, device=x.device).float() / d)
    angles = positions.unsqueeze(-1).float() * frequencies
    turn = torch.polar(torch.ones_like(angles), angles)
    z = torch.complex(x[..., 0::2].float(), x[..., 1::2].float())
    return torch.view_as_real(z * turn).flatten(-2).to(x.dtype)


def additive_mask(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a boolean mask (True: attend) into what is added to the scores: 0 or -inf."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, NEG_INF)


def attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
    """Scaled dot-product attention with an additive bias that broadcasts to the scores."""
    *batch, n, d = q.shape
    m = k.shape[-2]
    bias = q.new_zeros(1, 1) if bias is None else bias
    scores = torch.baddbmm(
        bias.expand(*batch, n, m).reshape(-1, n, m),
        q.reshape(-1, n, d),
        k.reshape(-1, m, d).transpose(1, 2),
        alpha=d**-0.5,
    )
    out = torch.bmm(softmax(scores, -1), v.reshape(-1, m, v.shape[-1]))
    return out.reshape(*batch, n, v.shape[-1])


def causal_self_attention(
    x: Tensor,
    wq: Tensor,
    wk: Tensor,
    wv: Tensor,
    wo: Tensor,
    n_heads: int,
    theta: float | None = None,
    positions: Tensor | None = None,
) -> Tensor:
    """All heads at once; positions are encoded by RoPE if theta is given."""
    n = x.shape[-2]

    def project(w: Tensor) -> Tensor:
        return torch.einsum("...nd,hkd->...hnk", x, w.view(n_heads, -1, w.shape[1]))

    q, k, v = project(wq), project(wk), project(wv)
    if theta is not None:
        if positions is None:
            positions = torch.arange(n, device=x.device)
        positions = positions[..., None, :]
        q, k = rope(q, positions, theta), rope(k, positions, theta)
    bias = torch.full((n, n), NEG_INF, dtype=x.dtype, device=x.device).triu(1)
    heads = attention(q, k, v, bias)
    return torch.einsum("...hnk,ohk->...no", heads, wo.view(wo.shape[0], n_heads, -1))
