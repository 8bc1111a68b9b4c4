"""Checkpoints: wrapped models, optimizers that don't fit, and interrupted saving."""

import copy
import io
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from cs336_basics.adamw import AdamW
from cs336_basics.checkpointing import load_checkpoint, save_checkpoint


def _model(seed: int = 0) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def _step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    model(torch.linspace(-1, 1, 15).reshape(5, 3)).square().mean().backward()
    optimizer.step()


WRAPPERS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "bare": lambda model: model,
    "parallel": nn.DataParallel,
    "compiled and parallel": lambda model: nn.DataParallel(_compiled(model)),
    "parallel and compiled": lambda model: _compiled(nn.DataParallel(model)),
}


def _compiled(model: nn.Module) -> nn.Module:
    return cast(nn.Module, torch.compile(model))  # its annotation promises only a callable


# torch.compile imports a module that PyTorch itself deprecates.
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("reader", WRAPPERS)
@pytest.mark.parametrize("writer", WRAPPERS)
def test_wrappers_leave_no_trace(writer: str, reader: str) -> None:
    """Catches `_orig_mod.` or `module.` in the saved names of a wrapped model."""
    model, other = _model(), _model(seed=1)
    file = io.BytesIO()
    save_checkpoint(WRAPPERS[writer](model), AdamW(model.parameters()), 5, file)
    file.seek(0)
    assert list(torch.load(file, weights_only=True)["model"]) == list(model.state_dict())
    file.seek(0)
    assert load_checkpoint(file, WRAPPERS[reader](other), AdamW(other.parameters())) == 5
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)


def test_an_optimizer_of_fewer_parameters_is_refused() -> None:
    """Catches a model that is changed although the saved optimizer state doesn't fit."""
    model, file = _model(), io.BytesIO()
    optimizer = AdamW(model.parameters())
    _step(model, optimizer)
    save_checkpoint(model, optimizer, 2, file)
    other = _model(1)
    its_own = AdamW(list(other.parameters())[:2])
    before, settings = copy.deepcopy(other.state_dict()), copy.deepcopy(its_own.state_dict())
    file.seek(0)
    with pytest.raises(ValueError, match="parameter group"):
        load_checkpoint(file, other, its_own)
    for name, value in other.state_dict().items():
        assert torch.equal(value, before[name])
    assert its_own.state_dict() == settings


def test_a_stopped_save_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches an old file that an interrupted save damages, or extra files after the next save."""
    file, model = tmp_path / "run.pt", _model()
    optimizer = AdamW(model.parameters())
    save_checkpoint(model, optimizer, 1, file)
    old, save = file.read_bytes(), torch.save

    def stopped(what: dict[str, Tensor], where: io.BufferedWriter) -> None:
        save(what, where)
        where.truncate(100)
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", stopped)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(model, optimizer, 2, file)
    assert file.read_bytes() == old
    monkeypatch.undo()
    save_checkpoint(model, optimizer, 3, file)
    assert load_checkpoint(file, model, optimizer) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["run.pt"]
