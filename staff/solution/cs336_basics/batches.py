"""Batches: windows of text from random places, each with the tokens that come next."""

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
    """Sample `batch_size` windows of the dataset, and for each the window one token further on.

    Every window that the dataset holds, with its targets, is as likely as any other, at each draw:
    there are `len(dataset) − context_length`, they overlap, and one may come twice. No more is
    read of the dataset than these windows, so it may be a memory-mapped file larger than memory.
    PyTorch's generator on the CPU draws them, so that `torch.manual_seed` repeats a run.

    Args:
        dataset: token ids, one after the other, of any integer dtype.
        batch_size: number of windows.
        context_length: number of tokens in a window.
        device: where the batch is put.

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
