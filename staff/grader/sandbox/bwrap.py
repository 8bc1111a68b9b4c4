"""The backend `bwrap`: bubblewrap, a widely reviewed program, makes the namespaces."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from staff.grader.sandbox import seccomp
from staff.grader.sandbox.plan import Confinement
from staff.grader.sandbox.view import SCRATCH, SUBMISSION, devices, readable


def program() -> str | None:
    """Return the path of `bwrap`, or None if it is not installed."""
    return shutil.which("bwrap")


def command(plan: Confinement, inner: Sequence[str], scratch: Path) -> list[str]:
    """Return the command that runs `inner` inside bubblewrap.

    Args:
        plan: how the worker is confined.
        inner: the command of the worker.
        scratch: the folder that the worker may write to. Bubblewrap does not limit its size, so
            the supervisor does.

    Raises:
        OSError: bwrap is not installed.
    """
    found = program() or shutil.which("bwrap", path=os.defpath)
    if found is None:
        raise OSError("bwrap is not installed")
    return [found, *_options(plan, scratch), "--", *inner]


def _options(plan: Confinement, scratch: Path) -> Iterator[str]:
    yield from ("--unshare-all", "--unshare-user", "--disable-userns")
    # Without --as-pid-1, a process of bubblewrap runs beside the worker, and the worker can read
    # that process's arguments.
    yield from ("--as-pid-1", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    yield from ("--uid", "65534", "--gid", "65534", "--hostname", "worker", "--clearenv")
    for name, value in os.environ.items():
        yield from ("--setenv", name, value)
    yield from ("--proc", "/proc", "--size", "4096", "--tmpfs", "/dev")
    for path in readable(plan):
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))
        else:
            yield from ("--ro-bind", str(path), str(path))
    for device in devices(plan):
        yield from ("--dev-bind", str(device), str(device))
    yield from ("--ro-bind", plan.submission, str(SUBMISSION))
    yield from ("--bind", str(scratch), str(SCRATCH), "--symlink", str(SCRATCH), "/dev/shm")
    yield from ("--symlink", str(SCRATCH), "/tmp") if not _under_tmp(plan) else ()
    yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(SCRATCH))
    if seccomp.known():
        filter_ = os.memfd_create("filter", 0)
        os.write(filter_, seccomp.program(signals=True, memory_files=plan.gpu))
        os.lseek(filter_, 0, os.SEEK_SET)
        yield from ("--seccomp", str(filter_))


def _under_tmp(plan: Confinement) -> bool:
    return any(path.is_relative_to("/tmp") for path in readable(plan))
