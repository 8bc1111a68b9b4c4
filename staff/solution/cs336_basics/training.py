"""Training: a run that may be stopped at any moment can continue as if it had not been stopped."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from cs336_basics.adamw import AdamW
from cs336_basics.batches import get_batch
from cs336_basics.checkpointing import load_checkpoint, save_checkpoint
from cs336_basics.config import ConfigError, TrainingConfig
from cs336_basics.cross_entropy import cross_entropy
from cs336_basics.gradient_clipping import clip_gradients
from cs336_basics.lr_schedule import lr_cosine_schedule
from cs336_basics.metrics import append_metrics, read_metrics, write_metrics
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
    token_ids, validation_ids = _split(token_ids, validation_ids, config)
    out_dir = Path(out_dir)
    out_dir.mkdir(parents=True, exist_ok=True)
    checkpoint, metrics_file = out_dir / "checkpoint.pt", out_dir / "metrics.csv"
    device, (rank, world) = _device(config), _process(config)
    _seed(config, step=0)
    model = build_model(config).to(device)
    optimizer = AdamW(
        model.parameters(),
        lr=config.max_learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        weight_decay=config.weight_decay,
    )
    done = 0
    if resume and checkpoint.exists():
        done = load_checkpoint(checkpoint, model, optimizer)
    metrics = {step: row for step, row in read_metrics(metrics_file).items() if step <= done}
    if rank == 0:
        if not done:
            checkpoint.unlink(missing_ok=True)
        write_metrics(metrics_file, metrics)
        (out_dir / "config.json").write_bytes(msgspec.json.encode(config))
    if config.compile:
        model.compile()
    parallel = DistributedDataParallel(model) if world > 1 else model

    for step in range(done + 1, config.steps + 1):
        learning_rate = _learning_rate(config, step)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate
        _seed(config, step)
        x, y = get_batch(token_ids, config.batch_size, config.context_length, device)
        loss = _loss(parallel, x[rank::world], y[rank::world], config)
        optimizer.zero_grad()
        loss.backward()
        gradient_norm = clip_gradients(model.parameters(), config.max_l2_norm)
        optimizer.step()

        last = step == config.steps
        validates = validation_ids is not None and (last or step % config.validate_every == 0)
        if last or validates or step % config.log_every == 0:
            row = metrics[step] = {
                "train_loss": _mean_over_processes(loss),
                "learning_rate": learning_rate,
                "gradient_norm": gradient_norm.item(),
            }
            if validation_ids is not None and validates:
                row["validation_loss"] = _validation_loss(model, validation_ids, config, device)
            if rank == 0:
                append_metrics(metrics_file, step, row)
                if on_log is not None:
                    on_log(step, row)
        # The checkpoint comes last, so that a step in the checkpoint is never measured again.
        if rank == 0 and (last or step % config.checkpoint_every == 0):
            save_checkpoint(model, optimizer, step, checkpoint)
    return metrics


def build_model(config: TrainingConfig) -> TransformerLM:
    """Build the model of a configuration, on the CPU."""
    return TransformerLM(
        config.vocab_size,
        config.context_length,
        config.d_model,
        config.num_layers,
        config.num_heads,
        config.d_ff,
        config.rope_theta,
    )


def _split(
    token_ids: npt.NDArray[np.integer],
    validation_ids: npt.NDArray[np.integer] | None,
    config: TrainingConfig,
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer] | None]:
    """Hold out the end of the data, unless there is separate data for validation."""
    if validation_ids is None and config.validation_tokens:
        cut = max(0, len(token_ids) - config.validation_tokens)
        token_ids, validation_ids = token_ids[:cut], token_ids[cut:]
    for name, ids in (("train", token_ids), ("validate", validation_ids)):
        if ids is not None and len(ids) <= config.context_length:
            raise ConfigError(
                f"there are {len(ids)} tokens to {name} on; a sequence of "
                f"{config.context_length} and its targets take {config.context_length + 1}"
            )
    return token_ids, validation_ids


def _device(config: TrainingConfig) -> torch.device:
    if config.device != "auto":
        return torch.device(config.device)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _process(config: TrainingConfig) -> tuple[int, int]:
    """Return the rank of this process, and the number of processes."""
    if not dist.is_initialized():
        return 0, 1
    if config.batch_size % dist.get_world_size():
        raise ConfigError(
            f"batch_size must be a multiple of the number of processes, {dist.get_world_size()}; "
            f"it is {config.batch_size}"
        )
    return dist.get_rank(), dist.get_world_size()


def _seed(config: TrainingConfig, step: int) -> None:
    """Seed the generator of weights and batches, so that its state need not be saved."""
    mixed = np.random.SeedSequence((config.seed, step)).generate_state(1, np.uint64)
    torch.default_generator.manual_seed(int(mixed[0]))


def _learning_rate(config: TrainingConfig, step: int) -> float:
    return lr_cosine_schedule(
        step,
        config.max_learning_rate,
        config.min_learning_rate,
        config.warmup_iters,
        config.steps if config.cosine_cycle_iters is None else config.cosine_cycle_iters,
    )


def _loss(model: nn.Module, x: Tensor, y: Tensor, config: TrainingConfig) -> Tensor:
    with torch.autocast(x.device.type, torch.bfloat16, enabled=config.autocast):
        logits = model(x)
    return cross_entropy(logits, y)


@torch.no_grad()
def _validation_loss(
    model: nn.Module,
    token_ids: npt.NDArray[np.integer],
    config: TrainingConfig,
    device: torch.device,
) -> float:
    _seed(config, step=0)
    model.eval()
    losses = []
    for _ in range(config.validation_batches):
        x, y = get_batch(token_ids, config.batch_size, config.context_length, device)
        losses.append(_loss(model, x, y, config))
    model.train()
    return torch.stack(losses).mean().item()


def _mean_over_processes(loss: Tensor) -> float:
    mean = loss.detach().clone()
    if dist.is_initialized():
        dist.all_reduce(mean)
        mean /= dist.get_world_size()
    return mean.item()
