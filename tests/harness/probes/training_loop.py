"""Probes of a training run: the inputs of the model, and the files of the run."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.harness.plain import Plain
from tests.harness.probes.symbols import resolve
from tests.harness.probes.training import leave_the_compiler_out
from tests.harness.recipes import scratch_file

_SIZES = (
    "vocab_size",
    "context_length",
    "d_model",
    "num_layers",
    "num_heads",
    "d_ff",
    "rope_theta",
)


class _Interrupted(BaseException):
    """Interrupts a run as a kill would; it is not an `Exception`, so a run can't handle it."""


def training_runs(
    adapters: ModuleType,
    symbol: str,
    token_ids: np.ndarray[Any, Any],
    runs: Sequence[Mapping[str, Plain]],
) -> list[dict[str, Plain]]:
    """Train several runs in turn in the same new folder, and describe each.

    Args:
        adapters: the adapters module of the submission.
        symbol: the class of the model, as `package.module:Name`.
        token_ids: the data.
        runs: the options of each run: `config`; `resume`; `stop_at`, the number of the training
            batch at which the run is interrupted; `tokens`, the number of tokens of the data; and
            `noise`, the seed of PyTorch's and numpy's generators before the run.
    """
    leave_the_compiler_out()
    folder = scratch_file("")
    folder.mkdir()
    with contextlib.chdir(folder):  # so that messages are the same in every run
        return [_run(adapters, symbol, token_ids, Path("run"), **run) for run in runs]


def _run(
    adapters: ModuleType,
    symbol: str,
    token_ids: np.ndarray[Any, Any],
    folder: Path,
    config: Mapping[str, Plain],
    resume: bool = False,
    stop_at: int | None = None,
    tokens: int | None = None,
    noise: int = 0,
) -> dict[str, Plain]:
    torch.default_generator.manual_seed(noise)
    np.random.seed(noise)
    model_class, metrics = resolve(symbol), None
    with _watched(model_class, stop_at) as calls, contextlib.suppress(_Interrupted):
        metrics = adapters.run_training(token_ids[:tokens], dict(config), str(folder), resume)
    return {
        "metrics": None if metrics is None else _as_floats(metrics),
        "calls": calls,
        "csv": _text(folder / "metrics.csv"),
        **_saved(adapters, model_class, config, folder / "checkpoint.pt"),
    }


@contextmanager
def _watched(model_class: type[nn.Module], stop_at: int | None) -> Iterator[list[dict[str, Plain]]]:
    """Record every call of a model of the class."""
    calls: list[dict[str, Plain]] = []
    forward = model_class.forward

    def noting(self: nn.Module, *args: Tensor, **named: Tensor) -> Tensor:
        token_ids = [*args, *named.values()][0]
        trains = torch.is_grad_enabled()
        if trains and stop_at == 1 + sum(call["gradients"] for call in calls):
            raise _Interrupted
        call = {"gradients": trains, "training": self.training, "ids": token_ids.cpu().clone()}
        calls.append(call | ({"weights": _flat(self)} if trains else {}))
        return forward(self, *args, **named)

    model_class.forward = noting
    try:
        yield calls
    finally:
        model_class.forward = forward


def _saved(
    adapters: ModuleType, model_class: type[nn.Module], config: Mapping[str, Plain], file: Path
) -> dict[str, Plain]:
    """Return the content of the checkpoint, read with the submission's own function."""
    if not file.exists():
        return {"iteration": None, "saved": None}
    model = _model(model_class, config)
    optimizer = adapters.get_adamw_cls()(model.parameters(), lr=1e-3)
    iteration = adapters.run_load_checkpoint(str(file), model, optimizer)
    return {"iteration": iteration, "saved": _flat(model)}


def plain_loop(
    symbol: str,
    config: Mapping[str, Plain],
    weights: Tensor,
    batches: Sequence[tuple[Tensor, Tensor]],
    learning_rates: Sequence[float],
    decay_first: bool,
) -> dict[str, Tensor]:
    """Train the submission's model in a plain loop of PyTorch functions.

    Args:
        symbol: the class of the model.
        config: the configuration of the run.
        weights: the initial weights, as one vector.
        batches: the inputs and targets of every step.
        learning_rates: the learning rate of every step.
        decay_first: whether AdamW applies weight decay before the update.

    Returns:
        the `losses` and `norms` of every step, and the final `weights`.
    """
    model = _loaded(resolve(symbol), config, weights)
    parameters = list(model.parameters())
    means = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]
    losses, norms = [], []
    for t, ((x, y), rate) in enumerate(zip(batches, learning_rates, strict=True), 1):
        loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten())
        gradients = torch.autograd.grad(loss, parameters)
        norm = torch.linalg.vector_norm(torch.cat([g.flatten() for g in gradients]))
        losses.append(loss.detach())
        norms.append(norm)
        scale = min(1.0, config["max_l2_norm"] / norm.item())
        with torch.no_grad():
            for p, g, (m, v) in zip(parameters, gradients, means, strict=True):
                m.lerp_(g * scale, 1 - config["beta1"])
                v.lerp_((g * scale).square(), 1 - config["beta2"])
                root = (v / (1 - config["beta2"] ** t)).sqrt() + config["eps"]
                update = rate * m / (1 - config["beta1"] ** t) / root
                shrunk = 1 - rate * config["weight_decay"]
                p.copy_(p * shrunk - update if decay_first else (p - update) * shrunk)
    return {"losses": torch.stack(losses), "norms": torch.stack(norms), "weights": _flat(model)}


