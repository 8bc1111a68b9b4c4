"""A supervisor watches its worker: it measures memory and files, and kills what is left over."""

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

_CHECK_EVERY = 0.25
"""Seconds between two checks."""
_CROWD = 16
"""The most processes and threads that run at normal priority. If a worker has more, all of them get
the lowest priority."""
_LOWEST = 19
"""The lowest priority that a process can have."""
_PATIENCE = 10.0
"""Seconds for killing the processes that a worker leaves behind."""


def watch(
    worker: int,
    connection: socket.socket,
    lifeline: int | None,
    limits: Limits,
    scratch: Path | None,
    proc: int,
) -> int:
    """Wait until the worker ends, or kill it; then kill every process that it has started.

    The worker is killed when the grader closes the connection or ends, when the time is over, or
    when the worker's processes together use too much memory or disk. If it starts many processes,
    they get the lowest priority, so that the other workers keep their share of the CPU.

    Args:
        worker: the id of the worker's process.
        connection: the socket to the grader.
        lifeline: a pipe whose writing end closes when the grader ends; None for no pipe.
        limits: what the worker may use.
        scratch: the worker's folder, if no file system of its own limits it; otherwise None.
        proc: the file descriptor of /proc, as it is outside of the namespaces.

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
        while not poll.poll(_CHECK_EVERY * 1000):
            tasks = _tasks_of_descendants(proc)
            memory = sum(_memory(proc, process) for process in tasks)
            full = scratch and _overfull(scratch, limits.scratch_bytes, limits.scratch_files)
            if full or memory > limits.memory_bytes or time.monotonic() > deadline:
                break
            everything = [task for tasks_ in tasks.values() for task in tasks_]
            for task in everything if len(everything) > _CROWD else ():
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, task, _LOWEST)
    finally:  # the worker is not reaped yet, so the id still belongs to it
        os.kill(worker, signal.SIGKILL)
        status = os.waitpid(worker, 0)[1]
        _clear_up(proc)
    return os.waitstatus_to_exitcode(status) & 0xFF


def _overfull(scratch: Path, most_bytes: int, most_files: int) -> bool:
    """Whether a folder holds too much; a folder that is too deep to be walked does."""
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
    """Return the ids of all processes below this one, with the ids of their threads.

    A process whose parent ends gets a new parent, but never one above this process: in a process
    namespace, it is the first process there; otherwise it is this process, which adopts orphans.
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
    """Return the bytes of memory that a process has touched, except those of mapped files."""
    with contextlib.suppress(OSError):
        words = [line.split() for line in _read(proc, f"{process}/status").splitlines()]
        return sum(int(w[1]) << 10 for w in words if w[:1] in (["RssAnon:"], ["RssShmem:"]))
    return 0


def _read(proc: int, name: str) -> str:
    fd = os.open(name, os.O_RDONLY, dir_fd=proc)
    with os.fdopen(fd, encoding="utf-8", errors="replace") as file:
        return file.read()


def _clear_up(proc: int) -> None:
    """Kill every process that the worker has started and that did not end with it.

    All of them are stopped first, since a stopped process can't start another one.
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
