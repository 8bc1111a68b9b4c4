"""A very short training run, for the tests of training and of the training program."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

FIELDS: dict[str, Any] = {
    "vocab_size": 13,
    "context_length": 6,
    "d_model": 8,
    "num_layers": 1,
    "num_heads": 2,
    "d_ff": 12,
    "steps": 8,
    "batch_size": 4,
    "max_learning_rate": 1e-2,
    "warmup_iters": 3,
    "device": "cpu",
}
IDS = np.random.default_rng(5).integers(0, 13, 300).astype(np.uint16)


def saved_weights(folder: Path) -> dict[str, Tensor]:
    """Load the weights from a run's checkpoint."""
    weights: dict[str, Tensor] = torch.load(folder / "checkpoint.pt", weights_only=True)["model"]
    return weights
