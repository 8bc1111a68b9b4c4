"""The training program: one loop of PyTorch's own parts, two processes, files, and `kill -9`."""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from cs336_basics.batches import get_batch
from cs336_basics.config import ConfigError, make_config, read_config
from cs336_basics.metrics import append_metrics, read_metrics, write_metrics
from cs336_basics.train import main, open_token_ids
from cs336_basics.training import build_model, train
from staff.paths import SOLUTION
from staff.validation.kills import killed_moments

FIELDS = {
    "vocab_size": 13,
    "context_length": 6,
    "d_model": 8,
    "num_layers": 1,
    "num_heads": 2,
    "d_ff": 12,
    "steps": 8,
    "batch_size": 4,
    "max_learning_rate": 1e-2,
    "warmup_iters": 3,
    "device": "cpu",
}
IDS = np.random.default_rng(5).integers(0, 13, 300).astype(np.uint16)


def _weights(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)["model"]


def _config_file(folder, **fields):
    """Write a configuration, beside the data it names, as TOML."""
    np.save(folder / "ids.npy", IDS)
    fields = {**FIELDS, "data": f"{folder}/ids.npy", "out_dir": f"{folder}/run", **fields}
    file = folder / "config.toml"
    lines = [f"{k} = {json.dumps(v)}" for k, v in fields.items()]
    file.write_text("\n".join(lines), "utf-8")
    return file


def test_the_loop_of_pytorchs_own_parts(tmp_path, monkeypatch):
    """Catches another loss, optimizer, schedule, clipping or order of them than PyTorch's own."""
    batches = []
    monkeypatch.setattr(
        "cs336_basics.training.get_batch",
        lambda *arguments: batches.append(get_batch(*arguments)) or batches[-1],
    )
    config = make_config({**FIELDS, "max_l2_norm": 0.5, "weight_decay": 0.3})
    seen = []
    monkeypatch.setattr(
        "cs336_basics.training.build_model",
        lambda config: seen.append(build_model(config)) or seen[-1].double(),
    )
    torch.manual_seed(0)
    found = train(IDS, config, tmp_path)
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
    for name, value in _weights(tmp_path).items():
        torch.testing.assert_close(value, model.state_dict()[name], rtol=1e-6, atol=1e-6)


def test_killed_runs_end_as_if_nothing_had_happened():
    """Catches whatever of a run's state is in memory alone; `make prove` tries 50 moments."""
    assert [moment.equal for moment in killed_moments(3, seed=1)] == [True] * 3


def test_two_processes_are_one(tmp_path, capsys):
    """Catches gradients that are summed, batches drawn twice, losses of one share alone."""
    main(["--config", str(_config_file(tmp_path))])
    assert "tok/s" in capsys.readouterr().err
    alone = read_metrics(tmp_path / "run" / "metrics.csv")
    file = _config_file(tmp_path, out_dir=f"{tmp_path}/two")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *launcher, "-m", "cs336_basics.train", "--config", str(file)],
        cwd=SOLUTION,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    together = read_metrics(tmp_path / "two" / "metrics.csv")
    assert list(together) == list(alone) == list(range(1, 9))
    for step, row in alone.items():
        assert together[step] == pytest.approx(row, rel=1e-4), step
    for name, value in _weights(tmp_path / "run").items():
        other = _weights(tmp_path / "two")[name]
        torch.testing.assert_close(other, value, rtol=1e-3, atol=1e-5)
    for run in ("run", "two"):
        assert (tmp_path / run / "loss.png").read_bytes().startswith(b"\x89PNG")


def test_data_of_any_form(tmp_path):
    """Catches a raw file read as another dtype than it was written in."""
    IDS.tofile(tmp_path / "ids.bin")
    IDS.astype(np.uint32).tofile(tmp_path / "ids.wide")
    np.save(tmp_path / "ids.npy", IDS)
    for name, dtype in (("ids.bin", "uint16"), ("ids.wide", "uint32"), ("ids.npy", "uint16")):
        found = open_token_ids(tmp_path / name, dtype)
        assert isinstance(found, np.memmap)
        assert np.array_equal(found, IDS)


