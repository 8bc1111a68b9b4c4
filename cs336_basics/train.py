"""The training program: `python -m cs336_basics.train --config FILE [--resume]`.

PyTorch's launcher starts it as several processes, with one GPU for each or all on the CPU:
`torchrun --nproc-per-node 2 -m cs336_basics.train --config FILE`.
"""

import os
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Int


def main(arguments: Sequence[str] | None = None) -> None:
    """Train with the settings of a configuration file, show the progress, and draw the loss curve.

    A bar shows the loss, the tokens per second and the remaining time. The curve is written to the
    folder of the run. If the configuration or the data can't be used, one line says why, and the
    exit status is 2.

    Args:
        arguments: the arguments of the command line; None means those of this process.
    """
    raise NotImplementedError("training_loop: handout §3.7")


def open_token_ids(file: str | os.PathLike[str], dtype: str) -> Int[np.ndarray, " n"]:
    """Map a file of token ids into memory, so that only the used parts are read.

    Args:
        file: a `.npy` file, or a file with another name that holds only the integers.
        dtype: dtype of the integers in such a file, such as `uint16`.

    Raises:
        ConfigError: the file can't be read, or does not hold integers along a single axis.
    """
    raise NotImplementedError("training_loop: handout §3.7")


def draw_curve(metrics: Mapping[int, Mapping[str, float]], file: str | os.PathLike[str]) -> None:
    """Draw training and validation loss, in nats per token, over the steps, into a PNG file."""
    raise NotImplementedError("training_loop: handout §3.7")


if __name__ == "__main__":
    main()
