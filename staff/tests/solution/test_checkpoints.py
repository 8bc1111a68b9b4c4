"""The solution's checkpoints: files that are whole, safe, free of wrappers, and exact."""

import copy
import io
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch import distributed as dist

from cs336_basics.adamw import AdamW
from cs336_basics.checkpointing import load_checkpoint, save_checkpoint


def _model(seed: int = 0, width: int = 4) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 2))


def _train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        x = torch.linspace(-1, step, 15).reshape(5, 3)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


def _values(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Tensor]:
    moments = [torch.as_tensor(x) for state in optimizer.state.values() for x in state.values()]
    return [*(p.detach().clone() for p in model.parameters()), *(x.clone() for x in moments)]


@pytest.fixture(params=["path", "text", "file", "memory"])
def place(request, tmp_path: Path) -> Iterator[Callable[[str], object]]:
    """Give what to write to, and then what to read from."""
    file, memory = tmp_path / "run.pt", io.BytesIO()
    opened: list[io.IOBase] = []

    def give(mode: str) -> object:
        if request.param == "memory":
            return memory if mode == "wb" else io.BytesIO(memory.getvalue())
        if request.param == "file":
            while opened:
                opened.pop().close()
            opened.append(file.open(mode))
            return opened[-1]
        return file if request.param == "path" else str(file)

    yield give
    while opened:
        opened.pop().close()


def test_resumed_run_is_the_same(place) -> None:
    """Catches any state that is lost, rounded or counted anew."""
    model = _model()
    optimizer = AdamW(model.parameters(), lr=0.1)
    _train(model, optimizer, range(3))
    save_checkpoint(model, optimizer, 3, place("wb"))
    _train(model, optimizer, range(3, 6))
    other = _model(seed=1)
    resumed = AdamW(other.parameters(), lr=0.7)
    start = load_checkpoint(place("rb"), other, resumed)
    assert start == 3
    assert resumed.param_groups[0]["lr"] == 0.1
    _train(other, resumed, range(start, 6))
    for one, two in zip(_values(model, optimizer), _values(other, resumed), strict=True):
        assert torch.equal(one, two)


@pytest.fixture(scope="module")
def one_process_group() -> Iterator[None]:
    """Make this process the only one of a group, which DistributedDataParallel asks for."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


WRAPPERS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "bare": lambda model: model,
    "compiled": torch.compile,
    "parallel": nn.DataParallel,
    "distributed": nn.parallel.DistributedDataParallel,
    "both": lambda model: torch.compile(nn.parallel.DistributedDataParallel(model)),
}


# torch.compile imports what PyTorch itself calls deprecated.
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.usefixtures("one_process_group")
@pytest.mark.parametrize("reader", WRAPPERS)
@pytest.mark.parametrize("writer", WRAPPERS)
def test_wrappers_leave_no_trace(writer: str, reader: str) -> None:
    """Catches `_orig_mod.` and `module.` in the names, which no other model understands."""
    model, other = _model(), _model(seed=1)
    file = io.BytesIO()
    save_checkpoint(WRAPPERS[writer](model), AdamW(model.parameters()), 5, file)
    file.seek(0)
    assert list(torch.load(file, weights_only=True)["model"]) == list(model.state_dict())
    file.seek(0)
    assert load_checkpoint(file, WRAPPERS[reader](other), AdamW(other.parameters())) == 5
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)


STRANGERS: dict[str, Callable[[], tuple[nn.Module, list[list[nn.Parameter]]]]] = {
    "wider": lambda: (m := _model(1, width=5), [list(m.parameters())]),
    "fewer layers": lambda: (m := _model(1)[:1], [list(m.parameters())]),
    "other names": lambda: (m := nn.Sequential(_model(1)), [list(m.parameters())]),
    "optimizer of fewer": lambda: (m := _model(1), [list(m.parameters())[:2]]),
    "two groups": lambda: (m := _model(1), [list(m.parameters())[:2], list(m.parameters())[2:]]),
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_wrong_model_is_refused_and_left_alone(kind: str) -> None:
    """Catches a model that is half overwritten by the time the error is raised."""
    model, file = _model(), io.BytesIO()
    optimizer = AdamW(model.parameters())
    _train(model, optimizer, range(2))
    save_checkpoint(model, optimizer, 2, file)
    stranger, groups = STRANGERS[kind]()
    its_own = AdamW([{"params": group} for group in groups])
    _train(stranger, its_own, range(1))
    before, settings = _values(stranger, its_own), copy.deepcopy(its_own.state_dict())
    file.seek(0)
    with pytest.raises(ValueError, match=r"another model|parameter group"):
        load_checkpoint(file, stranger, its_own)
    for one, two in zip(before, _values(stranger, its_own), strict=True):
        assert torch.equal(one, two)
    assert its_own.state_dict()["param_groups"] == settings["param_groups"]


class _Trap:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, ("trapped",)


def test_a_file_runs_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches loading without `weights_only`, by which a file can do anything."""
    monkeypatch.chdir(tmp_path)
    model = _model()
    torch.save({"model": _Trap()}, tmp_path / "run.pt")
    with pytest.raises(pickle.UnpicklingError):
        load_checkpoint(tmp_path / "run.pt", model, AdamW(model.parameters()))
    assert not (tmp_path / "trapped").exists()


def test_old_file_stays_until_the_new_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a file that is written in place, so that a kill on the way leaves neither."""
    file, model = tmp_path / "run.pt", _model()
    optimizer = AdamW(model.parameters())
    save_checkpoint(model, optimizer, 1, file)
    old = file.read_bytes()
    written = torch.save

    def stopped(what: object, where: io.BufferedWriter) -> None:
        written(what, where)
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