def logits_of_weights(
    symbol: str, config: Mapping[str, Plain], weights: Tensor, ids: Tensor
) -> Tensor:
    """Return the logits of the submission's model, with the weights of a run."""
    with torch.no_grad():
        logits: Tensor = _loaded(resolve(symbol), config, weights)(ids)
    return logits


def training_program(
    symbol: str, token_ids: np.ndarray[Any, Any], config: Mapping[str, Plain], form: str
) -> dict[str, Plain]:
    """Run the program in a new folder; return its exit status, its messages and metrics.csv.

    Args:
        symbol: the program's function, which takes the arguments of a command line.
        token_ids: the data, written as `.npy` or, if `config` has a `data_dtype`, as raw integers.
        config: the configuration, without paths.
        form: the form of the configuration file, `json` or `toml`.
    """
    leave_the_compiler_out()
    folder = scratch_file("")
    folder.mkdir()
    fields = {**config, "data": "ids.npy", "out_dir": "run"}
    if "data_dtype" in config:
        fields["data"] = "ids.bin"
        token_ids.astype(str(config["data_dtype"])).tofile(folder / "ids.bin")
    else:
        np.save(folder / "ids.npy", token_ids)
    lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
    text = json.dumps(fields) if form == "json" else "\n".join(lines)
    (folder / f"config.{form}").write_text(text, "utf-8")
    status: Plain = 0
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stderr(said):
        try:
            resolve(symbol)(["--config", f"config.{form}"])
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int | None) else 1
    csv = _text(folder / "run" / "metrics.csv")
    return {"status": status or 0, "csv": csv, "said": said.getvalue()}


def last_logits(symbol: str, context_length: int, table: Tensor, ids: Tensor) -> dict[str, Plain]:
    """Compute the next token's logits with a model that is a table of logits.

    Args:
        symbol: the function that takes a model and returns a function from ids to logits.
        context_length: the context length of the model, which raises for longer sequences.
        table: the model's logits after each token.
        ids: the ids of the text.
    """
    model = _Table(table, context_length)
    logits = resolve(symbol)(model, context_length)(ids)
    return {
        "logits": logits.detach(),
        "requires_grad": logits.requires_grad,
        "shown": model.shown,
    }


class _Table(nn.Module):
    def __init__(self, table: Tensor, context_length: int) -> None:
        super().__init__()
        self.table = nn.Parameter(table)
        self._context_length = context_length
        self.shown: list[Tensor] = []

    def forward(self, token_ids: Tensor) -> Tensor:
        if token_ids.shape[-1] > self._context_length:
            raise IndexError(
                f"the sequence has {token_ids.shape[-1]} tokens, "
                f"and context_length is {self._context_length}"
            )
        self.shown.append(token_ids.clone())
        return self.table[token_ids]


def _model(model_class: type[nn.Module], config: Mapping[str, Plain]) -> nn.Module:
    sizes = {"rope_theta": 10000.0, **config}
    return model_class(**{name: sizes[name] for name in _SIZES})


def _loaded(
    model_class: type[nn.Module], config: Mapping[str, Plain], weights: Tensor
) -> nn.Module:
    """Return a model with the weights that `_flat` has joined to one vector."""
    model = _model(model_class, config)
    parameters = list(model.parameters())
    parts = weights.split([p.numel() for p in parameters])
    with torch.no_grad():
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.copy_(part.reshape(parameter.shape))
    return model


def _flat(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten().cpu() for p in model.parameters()])


def _as_floats(metrics: Mapping[Any, Mapping[Any, Any]]) -> dict[int, dict[str, float]]:
    return {int(s): {str(k): float(v) for k, v in row.items()} for s, row in metrics.items()}


def _text(file: Path) -> str | None:
    return file.read_text("utf-8") if file.exists() else None
