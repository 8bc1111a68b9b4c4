"""The training program: `python -m cs336_basics.train --config FILE [--resume]`.

PyTorch's launcher starts it as several processes, with one GPU for each or all on the CPU:
`torchrun --nproc-per-node 2 -m cs336_basics.train --config FILE`.
"""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from jaxtyping import Int
from tqdm import tqdm

from cs336_basics.config import ConfigError, TrainingConfig, read_config
from cs336_basics.training import OnLog, train


def main(arguments: Sequence[str] | None = None) -> None:
    """Train with the settings of a configuration file, show the progress, and draw the loss curve.

    A bar shows the loss, the tokens per second and the remaining time. The curve is written to the
    folder of the run. If the configuration or the data can't be used, one line says why, and the
    exit status is 2.

    Args:
        arguments: the arguments of the command line; None means those of this process.
    """
    parser = argparse.ArgumentParser(description="Train a Transformer language model.")
    parser.add_argument("--config", type=Path, required=True, help="a .toml or .json file")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    chosen = parser.parse_args(arguments)
    try:
        config = read_config(chosen.config)
        token_ids = open_token_ids(config.data, config.data_dtype)
        held_out = None
        if config.validation_data is not None:
            held_out = open_token_ids(config.validation_data, config.data_dtype)
        with _processes() as first, _progress_bar(config, hidden=not first) as show:
            metrics = train(token_ids, config, config.out_dir, chosen.resume, held_out, show)
        if first and config.loss_curve:
            draw_curve(metrics, Path(config.out_dir) / "loss.png")
    except ConfigError as error:
        parser.exit(2, f"{error}\n")


def open_token_ids(file: str | os.PathLike[str], dtype: str) -> Int[np.ndarray, " n"]:
    """Map a file of token ids into memory, so that only the used parts are read.

    Args:
        file: a `.npy` file, or a file with another name that holds only the integers.
        dtype: dtype of the integers in such a file, such as `uint16`.

    Raises:
        ConfigError: the file can't be read, or does not hold integers along a single axis.
    """
    try:
        if Path(file).suffix == ".npy":
            ids: npt.NDArray[np.integer] = np.load(file, mmap_mode="r", allow_pickle=False)
        else:
            ids = np.memmap(file, dtype=dtype, mode="r")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} can't be read as token ids: {error}") from None
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise ConfigError(
            f"{file} must hold one row of integers; it holds {ids.dtype} of shape {ids.shape}"
        )
    return ids


def draw_curve(metrics: Mapping[int, Mapping[str, float]], file: str | os.PathLike[str]) -> None:
    """Draw training and validation loss, in nats per token, over the steps, into a PNG file."""
    from matplotlib.figure import Figure  # slow to import, and needed only here

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, style in (("train_loss", "-"), ("validation_loss", "o-")):
        points = [(step, row[name]) for step, row in metrics.items() if name in row]
        if points:
            axes.plot(*zip(*points, strict=True), style, markersize=3, label=name.replace("_", " "))
    axes.set(xlabel="step", ylabel="loss in nats per token")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=150, format="png")


@contextmanager
def _processes() -> Iterator[bool]:
    """Join the processes that torchrun has started, if any; yield whether this is the first one."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield True
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield dist.get_rank() == 0
    finally:
        dist.destroy_process_group()


@contextmanager
def _progress_bar(config: TrainingConfig, hidden: bool) -> Iterator[OnLog]:
    """Show a bar that counts tokens, so that its speed is tokens per second."""
    tokens_per_step = config.batch_size * config.context_length
    total = config.steps * tokens_per_step
    with tqdm(total=total, unit="tok", unit_scale=True, disable=hidden) as bar:

        def show(step: int, row: Mapping[str, float]) -> None:
            tokens = step * tokens_per_step
            if not bar.n:  # the steps of an earlier run don't count for the speed
                bar.initial = tokens - tokens_per_step
                bar.n = bar.initial
            bar.set_postfix(loss=f"{row['train_loss']:.3f}", refresh=False)
            bar.update(tokens - bar.n)

        yield show


if __name__ == "__main__":
    main()
