"""What grading costs in CPU time, wall time and memory.

Three pairs of numbers are compared, each from one run:

- the CPU time of one more submission in `cs336 grade`, with the CPU time of the submission's own
  code: its adapters and modules, imported and called by the suite in one process;
- the wall time of a batch, with that of `pytest --submission=` in a fresh process for each
  submission, as many at a time as there are cores;
- the resident memory of the two preloaded processes, early and late in a long batch.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
SOLUTION = ROOT / "staff" / "solution"
PAGE = os.sysconf("SC_PAGE_SIZE")
OWN_CODE = """
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
import pytest
from staff.runner import preloaded  # a worker has imported this too
from tests.harness.in_process import InProcess

def cpu():
    return sum(u.ru_utime + u.ru_stime for u in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))

spent = 0.0
def timed(method):
    def run(*args, **kwargs):
        global spent
        start = cpu()
        try:
            return method(*args, **kwargs)
        finally:
            spent += cpu() - start
    return run
for name in ("__init__", "call", "probe"):
    setattr(InProcess, name, timed(getattr(InProcess, name)))
pytest.main([f"--submission={sys.argv[1]}", "-p", "no:cacheprovider"])
Path(sys.argv[2]).write_text(str(spent))
"""


def own_code(runs: int) -> list[float]:
    """Measure the CPU seconds of the solution's code, and of its processes, in `runs` suites.

    As in a batch, as many run at a time as there are cores: cores that share a cache or a clock
    slow each other down.
    """

    def run(result: Path) -> float:
        command = [sys.executable, "-c", OWN_CODE, str(SOLUTION), str(result)]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        return float(result.read_text())

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(run, [Path(folder) / str(number) for number in range(runs)]))


def graded(folders: list[Path], out: Path) -> tuple[float, float]:
    """Grade a batch; return its wall time and its CPU time, in seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "staff.cli", "grade", *map(str, folders), "--out", str(out)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


def in_fresh_processes(folders: list[Path]) -> float:
    """Measure the wall time of one pytest process for each folder, one at a time on each core."""

    def run(folder: Path) -> None:
        command = [sys.executable, "-m", "pytest", f"--submission={folder}"]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)

    start = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, folders))
    return time.perf_counter() - start


def memory_of_parents(folders: list[Path], out: Path) -> tuple[int, int]:
    """Measure the resident memory of the preloaded processes, early and late in a batch, in MB."""
    samples: list[int] = []
    command = [sys.executable, "-m", "staff.cli", "grade", *map(str, folders), "--out", str(out)]
    grader = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    watcher = threading.Thread(target=_watch, args=(grader, samples), daemon=True)
    watcher.start()
    grader.wait()
    watcher.join()
    early = samples[len(samples) // 4 : len(samples) // 2] or samples
    return max(early), max(samples[len(samples) // 2 :] or samples)


def _watch(grader: subprocess.Popen[bytes], samples: list[int]) -> None:
    while grader.poll() is None:
        pages = sum(_resident(pid) for pid in _children(grader.pid))
        if pages:
            samples.append(pages * PAGE // 1_000_000)
        time.sleep(0.5)


def _children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            yield from (int(child) for child in task.read_text().split())
        except OSError:
            continue


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=60, help="submissions in the batch")
    parser.add_argument("--long", type=int, default=500, help="submissions in the long batch")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        copies = _copies(SOLUTION, chosen.copies, Path(scratch) / "copies")
        samples = own_code(chosen.copies // 4)
        one = graded(copies[:2], Path(scratch) / "two")
        many = graded(copies, Path(scratch) / "many")
        # The machine's speed changes with time, so this is measured before and after the batch.
        samples += own_code(chosen.copies // 4)
        own = fmean(samples)
        fresh = in_fresh_processes(copies)
        stubs = Path(scratch) / "stubs"
        stubs.mkdir()
        shutil.copy(ROOT / "adapters.py", stubs)
        shutil.copytree(ROOT / "cs336_basics", stubs / "cs336_basics")
        long = _copies(stubs, chosen.long, Path(scratch) / "long")
        early, late = memory_of_parents(long, Path(scratch) / "long-out")
    each = (many[1] - one[1]) / (len(copies) - 2)
    title = f"{os.cpu_count()} cores, {len(copies)} copies"
    table = Table("quantity", "measured", "aim", title=title)
    bound = 1.3 * own + 0.15
    table.add_row("CPU of the submission's own code", f"{own:.2f} s", "")
    table.add_row("CPU of one more submission", f"{each:.2f} s", f"≤ {bound:.2f} s")
    table.add_row("wall time, cs336 grade", f"{many[0]:.1f} s", "")
    table.add_row("wall time, fresh processes", f"{fresh:.1f} s", "")
    table.add_row("fresh processes ÷ cs336 grade", f"{fresh / many[0]:.2f}", "≥ 3")
    table.add_row(f"memory over {len(long)} submissions", f"{early} → {late} MB", "flat")
    Console().print(table)


def _copies(submission: Path, count: int, folder: Path) -> list[Path]:
    copies = []
    for number in range(count):
        copy = folder / f"copy-{number:03}"
        for file in [submission / "adapters.py", *(submission / "cs336_basics").glob("*.py")]:
            target = copy / file.relative_to(submission)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        copies.append(copy)
    return copies


if __name__ == "__main__":
    main()
