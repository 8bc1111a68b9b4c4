"""What a supervisor does while its worker runs: wait, count memory and files, and clear up."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import time
from pathlib import Path

from staff.grader.sandbox.plan import Limits

_LOOK_EVERY = 0.25
"""Seconds."""
_CROWD = 16
"""Processes and threads; with more, all of them together get little more time than one."""
_LOWEST = 19
_PATIENCE = 10.0
"""Seconds for killing what a worker leaves behind."""


def watch(
    worker: int,
    connection: socket.socket,
    lifeline: int | None,
    limits: Limits,
    scratch: Path | None,
    user: int | None,
) -> int:
    """Wait for the worker's end, and make sure of it.

    The worker is killed when the line to the grader is cut or the lifeline ends, when its time is
    over, or when all its processes together hold too much. What it started is gone when this
    returns.

    Args:
        worker: its process.
        connection: the line.
        lifeline: a pipe that ends with the grader.
        limits: what it may use.
        scratch: its folder, where no file system of its own bounds it.
        user: the one that only this worker's processes run as, if there is one.

    Returns:
        The worker's exit status.
    """
    deadline = time.monotonic() + limits.wall_seconds
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP | select.POLLHUP)
    if lifeline is not None:
        poll.register(lifeline, select.POLLHUP)
    pidfd = os.pidfd_open(worker)
    poll.register(pidfd, select.POLLIN)
    apart = scratch is None
    calm = user is None
    try:
        while not poll.poll(_LOOK_EVERY * 1000):
            memory, tasks = _used(user, apart=apart)
            full = scratch and _overfull(scratch, limits.scratch_bytes, limits.scratch_files)
            if full or memory > limits.memory_bytes or time.monotonic() > deadline:
                break
            if user is not None and tasks > _CROWD and not calm:
                os.setpriority(os.PRIO_USER, user, _LOWEST)  # or neighbours would run out of time
                calm = True
    finally:  # not reaped yet, so the number is still its own
        os.kill(worker, signal.SIGKILL)
        status = os.waitpid(worker, 0)[1]
        _clear_up(None if apart else user)
    return os.waitstatus_to_exitcode(status) & 0xFF


def _overfull(scratch: Path, most_bytes: int, most_files: int) -> bool:
    """Whether a folder holds too much; one too deep to be walked does."""
    waiting, size, files = [str(scratch)], 0, 0
    while waiting and size <= most_bytes and files <= most_files:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    files += 1
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return True
    return bool(waiting) or size > most_bytes or files > most_files


def _used(user: int | None, *, apart: bool) -> tuple[int, int]:
    """Bytes that the worker's processes have touched and not only read, and how many run.

    A worker apart has moved this mount namespace to its own root, whose /proc lists nobody else;
    until it has, and where there is no such /proc, there is nothing to count.
    """
    if os.path.exists("/proc/self") if apart else user is None:
        return 0, 0
    memory = tasks = 0
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError, ValueError):
                if name.isdecimal() and (apart or os.stat(f"/proc/{name}").st_uid == user):
                    status = Path(f"/proc/{name}/status").read_text("utf-8", "replace")
                    words = dict(line.split()[:2] for line in status.splitlines() if ":\t" in line)
                    memory += int(words["RssAnon:"]) + int(words["RssShmem:"]) << 10
                    tasks += int(words["Threads:"])
    return memory, tasks


def _clear_up(user: int | None) -> None:
    """Kill whatever the worker has started that doesn't end with it."""
    ends = time.monotonic() + _PATIENCE
    while time.monotonic() < ends:
        if user is not None:
            _kill_all_of(user)
        for child in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(0.005)
        except ChildProcessError:
            return


def _kill_all_of(user: int) -> None:
    """Send SIGKILL to every process of a user, at one stroke: a fork bomb has no time between."""
    killer = os.fork()
    if killer == 0:
        try:
            os.setresuid(user, user, user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(killer, 0)


def _children() -> list[int]:
    """Processes whose parent is this one."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            if int(stat.read_text("utf-8", "replace").rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(stat.parent.name))
    return found
