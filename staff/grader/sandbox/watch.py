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
    proc: int,
) -> int:
    """Wait for the worker's end, and make sure of it.

    The worker is killed when the line to the grader is cut or the lifeline ends, when its time is
    over, or when all its processes together hold too much. What it started is gone when this
    returns. While it runs, a crowd of processes gets little more time than one has, so that its
    neighbours don't run out of theirs.

    Args:
        worker: its process.
        connection: the line.
        lifeline: a pipe that ends with the grader.
        limits: what it may use.
        scratch: its folder, where no file system of its own bounds it.
        proc: /proc as it is outside, an open folder.

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
    try:
        while not poll.poll(_LOOK_EVERY * 1000):
            tasks = _tasks_of_descendants(proc)
            memory = sum(_memory(proc, process) for process in tasks)
            full = scratch and _overfull(scratch, limits.scratch_bytes, limits.scratch_files)
            if full or memory > limits.memory_bytes or time.monotonic() > deadline:
                break
            everything = [task for tasks_ in tasks.values() for task in tasks_]
            for task in everything if len(everything) > _CROWD else ():
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, task, _LOWEST)
    finally:  # not reaped yet, so the number is still its own
        os.kill(worker, signal.SIGKILL)
        status = os.waitpid(worker, 0)[1]
        _clear_up(proc)
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


def _tasks_of_descendants(proc: int) -> dict[int, list[int]]:
    """All processes below this one, and the threads of each.

    Who loses a parent gets another one further up, but not above this process: in a namespace its
    first process, and otherwise this one, which adopts orphans.
    """
    found: dict[int, list[int]] = {}
    waiting = [os.getpid()]
    while waiting:
        process = waiting.pop()
        with contextlib.suppress(OSError):
            folder = os.open(f"{process}/task", os.O_RDONLY | os.O_DIRECTORY, dir_fd=proc)
            try:
                found[process] = [int(task) for task in os.listdir(folder)]
            finally:
                os.close(folder)
            for task in found[process]:
                waiting += map(int, _read(proc, f"{process}/task/{task}/children").split())
    found.pop(os.getpid(), None)
    return found


def _memory(proc: int, process: int) -> int:
    """Bytes that a process has touched and that aren't a file's."""
    with contextlib.suppress(OSError):
        words = [line.split() for line in _read(proc, f"{process}/status").splitlines()]
        return sum(int(w[1]) << 10 for w in words if w[:1] in (["RssAnon:"], ["RssShmem:"]))
    return 0


def _read(proc: int, name: str) -> str:
    fd = os.open(name, os.O_RDONLY, dir_fd=proc)
    with os.fdopen(fd, encoding="utf-8", errors="replace") as file:
        return file.read()


def _clear_up(proc: int) -> None:
    """Kill whatever the worker has started that doesn't end with it.

    All of it is stopped first: what stands still has no more children.
    """
    ends = time.monotonic() + _PATIENCE
    stopped: set[int] = set()
    while (running := _tasks_of_descendants(proc).keys() - stopped) and time.monotonic() < ends:
        for process in running:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGSTOP)
        stopped |= running
    while time.monotonic() < ends:
        for process in _tasks_of_descendants(proc):
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)
