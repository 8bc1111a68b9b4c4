"""The configuration of a training run: typed data that is read from a TOML or JSON file."""

from pathlib import Path
from typing import Literal

import msgspec


class ConfigError(ValueError):
    """A configuration can't be used; the text says in one line which field is wrong and why."""


class TrainingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of a training run. A *step* is one update of the weights."""

    vocab_size: int
    """Number of tokens in the vocabulary; every id of the data is smaller."""
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
    """Number of steps of the whole run; a resumed run counts from its first start."""
    batch_size: int
    """Number of sequences in a step, over all processes together."""
    seed: int = 0
    """Seed of the initial weights and of every batch."""

    max_learning_rate: float = 1e-3
    """Learning rate at the end of the warm-up."""
    min_learning_rate: float = 1e-4
    """Learning rate from step `cosine_cycle_iters` on."""
    warmup_iters: int = 0
    """Number of steps in which the learning rate rises to its maximum; it may be 0."""
    cosine_cycle_iters: int | None = None
    """Step at which the learning rate reaches its minimum; None means the last step."""
    beta1: float = 0.9
    """Decay rate of AdamW's mean of gradients."""
    beta2: float = 0.95
    """Decay rate of AdamW's mean of squared gradients."""
    eps: float = 1e-8
    """Added to AdamW's denominator."""
    weight_decay: float = 0.1
    """Strength of AdamW's weight decay, which is scaled by the learning rate."""
    max_l2_norm: float = 1.0
    """Largest norm of all gradients together; larger gradients are scaled down to it."""

    validation_tokens: int = 0
    """Number of tokens at the end of the data that are held out for validation; 0 means none."""
    validation_batches: int = 8
    """Number of batches of a validation, whose loss is their mean."""
    validate_every: int = 100
    """Number of steps between two validations."""
    log_every: int = 1
    """Number of steps between two lines of `metrics.csv`; each validation adds a line too."""
    checkpoint_every: int = 100
    """Number of steps between two checkpoints; the last step always saves one."""

    device: str = "auto"
    """`cpu`, `cuda` or `mps`; `auto` chooses the fastest available device."""
    autocast: bool = False
    """Whether the matrix products of the model are computed in bfloat16."""
    compile: bool = False
    """Whether the model is compiled with `torch.compile`."""

    data: str = "tokens.npy"
    """File of token ids, `.npy` or raw integers; only the program uses this and later fields."""
    validation_data: str | None = None
    """Second file, for validation; None means the held-out end of `data`."""
    data_dtype: Literal["uint16", "uint32"] = "uint16"
    """Dtype of the integers in a raw file."""
    out_dir: str = "run"
    """Folder for the metrics, the checkpoint and the loss curve."""
    loss_curve: bool = True
    """Whether the loss curve is drawn at the end, as `loss.png`."""


def make_config(fields: dict[str, object]) -> TrainingConfig:
    """Make a configuration from plain data.

    Raises:
        ConfigError: a field is unknown, missing, of another type, or outside its range. Counts must
            be at least 1, unless their description allows 0. `num_heads` must divide `d_model`.
    """
    try:
        config = msgspec.convert(fields, TrainingConfig)
    except msgspec.ValidationError as error:
        known = ", ".join(TrainingConfig.__struct_fields__)
        hint = f"; the fields are: {known}" if "unknown field" in str(error) else ""
        raise ConfigError(f"{error}{hint}") from None
    for name in _COUNTS:
        if getattr(config, name) < 1:
            raise ConfigError(f"{name} must be 1 or more; it is {getattr(config, name)}")
    if config.d_model % config.num_heads:
        raise ConfigError(
            f"num_heads must divide d_model; {config.num_heads} does not divide {config.d_model}"
        )
    return config


def read_config(file: Path) -> TrainingConfig:
    """Read a configuration from a file whose name ends in `.toml` or `.json`.

    Raises:
        ConfigError: as for `make_config`, or the file can't be read; the text names the file.
    """
    if file.suffix not in (".toml", ".json"):
        raise ConfigError(f"{file}: the name of a configuration ends in .toml or .json")
    decode = msgspec.toml.decode if file.suffix == ".toml" else msgspec.json.decode
    try:
        return make_config(decode(file.read_bytes()))
    except OSError as error:
        raise ConfigError(f"{file} can't be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, ConfigError) as error:
        raise ConfigError(f"{file}: {error}") from None


_COUNTS = (
    "vocab_size",
    "context_length",
    "d_model",
    "num_layers",
    "num_heads",
    "d_ff",
    "steps",
    "batch_size",
    "validation_batches",
    "validate_every",
    "log_every",
    "checkpoint_every",
)
