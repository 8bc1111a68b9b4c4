"""The training program: configuration, data files, two processes and one-line errors."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cs336_basics.config import ConfigError, read_config
from cs336_basics.metrics import read_metrics
from cs336_basics.train import main, open_token_ids
from staff.paths import SOLUTION
from staff.tests.solution.runs import FIELDS, IDS, saved_weights


def _config_file(folder: Path, **fields: object) -> Path:
    """Write the data, and a TOML configuration that names their file."""
    np.save(folder / "ids.npy", IDS)
    fields = {**FIELDS, "data": f"{folder}/ids.npy", "out_dir": f"{folder}/run", **fields}
    file = folder / "config.toml"
    lines = [f"{k} = {json.dumps(v)}" for k, v in fields.items()]
    file.write_text("\n".join(lines), "utf-8")
    return file


def test_two_processes_are_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches two processes whose metrics or weights differ from those of one process."""
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
    others = saved_weights(tmp_path / "two")
    for name, value in saved_weights(tmp_path / "run").items():
        torch.testing.assert_close(others[name], value, rtol=1e-3, atol=1e-5)
    for run in ("run", "two"):
        assert (tmp_path / run / "loss.png").read_bytes().startswith(b"\x89PNG")


def test_data_of_any_form(tmp_path: Path) -> None:
    """Catches a file of ids that is read with a wrong dtype, or not memory-mapped."""
    IDS.tofile(tmp_path / "ids.bin")
    IDS.astype(np.uint32).tofile(tmp_path / "ids.wide")
    np.save(tmp_path / "ids.npy", IDS)
    for name, dtype in (("ids.bin", "uint16"), ("ids.wide", "uint32"), ("ids.npy", "uint16")):
        found = open_token_ids(tmp_path / name, dtype)
        assert isinstance(found, np.memmap)
        assert np.array_equal(found, IDS)


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
def test_one_line_for_what_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], text: str
) -> None:
    """Catches a traceback, or more than one line, for an invalid configuration."""
    with pytest.raises(SystemExit) as stop:
        main(["--config", str(_config_file(tmp_path, **change))])
    message = capsys.readouterr().err
    assert stop.value.code == 2
    lines = [line for line in message.splitlines() if "%" not in line]
    assert text in message
    assert len([line for line in lines if line.strip()]) == 1


def test_configurations_of_either_form(tmp_path: Path) -> None:
    """Catches JSON that is read differently from TOML, or an error without the file's name."""
    toml = read_config(_config_file(tmp_path))
    fields = {name: getattr(toml, name) for name in toml.__struct_fields__}
    (tmp_path / "config.json").write_text(json.dumps(fields), "utf-8")
    assert read_config(tmp_path / "config.json") == toml
    for name, content in (("c.yaml", "a: 1"), ("c.toml", "a = "), ("absent.json", None)):
        if content is not None:
            (tmp_path / name).write_text(content, "utf-8")
        with pytest.raises(ConfigError, match=name):
            read_config(tmp_path / name)
