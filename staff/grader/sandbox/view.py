"""What a worker sees of the machine: the system, Python, its submission, a scratch folder."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from staff import linux
from staff.grader.sandbox.plan import Confinement
from staff.paths import ROOT

SUBMISSION = Path("/submission")
SCRATCH = Path("/scratch")
DEVICES = ("null", "zero", "full", "random", "urandom")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/nix")
_GPU = ("/sys", "/etc/alternatives")
_GPU_DEVICES = "nvidia*"
_HARNESS = (
    *("__init__", "annotated", "bridge", "devices", "errors", "fingerprints", "in_process"),
    *("loading", "plain", "recipes", "results", "rubric", "submission"),
)
_SPAWNED = (
    "staff/__init__.py",
    "staff/grader/__init__.py",
    "staff/grader/scratch",
    *(f"staff/grader/worker/{name}.py" for name in ("__init__", "wire", "worker")),
    "tests/__init__.py",
    *(f"tests/harness/{name}.py" for name in _HARNESS),
    "tests/harness/probes",
)
"""What a worker that doesn't find it in memory has to read: no test, no case, no solution."""


def readable(plan: Confinement) -> list[Path]:
    """The system and the Python environment, and no folder that holds the assignment."""
    python = [Path(sys.prefix), Path(sys.base_prefix)]
    modules = [Path(os.path.normpath(p)) for p in sys.path if p]
    found = [Path(p) for p in _SYSTEM] + [Path(os.path.normpath(p)) for p in python]
    found += [path for path in modules if not _ours(path) or _inside(path, python)]
    found += [Path(p) for p in _GPU] if plan.gpu else []
    kept: list[Path] = []
    for path in found:
        if path.exists() and not _around_ours(path) and not _inside(path, kept):
            kept.append(path)
    return kept + ([ROOT / name for name in _SPAWNED] if plan.spawned else [])


def _ours(path: Path) -> bool:
    return path.resolve().is_relative_to(ROOT)


def _around_ours(path: Path) -> bool:
    return ROOT.is_relative_to(path) or ROOT.is_relative_to(path.resolve())


def devices(plan: Confinement) -> list[Path]:
    """The device nodes that a worker gets."""
    found = [Path("/dev") / name for name in DEVICES]
    found += sorted(Path("/dev").glob(_GPU_DEVICES)) if plan.gpu else []
    return [device for device in found if device.exists()]


def lay_out_root(plan: Confinement, root: Path) -> None:
    """Mount everything that the worker will see below `root`, in this mount namespace alone.

    Raises:
        OSError: it is not allowed.
    """
    linux.mount("none", Path("/"), "", linux.MS_REC | linux.MS_PRIVATE)
    root.mkdir()
    sealed = linux.MS_NOSUID | linux.MS_NODEV
    linux.mount("tmpfs", root, "tmpfs", sealed, "size=1m,nr_inodes=4k,mode=755")
    for path in readable(plan):
        target = root / path.relative_to("/")
        if path.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(os.readlink(path))
            continue
        _make_room(path, target)
        linux.bind_read_only(path, target)
    (root / "dev/shm").mkdir(parents=True)
    for device in devices(plan):
        _make_room(device, root / device.relative_to("/"))
        linux.mount(str(device), root / device.relative_to("/"), "", linux.MS_BIND)
    (root / SUBMISSION.name).mkdir()
    linux.bind_read_only(Path(plan.submission), root / SUBMISSION.name)
    (root / "proc").mkdir()
    size, files = plan.limits.scratch_bytes, plan.limits.scratch_files
    for name, bytes_ in ((SCRATCH.name, size), ("dev/shm", size // 4)):
        (root / name).mkdir(exist_ok=True)
        options = f"size={bytes_},nr_inodes={files},mode=1777"
        linux.mount("tmpfs", root / name, "tmpfs", sealed, options)
    if not (root / "tmp").exists():  # a Python environment may lie there
        (root / "tmp").symlink_to(SCRATCH)
    # Where the grader is no root, what it has mounted is the worker's own to write to.
    linux.mount("none", root, "", sealed | linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY)


def mount_proc(root: Path) -> None:
    """Show the worker its own processes; called by the first of them."""
    with contextlib.suppress(OSError):  # a container hides parts of its own; none is stricter
        flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
        linux.mount("proc", root / "proc", "proc", flags)


def _inside(path: Path, others: list[Path]) -> bool:
    return any(path.is_relative_to(other) and not other.is_symlink() for other in others)


def _make_room(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
