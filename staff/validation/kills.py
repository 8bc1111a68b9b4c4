"""Proof that a training run survives `kill -9`: `python -m staff.validation.kills --moments 50`.

A run is killed at a random moment and then resumed; the resumed run may be killed too. When a run
reaches its end, its weights and measurements must equal those of an undisturbed run, bit for bit.

The process imports the solution once and forks a child for each attempt. To make forks safe, it
has one thread, and runs no tensor operation.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import msgspec
import numpy as np

from staff.paths import ROOT, SOLUTION
from staff.validation.judge import Section

CONFIG = {
    "vocab_size": 13,
    "context_length": 8,
    "d_model": 8,
    "num_layers": 1,
    "num_heads": 2,
    "d_ff": 12,
    "steps": 24,
    "batch_size": 4,
    "warmup_iters": 5,
    "max_learning_rate": 1e-2,
    "validation_tokens": 40,
    "validation_batches": 1,
    "validate_every": 5,
    "checkpoint_every": 3,
    "device": "cpu",
}
_FILES = ("metrics.csv", "checkpoint.pt")


class Moment(msgspec.Struct, frozen=True):
    """A run that was killed at least once, and then resumed to its end."""

    kills: tuple[float, ...]
    """When each attempt was killed, in seconds from its start; the last attempt was not killed."""
    steps: tuple[int, ...]
    """The number of steps in the checkpoint after each kill."""
    equal: bool
    """Whether weights, optimizer and measurements equal those of the undisturbed run."""


def killed_moments(moments: int, seed: int = 0) -> list[Moment]:
    """Kill training runs of the solution at random moments, in a separate process.

    Raises:
        CalledProcessError: a run could not be resumed.
    """
    arguments = ["--moments", str(moments), "--seed", str(seed)]
    done = subprocess.run(
        [sys.executable, "-m", "staff.validation.kills", *arguments],
        cwd=SOLUTION,  # so that the solution's package is imported, not the stubs'
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return [msgspec.json.decode(line, type=Moment) for line in done.stdout.splitlines()]


def judge_kills(moments: int) -> Section:
    """Kill training runs at random moments; when resumed, each must end like an undisturbed run."""
    found = killed_moments(moments)
    return Section(
        name="killed training runs",
        promise="end like an undisturbed run, bit for bit",
        total=len(found),
        problems=tuple(
            (
                f"killed after {', '.join(f'{when:.2f} s' for when in moment.kills)}",
                "ends with other weights or measurements than an undisturbed run",
            )
            for moment in found
            if not moment.equal
        ),
    )


def _attempt(folder: Path, kill_after: float | None) -> float:
    """Train in a child process, kill it after `kill_after` seconds, and return how long it ran."""
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _train(folder)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit(f"a run could not be resumed after it was killed; see the error above ({folder})")
    return time.monotonic() - start


def _train(folder: Path) -> NoReturn:
    status = 1
    try:
        from cs336_basics.config import make_config
        from cs336_basics.training import train

        ids = np.random.default_rng(0).integers(0, 13, 400).astype(np.uint16)
        train(ids, make_config(dict(CONFIG)), folder, resume=True)
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def _steps(folder: Path) -> int:
    import torch

    file = folder / "checkpoint.pt"
    return torch.load(file, weights_only=True)["iteration"] if file.exists() else 0


def _equal(folder: Path, other: Path) -> bool:
    """Whether two runs wrote equal files, byte for byte; the archives contain no date."""
    return all((folder / name).read_bytes() == (other / name).read_bytes() for name in _FILES)


def main() -> None:
    """Kill and resume runs; print one line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    import torch._dynamo  # noqa: F401 - every optimizer imports it; children inherit it

    import cs336_basics.training  # noqa: F401 - children inherit it, and torch

    draw = random.Random(chosen.seed)
    with TemporaryDirectory(prefix="killing-") as scratch:
        undisturbed = Path(scratch) / "undisturbed"
        _attempt(undisturbed, None)
        usual = _attempt(Path(scratch) / "timed", None)
        for i in range(chosen.moments):
            folder = Path(scratch) / str(i)
            kills = [draw.uniform(0, usual) for _ in range(draw.choice((1, 1, 2, 3)))]
            steps = []
            for moment in kills:
                _attempt(folder, moment)
                steps.append(_steps(folder))
            _attempt(folder, None)
            found = Moment(tuple(kills), tuple(steps), _equal(folder, undisturbed))
            sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
