"""The program: `python -m cs336_basics.train --config FILE [--resume]`.

As several processes, on as many GPUs or on one CPU, PyTorch's own launcher starts it:
`torchrun --nproc-per-node 2 -m cs336_basics.train --config FILE`.
"""

import os
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Int


def main(arguments: Sequence[str] | None = None) -> None:
    """Train as a configuration file says, show how it goes, and draw the loss curve.

    A bar shows the loss, the tokens per second and the time left. The curve stands beside the
    other files of the run. Where the configuration or the data can't be used, one line says why,
    and the exit status is 2.

    Args:
        arguments: those of the command line; None for the process's own.
    """
    raise NotImplementedError("training_loop: handout §3.7")


def open_token_ids(file: str | os.PathLike[str], dtype: str) -> Int[np.ndarray, " n"]:
    """Map a file of token ids into memory, of which only the parts that are used are read.

    Args:
        file: a `.npy` file, or one of any other name that holds nothing but the integers.
        dtype: of the integers of the latter, such as `uint16`.

    Raises:
        ConfigError: the file can't be read, or holds no row of integers.
    """
    raise NotImplementedError("training_loop: handout §3.7")


def draw_curve(metrics: Mapping[int, Mapping[str, float]], file: str | os.PathLike[str]) -> None:
    """Draw training and validation loss, in nats per token, over the steps, into a PNG file."""
    raise NotImplementedError("training_loop: handout §3.7")


if __name__ == "__main__":
    main()
