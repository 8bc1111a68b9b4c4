"""Batches: random windows of the text, each with the window one token later as its target."""

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor


def get_batch(
    dataset: npt.NDArray[np.integer],
    batch_size: int,
    context_length: int,
    device: torch.device | str,
) -> tuple[Int[Tensor, "batch_size context_length"], Int[Tensor, "batch_size context_length"]]:
    """Sample `batch_size` windows of the dataset, and for each the window one token later.

    Every draw chooses one of the `len(dataset) − context_length` windows that have targets, all
    with the same probability. Windows overlap, and one may be drawn twice. Only the drawn windows
    are read, so the dataset may be a memory-mapped file that is larger than memory. PyTorch's
    generator on the CPU draws them, so `torch.manual_seed` makes a run repeatable.

    Args:
        dataset: the token ids of the text, of any integer dtype.
        batch_size: number of windows.
        context_length: number of tokens in a window.
        device: the device of the batch.

    Returns:
        inputs and targets, int64; `targets[b, i]` is the token after `inputs[b, i]`.

    Raises:
        ValueError: the dataset has fewer than `context_length + 1` tokens.
    """
    windows = len(dataset) - context_length
    if windows < 1:
        raise ValueError(
            f"a window of {context_length} tokens and its targets need {context_length + 1}; "
            f"the dataset has {len(dataset)}"
        )
    starts = torch.randint(windows, (batch_size, 1))
    places = (starts + torch.arange(context_length)).numpy()
    inputs, targets = (
        torch.from_numpy(dataset[p].astype(np.int64)).to(device) for p in (places, places + 1)
    )
    return inputs, targets
