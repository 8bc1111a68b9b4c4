"""What a training run is told: one typed configuration, read from a TOML or JSON file."""

from pathlib import Path
from typing import Literal

import msgspec


class ConfigError(ValueError):
    """A configuration can't be used: one line that says what is wrong with which field."""


class TrainingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that decides the course of a run. A *step* is one update of the weights."""

    vocab_size: int
    """Number of tokens; every id of the data is smaller."""
    context_length: int
    """Length of the sequences that the model is trained on, in tokens."""
    d_model: int
    """Width of the residual stream."""
    num_layers: int
    """Number of Transformer blocks."""
    num_heads: int
    """Number of attention heads of a block; divides `d_model`."""
    d_ff: int
    """Number of hidden features of a feed-forward layer."""
    rope_theta: float = 10000.0
    """Base of RoPE's angles."""

    steps: int
    """Length of the run, counted from its very beginning also when it is resumed."""
    batch_size: int
    """Sequences in a step, over all processes together."""
    seed: int = 0
    """Decides the first weights and every batch."""

    max_learning_rate: float = 1e-3
    """Learning rate at the end of the warm-up."""
    min_learning_rate: float = 1e-4
    """Learning rate from step `cosine_cycle_iters` on."""
    warmup_iters: int = 0
    """Steps in which the learning rate rises to its maximum."""
    cosine_cycle_iters: int | None = None
    """Step at which the learning rate reaches its minimum; None for the last one."""
    beta1: float = 0.9
    """Decay of AdamW's mean of gradients."""
    beta2: float = 0.95
    """Decay of AdamW's mean of squared gradients."""
    eps: float = 1e-8
    """Added to AdamW's denominator."""
    weight_decay: float = 0.1
    """AdamW's decoupled decay, scaled by the learning rate."""
    max_l2_norm: float = 1.0
    """Gradients whose joint norm is greater are scaled down to it."""

    validation_tokens: int = 0
    """Tokens at the end of the data that are held out for validation; 0 for none."""
    validation_batches: int = 8
    """Batches that a validation loss is the mean of."""
    validate_every: int = 100
    """Steps between two validations."""
    log_every: int = 1
    """Steps between two lines of `metrics.csv`; a step with a validation has one, too."""
    checkpoint_every: int = 100
    """Steps between two checkpoints; there is always one at the end."""

    device: str = "auto"
    """`cpu`, `cuda` or `mps`; `auto` takes the fastest that is there."""
    autocast: bool = False
    """Whether the matrix products of the model are computed in bfloat16."""
    compile: bool = False
    """Whether the model goes through `torch.compile`."""

    data: str = "tokens.npy"
    """For the program alone, like all below: the token ids, as `.npy` or as raw integers."""
    validation_data: str | None = None
    """A second file to validate on; None for the held-out end of the first."""
    data_dtype: Literal["uint16", "uint32"] = "uint16"
    """What a raw file holds."""
    out_dir: str = "run"
    """Where metrics, checkpoint and loss curve go."""
    loss_curve: bool = True
    """Whether the loss curve is drawn at the end, as `loss.png`."""


def make_config(fields: dict[str, object]) -> TrainingConfig:
    """Make a configuration of plain data.

    Raises:
        ConfigError: a field is unknown, missing, of another type, or of a value that no run can
            have: counts are at least 1 (those that may be 0 say so), and `num_heads` divides
            `d_model`.
    """
    raise NotImplementedError("training_loop: handout §3.7")


def read_config(file: Path) -> TrainingConfig:
    """Read a configuration from a file whose name ends in `.toml` or `.json`.

    Raises:
        ConfigError: as for `make_config`, or the file can't be read; the text names the file.
    """
    raise NotImplementedError("training_loop: handout §3.7")
