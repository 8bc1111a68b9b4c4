"""Confinement of one worker, by two processes.

The *supervisor* enters new namespaces, lays out the root folder that the worker will see, and forks
the worker. It kills the worker when the grader closes the connection or the time is over. The
worker is process 1 of its process namespace, so the kernel then kills every process that it has
started. The *worker* gives up its remaining privileges, and only then imports the submission.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import shutil
import socket
import sys
from pathlib import Path

from staff import linux
from staff.grader.sandbox import bwrap, seccomp
from staff.grader.sandbox.plan import Confinement
from staff.grader.sandbox.view import (
    SCRATCH,
    SUBMISSION,
    devices,
    lay_out_root,
    mount_proc,
    readable,
)
from staff.grader.sandbox.watch import watch

NOBODY = 65534
_FIRST_USER = 61_000
_USERS = 4_000
"""The number of user ids for workers: if the grader runs as root, each worker gets its own."""
_MODULE = "staff.grader.worker.worker"


def supervise(
    plan: Confinement, folder: Path, connection: socket.socket, lifeline: int | None = None
) -> int:
    """Become the supervisor of a worker, in a process that has been forked for this.

    Args:
        plan: how the worker is confined.
        folder: an empty folder that belongs to this supervisor alone.
        connection: the socket to the grader; the worker is killed when the grader closes it.
        lifeline: the reading end of a pipe; the worker is killed when no process can write to the
            pipe any more.

    Returns:
        0 in the worker, which must call `enter` next. The supervisor does not return.

    Raises:
        OSError: a protection is not available.
    """
    # A signal to the terminal's process group would end the supervisor before it kills the worker.
    os.setsid()
    scratch, proc = None, os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    if plan.backend == "namespaces":
        _fresh_namespaces(plan)
        with contextlib.suppress(OSError):  # if this fails, seccomp still refuses new namespaces
            linux.forbid_users()
        lay_out_root(plan, folder / "root")
    else:
        linux.adopt_orphans()
        scratch = folder / "scratch"
        scratch.mkdir()
        if shutil.disk_usage(scratch).free < plan.limits.scratch_bytes:
            raise OSError("the disk has less free space than a worker may use")
        scratch.chmod(0o777)
    alive = os.pipe()
    worker = os.fork()
    if worker == 0:
        os.close(proc)
        os.close(alive[1])
        linux.die_with_parent()
        if select.select([alive[0]], [], [], 0)[0]:
            os._exit(1)  # the supervisor ended first
        os.close(alive[0])
        return 0
    os.close(alive[0])
    os._exit(watch(worker, connection, lifeline, plan.limits, scratch, proc))


def enter(plan: Confinement, folder: Path) -> Path:
    """Confine this process, the worker.

    Args:
        plan: how the worker is confined.
        folder: the folder that `supervise` got.

    Returns:
        The folder of the submission, as the worker sees it.

    Raises:
        OSError: a protection is not available; the worker must end then.
    """
    os.setsid()
    submission, scratch = SUBMISSION, SCRATCH
    if plan.backend == "namespaces":
        mount_proc(folder / "root")
        linux.pivot_root(folder / "root")
    elif plan.backend != "bwrap":
        submission, scratch = Path(plan.submission), folder / "scratch"
    _limit(plan)
    ordinary = os.getuid() != 0
    if plan.backend == "landlock":
        linux.landlock([*readable(plan), submission], [scratch, *devices(plan)])
    linux.bound_privileges()
    if plan.backend == "namespaces":
        _become(NOBODY)
    elif not ordinary:
        _become(_user(plan))
    if not os.access(sys.base_prefix, os.R_OK | os.X_OK):
        raise OSError(f"an unprivileged user can't read Python's folder, {sys.base_prefix}")
    linux.drop_privileges()
    linux.die_with_parent()  # again, since a change of user resets it
    if plan.backend != "bwrap":  # bubblewrap has to make namespaces, and installs a filter itself
        # With these protections, the worker's signals can't reach processes outside its sandbox.
        signals_contained = plan.backend == "namespaces" or not ordinary
        signals_contained |= (
            plan.backend == "landlock" and linux.landlock_version() >= linux.LANDLOCK_SIGNALS
        )
        _filter(plan, signals=signals_contained)
        os.chdir(scratch)
    _clean_environment(scratch)
    _silence()
    return submission


def spawn(
    plan: Confinement, folder: Path, submission: Path, connection: socket.socket, device: str
) -> None:
    """Replace this confined process with a fresh interpreter that serves the submission.

    Args:
        plan: how the worker is confined.
        folder: the folder that `supervise` got.
        submission: the folder of the submission, as `enter` returned it.
        connection: the socket to the grader.
        device: the device that inputs are put on.

    Raises:
        OSError: the interpreter does not start.
    """
    os.set_inheritable(connection.fileno(), True)
    command = [sys.executable, "-I", "-m", _MODULE]
    command += [str(connection.fileno()), str(submission), device]
    if plan.backend == "bwrap":
        command = bwrap.command(plan, command, folder / "scratch")
    os.execv(command[0], command)


def _filter(plan: Confinement, *, signals: bool) -> None:
    if seccomp.known():
        seccomp.restrict(signals=signals, memory_files=plan.gpu)
    elif plan.backend != "namespaces":
        raise OSError("the numbers of this machine's system calls are unknown, so none is refused")


def _user(plan: Confinement) -> int:
    return _FIRST_USER + plan.number % _USERS


def _fresh_namespaces(plan: Confinement) -> None:
    """Enter new namespaces, and map user ids in them.

    As root, a forked helper writes `uid_map` and `gid_map` with root and the worker's user.
    Otherwise this process maps its own user.
    """
    uid, gid = os.getuid(), os.getgid()
    namespaces = (
        linux.CLONE_NEWUSER
        | linux.CLONE_NEWNS
        | linux.CLONE_NEWPID
        | linux.CLONE_NEWNET
        | linux.CLONE_NEWIPC
        | linux.CLONE_NEWUTS
    )
    if uid != 0:
        linux.hide(hidden=False)  # a hidden process may not map its own user
        linux.unshare(namespaces)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{NOBODY} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{NOBODY} {gid} 1")
        linux.hide()
        return
    ours, theirs = socket.socketpair()
    with ours, theirs:
        mapper = os.fork()
        if mapper == 0:
            ours.close()
            _map_users(os.getppid(), _user(plan), theirs)
        theirs.close()
        try:
            linux.unshare(namespaces)
            ours.send(b"x")
            if not ours.recv(1):
                raise OSError("the user ids could not be mapped")
        finally:
            ours.close()
            os.waitpid(mapper, 0)


def _map_users(process: int, user: int, connection: socket.socket) -> None:
    """Map root and nobody for a process that has entered a user namespace; does not return."""
    try:
        if connection.recv(1):
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{process}/{name}").write_text(f"0 0 1\n{NOBODY} {user} 1\n")
            connection.send(b"x")
    finally:
        os._exit(0)


def _limit(plan: Confinement) -> None:
    limits = plan.limits
    for what, most in (
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.scratch_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 1 << 20),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        if what in (resource.RLIMIT_AS, resource.RLIMIT_MEMLOCK) and plan.gpu:
            continue  # CUDA maps and pins far more than it uses
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def _become(uid: int) -> None:
    if os.getuid() == uid:
        return
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _clean_environment(scratch: Path) -> None:
    os.environ.clear()
    os.environ |= {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "LANG": "C.UTF-8",
        "OMP_WAIT_POLICY": "PASSIVE",
        "GOMP_SPINCOUNT": "0",
    }


def _silence() -> None:
    """Connect standard input, output and error to /dev/null."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
