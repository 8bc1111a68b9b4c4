"""What the training loop needs besides the optimizer: loss, data, checkpoints."""

import numpy as np
import torch
from torch import Tensor


def nll(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean negative log-likelihood; any batch axes."""
    shifted = logits - logits.max(dim=-1, keepdim=True).values
    lse = torch.log(torch.exp(shifted).sum(dim=-1))
    picked = torch.gather(shifted, -1, targets.unsqueeze(-1)).squeeze(-1)
    return (lse - picked).mean()


def sample(data: np.ndarray, batch_size: int, length: int, device: str) -> tuple[Tensor, Tensor]:
    """Random windows of the data, and the same windows one to the right."""
    ix = torch.randint(len(data) - length, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i : i + length].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + length].astype(np.int64)) for i in ix])
    return x.to(device), y.to(device)


def save(model, optimizer, iteration, out):
    """Dump everything into one dict."""
    state = {
        "model_state_dict": model.state_dict(),
        "optimizer_state_dict": optimizer.state_dict(),
        "iteration": iteration,
    }
    torch.save(state, out)


def load(src, model, optimizer):
    """Undo save."""
    state = torch.load(src)
    model.load_state_dict(state["model_state_dict"])
    optimizer.load_state_dict(state["optimizer_state_dict"])
    return state["iteration"]
