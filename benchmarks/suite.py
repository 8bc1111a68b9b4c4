"""How long the suite takes, compared with importing torch and pytest, which it always needs.

The commands run in turn, several times, so that a busy moment of the machine slows down all of
them. The median time of each command is divided by the median time of the import.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
IMPORT = "python -c 'import torch, pytest'"
COMMANDS: dict[str, tuple[list[str], float | None]] = {
    IMPORT: (["-c", "import torch, pytest"], None),
    "pytest --submission=staff/solution": (["-m", "pytest", "--submission=staff/solution"], 4.0),
    "pytest --submission=staff/solution --task=rope": (
        ["-m", "pytest", "--submission=staff/solution", "--task=rope"],
        1.5,
    ),
    "pytest (the stubs)": (["-m", "pytest"], None),
}
"""For each measured command: its arguments, and the largest ratio that it should have."""


def measure(rounds: int) -> dict[str, float]:
    """Run every command `rounds` times; return the median wall time of each, in seconds."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds + 1):
        for name, (arguments, _) in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, check=False)
            times[name].append(time.perf_counter() - start)
    # The first round doesn't count: it fills the caches of the disk and of compiled modules.
    return {name: statistics.median(taken[1:]) for name, taken in times.items()}


def main() -> None:
    """Measure, and print a table; exit with status 1 if a ratio is above its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="measured runs of each command")
    seconds = measure(parser.parse_args().rounds)
    table = Table("command", "seconds", "ratio", "bound", title=f"{os.cpu_count()} cores")
    missed = False
    for name, (_, bound) in COMMANDS.items():
        ratio = seconds[name] / seconds[IMPORT]
        missed |= bound is not None and ratio > bound
        limit = "" if bound is None else f"≤ {bound:g}"
        table.add_row(name, f"{seconds[name]:.2f}", f"{ratio:.2f}", limit)
    Console().print(table)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
