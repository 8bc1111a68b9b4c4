"""Training: batch after batch, in a run that may be stopped at any moment and goes on as before."""

import os
from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Int

from cs336_basics.config import TrainingConfig
from cs336_basics.transformer import TransformerLM

OnLog = Callable[[int, Mapping[str, float]], None]
"""Is told a step, and what was measured at it."""


def train(
    token_ids: Int[np.ndarray, " n"],
    config: TrainingConfig,
    out_dir: str | os.PathLike[str],
    resume: bool = False,
    validation_ids: Int[np.ndarray, " m"] | None = None,
    on_log: OnLog | None = None,
) -> dict[int, dict[str, float]]:
    """Train a model, and return what was measured at each logged step.

    A step is one update of the weights; the first is step 1, and step k has the learning rate of
    iteration k of the schedule. What is measured at a step:

    - `train_loss`: the loss of its batch before the update, in nats per token;
    - `learning_rate`: the one that the update used;
    - `gradient_norm`: the joint L2 norm of all gradients before clipping;
    - `validation_loss`, at some steps: the mean loss over batches of held-out tokens after the
      update, in evaluation mode. All validations of a run use the same batches.

    A run that is stopped, at whatever moment, and resumed ends as it would have ended without,
    on the CPU bit for bit, in weights and measurements. For that the batch of a step depends on
    `config.seed` and the step alone. The files in `out_dir` are:

    - `checkpoint.pt`: `save_checkpoint` of model, optimizer and the number of steps done;
    - `metrics.csv`: the columns `step`, `train_loss`, `learning_rate`, `gradient_norm` and
      `validation_loss`, one line for each logged step, never two for the same;
    - `config.json`: the configuration.

    Where a process group of PyTorch is open, every process calls this and works on its share of
    each batch, and the first one writes the files.

    Args:
        token_ids: the data, which may be memory-mapped: only what a batch needs is read.
        config: all that decides the course of the run.
        out_dir: made where it is missing.
        resume: go on from the checkpoint in `out_dir`, or begin where there is none. Otherwise
            begin, and replace what an earlier run has left.
        validation_ids: the held-out tokens; None for the last `config.validation_tokens` of the
            data, which are then not trained on.
        on_log: is told each logged step of this call, and what was measured.

    Returns:
        the measurements under the numbers of their steps, of the whole run also when it is resumed.

    Raises:
        ConfigError: the data is too short for one sequence and its targets, or the processes
            can't share a batch evenly.
    """
    raise NotImplementedError("training_loop: handout §3.7")


def build_model(config: TrainingConfig) -> TransformerLM:
    """Build the model of a configuration, on the CPU."""
    raise NotImplementedError("training_loop: handout §3.7")
