"""Training: a run that may be stopped at any moment can continue as if it had not been stopped."""

import os
from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Int

from cs336_basics.config import TrainingConfig
from cs336_basics.transformer import TransformerLM

OnLog = Callable[[int, Mapping[str, float]], None]
"""A function that is called with the number of a logged step and its measurements."""


def train(
    token_ids: Int[np.ndarray, " n"],
    config: TrainingConfig,
    out_dir: str | os.PathLike[str],
    resume: bool = False,
    validation_ids: Int[np.ndarray, " m"] | None = None,
    on_log: OnLog | None = None,
) -> dict[int, dict[str, float]]:
    """Train a model, and return the measurements of each logged step.

    A step is one update of the weights. The first one is step 1, and step k has the learning rate
    of iteration k of the schedule. The measurements of a step are:

    - `train_loss`: the loss of its batch before the update, in nats per token;
    - `learning_rate`: the learning rate of the update;
    - `gradient_norm`: the L2 norm of all gradients together, before clipping;
    - `validation_loss`, at some steps: the mean loss over batches of held-out tokens after the
      update, in evaluation mode. All validations of a run use the same batches.

    A run that is stopped at any moment and resumed ends with the weights and measurements of a run
    without a stop; on the CPU they are equal bit for bit. For this purpose, the batch of a step
    depends only on `config.seed` and the number of the step. The files in `out_dir` are:

    - `checkpoint.pt`: `save_checkpoint` of model, optimizer and the number of steps done;
    - `metrics.csv`: the columns `step`, `train_loss`, `learning_rate`, `gradient_norm` and
      `validation_loss`, with exactly one line for each logged step;
    - `config.json`: the configuration.

    If a process group of PyTorch is initialised, every process calls this function and works on its
    share of each batch; the first process writes the files.

    Args:
        token_ids: the data, which may be memory-mapped: only the tokens of a batch are read.
        config: the settings of the run.
        out_dir: the folder of the files; it is made if it does not exist.
        resume: continue from the checkpoint in `out_dir`, or begin a new run if there is none. If
            False, begin a new run and replace the files of an earlier one.
        validation_ids: the held-out tokens; None means the last `config.validation_tokens` of the
            data, which are then not used for training.
        on_log: is called with each logged step of this call and its measurements.

    Returns:
        the measurements by the number of the step; after a resume, those of the whole run.

    Raises:
        ConfigError: the data is too short for one sequence and its targets, or the processes
            can't share a batch evenly.
    """
    raise NotImplementedError("training_loop: handout §3.7")


def build_model(config: TrainingConfig) -> TransformerLM:
    """Build the model of a configuration, on the CPU."""
    raise NotImplementedError("training_loop: handout §3.7")