def test_validation_data_of_its_own(tmp_path):
    """Catches a held-out file that is not used, or a training file that is cut for it."""
    config = make_config({**FIELDS, "validate_every": 4})
    other = np.full(50, 3, dtype=np.uint16)
    with_file = train(IDS, config, tmp_path / "a", validation_ids=other)
    without = train(IDS, config, tmp_path / "b")
    assert [step for step, row in with_file.items() if "validation_loss" in row] == [4, 8]
    assert all(with_file[step]["train_loss"] == row["train_loss"] for step, row in without.items())
    model = build_model(config)
    model.load_state_dict(_weights(tmp_path / "a"))
    with torch.no_grad():
        expected = F.cross_entropy(model(torch.full((1, 6), 3)).flatten(0, 1), torch.full((6,), 3))
    assert with_file[8]["validation_loss"] == pytest.approx(expected.item(), rel=1e-5)


def test_fewer_lines_than_steps(tmp_path):
    """Catches a last step that is not logged; validations are logged whenever they are."""
    config = make_config({**FIELDS, "log_every": 3, "validation_tokens": 20, "validate_every": 4})
    assert list(train(IDS, config, tmp_path)) == [3, 4, 6, 8]


def test_other_ways_to_compute(tmp_path, monkeypatch):
    """Catches autocast and compile that are not asked for, or leave a mark in the checkpoint."""
    compiled = []
    monkeypatch.setattr(nn.Module, "compile", lambda self: compiled.append(type(self).__name__))
    plain = train(IDS, make_config(FIELDS), tmp_path / "plain")
    assert compiled == []
    other = make_config({**FIELDS, "autocast": True, "compile": True})
    short = train(IDS, other, tmp_path / "short")
    assert compiled == ["TransformerLM"]
    off = max(abs(short[step]["train_loss"] - row["train_loss"]) for step, row in plain.items())
    assert 0 < off < 0.1
    assert {v.dtype for v in _weights(tmp_path / "short").values()} == {torch.float32}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"stepz": 3}, "stepz"),
        ({"steps": "ten"}, "Expected `int`, got `str` - at `$.steps`"),
        ({"steps": 0}, "steps must be 1 or more; it is 0"),
        ({"num_heads": 3}, "num_heads must divide d_model; 3 does not divide 8"),
        ({"data": "nowhere.npy"}, "nowhere.npy can't be read"),
        ({"context_length": 300}, "there are 300 tokens to train on"),
        ({"validation_tokens": 6}, "there are 6 tokens to validate on"),
        ({"data_dtype": "int8"}, "data_dtype"),
    ],
)
def test_one_line_for_what_cannot_be_used(tmp_path, capsys, change, text):
    """Catches a traceback where a line is enough."""
    with pytest.raises(SystemExit) as stop:
        main(["--config", str(_config_file(tmp_path, **change))])
    message = capsys.readouterr().err
    assert stop.value.code == 2
    lines = [line for line in message.splitlines() if "%" not in line]
    assert text in message
    assert len([line for line in lines if line.strip()]) == 1


def test_configurations_of_either_form(tmp_path):
    """Catches a form that is read differently, and a file of neither form."""
    toml = read_config(_config_file(tmp_path))
    fields = {name: getattr(toml, name) for name in toml.__struct_fields__}
    (tmp_path / "config.json").write_text(json.dumps(fields), "utf-8")
    assert read_config(tmp_path / "config.json") == toml
    for name, content in (("c.yaml", "a: 1"), ("c.toml", "a = "), ("absent.json", None)):
        if content is not None:
            (tmp_path / name).write_text(content, "utf-8")
        with pytest.raises(ConfigError, match=name):
            read_config(tmp_path / name)


def test_metrics_survive_a_torn_line(tmp_path):
    """Catches a line of a killed process that is read as another step's, and lost digits."""
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
