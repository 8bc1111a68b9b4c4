"""The measurements of a run, in a CSV file that stays readable if the run is killed."""

import csv
import os
from collections.abc import Mapping
from pathlib import Path

COLUMNS = ("train_loss", "learning_rate", "gradient_norm", "validation_loss")
"""The columns after `step`; a cell is empty where nothing was measured."""


def read_metrics(file: Path) -> dict[int, dict[str, float]]:
    """Read the measurements of each step, with every digit that was written.

    A last line without a line break is ignored, since a killed process may leave one. If the file
    does not exist, the result is empty.
    """
    if not file.exists():
        return {}
    whole, _, _ = file.read_text("utf-8").rpartition("\n")
    return {
        int(row["step"]): {name: float(row[name]) for name in COLUMNS if row[name]}
        for row in csv.DictReader(whole.splitlines())
    }


def write_metrics(file: Path, metrics: Mapping[int, Mapping[str, float]]) -> None:
    """Replace the file by one that holds these steps.

    If the process is killed before the end, the old file remains.
    """
    partial = file.with_name(f"{file.name}.partial")
    header = ",".join(("step", *COLUMNS))
    lines = [header, *(_line(step, row) for step, row in metrics.items())]
    partial.write_text("\n".join(lines) + "\n", "utf-8", newline="\n")
    os.replace(partial, file)


def append_metrics(file: Path, step: int, row: Mapping[str, float]) -> None:
    """Append one step to the file, and close the file."""
    with file.open("a", encoding="utf-8", newline="\n") as out:
        out.write(_line(step, row) + "\n")


def _line(step: int, row: Mapping[str, float]) -> str:
    return ",".join([str(step), *(repr(row[name]) if name in row else "" for name in COLUMNS)])
