"""Training: the same loop in plain PyTorch, killed runs, validation and the metrics file."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cs336_basics import training
from cs336_basics.config import TrainingConfig, make_config
from cs336_basics.metrics import append_metrics, read_metrics, write_metrics
from staff.tests.solution.runs import FIELDS, IDS, saved_weights
from staff.validation.kills import killed_moments


def test_the_loop_of_pytorchs_own_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches training whose metrics or weights differ from a loop in plain PyTorch."""
    batches: list[tuple[Tensor, Tensor]] = []
    get_batch, build_model = vars(training)["get_batch"], training.build_model

    def noted_batch(*arguments: object) -> tuple[Tensor, Tensor]:
        batches.append(get_batch(*arguments))
        return batches[-1]

    def double_model(config: TrainingConfig) -> nn.Module:
        return build_model(config).double()

    monkeypatch.setattr(training, "get_batch", noted_batch)
    monkeypatch.setattr(training, "build_model", double_model)
    config = make_config({**FIELDS, "max_l2_norm": 0.5, "weight_decay": 0.3})
    torch.manual_seed(0)
    found = training.train(IDS, config, tmp_path)
    torch.manual_seed(int(np.random.SeedSequence((config.seed, 0)).generate_state(1, np.uint64)[0]))
    model = build_model(config).double()
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.3)
    for step, (x, y) in enumerate(batches, 1):
        cosine = 0.5 * (1 + math.cos(math.pi * (step - 3) / 5))
        rate = step / 3 * 1e-2 if step < 3 else 1e-4 + cosine * (1e-2 - 1e-4)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        expected = {"train_loss": loss.item(), "learning_rate": rate, "gradient_norm": norm.item()}
        assert found[step] == pytest.approx(expected, rel=1e-6)
    assert max(row["gradient_norm"] for row in found.values()) > 0.5
    for name, value in saved_weights(tmp_path).items():
        torch.testing.assert_close(value, model.state_dict()[name], rtol=1e-6, atol=1e-6)


def test_killed_runs_end_as_if_nothing_had_happened() -> None:
    """Catches a killed run that ends differently after it is resumed.

    `make prove` tries 50 moments in place of 3.
    """
    assert [moment.equal for moment in killed_moments(3, seed=1)] == [True] * 3


def test_validation_data_of_its_own(tmp_path: Path) -> None:
    """Catches a validation file that is ignored, or training ids that are removed for it."""
    config = make_config({**FIELDS, "validate_every": 4})
    other = np.full(50, 3, dtype=np.uint16)
    with_file = training.train(IDS, config, tmp_path / "a", validation_ids=other)
    without = training.train(IDS, config, tmp_path / "b")
    assert [step for step, row in with_file.items() if "validation_loss" in row] == [4, 8]
    assert all(with_file[step]["train_loss"] == row["train_loss"] for step, row in without.items())
    model = training.build_model(config)
    model.load_state_dict(saved_weights(tmp_path / "a"))
    with torch.no_grad():
        expected = F.cross_entropy(model(torch.full((1, 6), 3)).flatten(0, 1), torch.full((6,), 3))
    assert with_file[8]["validation_loss"] == pytest.approx(expected.item(), rel=1e-5)


def test_fewer_lines_than_steps(tmp_path: Path) -> None:
    """Catches a last step or a validation step that `log_every` omits from the metrics."""
    config = make_config({**FIELDS, "log_every": 3, "validation_tokens": 20, "validate_every": 4})
    assert list(training.train(IDS, config, tmp_path)) == [3, 4, 6, 8]


def test_other_ways_to_compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches autocast or compile without its option, or half precision in the checkpoint."""
    compiled: list[str] = []
    monkeypatch.setattr(nn.Module, "compile", lambda self: compiled.append(type(self).__name__))
    plain = training.train(IDS, make_config(FIELDS), tmp_path / "plain")
    assert compiled == []
    other = make_config({**FIELDS, "autocast": True, "compile": True})
    short = training.train(IDS, other, tmp_path / "short")
    assert compiled == ["TransformerLM"]
    off = max(abs(short[step]["train_loss"] - row["train_loss"]) for step, row in plain.items())
    assert 0 < off < 0.1
    assert {v.dtype for v in saved_weights(tmp_path / "short").values()} == {torch.float32}


def test_metrics_survive_a_torn_line(tmp_path: Path) -> None:
    """Catches an incomplete line of metrics that is read as a whole one, or lost digits."""
    file = tmp_path / "metrics.csv"
    assert read_metrics(file) == {}
    rows = {1: {"train_loss": 1 / 3}, 2: {"train_loss": math.pi, "validation_loss": 1e-300}}
    write_metrics(file, {1: rows[1]})
    append_metrics(file, 2, rows[2])
    whole = file.read_text("utf-8")
    assert read_metrics(file) == rows
    for length in range(len(whole)):
        file.write_text(whole[:length], "utf-8")
        found = read_metrics(file)
        assert found in ({}, {1: rows[1]})
