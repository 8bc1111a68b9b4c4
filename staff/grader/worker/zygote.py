"""The zygote is a process that has imported PyTorch and forks a worker for each request.

Its workers therefore start in milliseconds, not in seconds. The zygote opens no test, saved case or
submission, so it holds no secret. It runs no tensor operation, since OpenMP's threads don't survive
a fork.

A request arrives on a socket that only the grader's processes have inherited, so nobody else can
connect to it. The request carries one end of a new socket pair: the worker's socket to the grader.
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import msgspec
import torch

from staff import linux
from staff.files import remove
from staff.grader.sandbox.confine import enter, spawn, supervise
from staff.grader.sandbox.plan import Confinement
from staff.grader.scratch.guard import Guard
from staff.grader.worker.wire import Channel, WireError
from staff.grader.worker.worker import serve
from staff.runner import preloaded  # noqa: F401 - loaded here for all workers
from staff.runner.environment import ENVIRONMENT
from tests.harness.rubric import Scratch

_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR")
_MOST_REQUEST = 1 << 16
_LAST_SECONDS = 30
_STRIDE = 61
_LIFELINE = 0
"""The file descriptor of standard input, a pipe. Only the grader holds the other end, so the pipe
closes when the grader ends."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a worker."""

    plan: Confinement
    device: str


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The first message to a zygote."""

    folder: str
    """The folder in which each worker gets a folder of its own."""
    rules: Scratch | None
    """The rules of the guard that runs beside each submission; None for no guard."""


@contextlib.contextmanager
def zygote(rules: Scratch | None = None, parent: Path | None = None) -> Iterator[int]:
    """Run a zygote for the block, and yield the file descriptor of its socket.

    Args:
        rules: the rules of the guard that runs beside each submission; None for no guard.
        parent: the folder in which the workers' folders are made; by default the usual temporary
            folder.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, tempfile.TemporaryDirectory(prefix="workers-", dir=parent) as folder:
        Path(folder).chmod(0o711)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-I", "-m", "staff.grader.worker.zygote", str(theirs.fileno())],
                env={k: os.environ[k] for k in _KEPT if k in os.environ} | ENVIRONMENT,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        with contextlib.suppress(OSError):  # if it has ended already, the first request fails
            # This is no argument of the command, since every process may read arguments.
            ours.send(msgspec.json.encode(Setup(folder=folder, rules=rules)))
        try:
            yield ours.fileno()
        finally:
            assert process.stdin is not None
            process.stdin.close()  # this ends the zygote, as does the end of a killed grader
            try:
                process.wait(_LAST_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class _Zygote:
    """The zygote's loop: start workers on request, and clean up after those that have ended."""

    def __init__(self, requests: socket.socket, folder: Path, guard: Guard | None) -> None:
        self._requests = requests
        self._folder = folder
        self._guard = guard
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ, self._serve)
        self._selector.register(_LIFELINE, selectors.EVENT_READ, self._end)
        self._supervisors: dict[int, tuple[int, Path]] = {}
        """For the pidfd of each supervisor: its process id, and its worker's folder."""
        self._open = True

    def run(self) -> None:
        while self._open:
            for key, _ in self._selector.select():
                key.data(key.fd)
        # The supervisors have the same lifeline, so they end by themselves. They are not killed
        # here, since the worker of a killed supervisor could outlive it.
        while self._supervisors:
            self._reap(next(iter(self._supervisors)))

    def _end(self, _: int) -> None:
        self._open = False

    def _serve(self, _: int) -> None:
        request, fds, _, _ = socket.recv_fds(self._requests, _MOST_REQUEST, 1)
        if not request:
            self._end(_)
            return
        with socket.socket(fileno=fds[0]) as connection:
            try:
                self._start(msgspec.json.decode(request, type=Request), connection)
            except OSError as error:
                _refuse(connection, error)

    def _start(self, request: Request, connection: socket.socket) -> None:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        folder.chmod(0o711)
        try:
            pid = os.fork()
        except OSError:
            remove(folder)
            raise
        if pid == 0:
            self._become_worker(request, folder, connection)
        fd = os.pidfd_open(pid)
        self._supervisors[fd] = (pid, folder)
        self._selector.register(fd, selectors.EVENT_READ, self._reap)

    def _become_worker(self, request: Request, folder: Path, connection: socket.socket) -> None:
        status = 1
        try:
            self._requests.close()
            for fd in self._supervisors:
                os.close(fd)
            self._selector.close()
            # Graders that run at the same time use the same numbers, so the process id is added.
            number = request.plan.number + os.getppid() * _STRIDE
            plan = msgspec.structs.replace(request.plan, number=number)
            try:
                supervise(plan, folder, connection, _LIFELINE)
                submission = enter(plan, folder)
                if plan.spawned:
                    spawn(plan, folder, submission, connection, request.device)
            except OSError as error:
                _refuse(connection, error)
            else:
                serve(connection, submission, request.device, self._guard)
                status = 0
        finally:
            os._exit(status)

    def _reap(self, fd: int) -> None:
        self._selector.unregister(fd)
        pid, folder = self._supervisors.pop(fd)
        os.waitpid(pid, 0)
        os.close(fd)
        remove(folder)


def _refuse(connection: socket.socket, error: OSError) -> None:
    with contextlib.suppress(WireError):
        Channel(connection).send({"refused": f"the sandbox can't be entered: {error}"})


def main() -> None:
    """Serve requests until standard input ends."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the zygote ends when the grader ends
    linux.hide()
    requests = socket.socket(fileno=int(sys.argv[1]))
    setup = msgspec.json.decode(requests.recv(_MOST_REQUEST), type=Setup)
    sys.argv[1:] = []
    torch.set_num_threads(1)
    guard = None
    if setup.rules is not None:
        guard = Guard(setup.rules)
        guard.install()
    gc.collect()
    gc.freeze()
    folder = Path(setup.folder)
    _Zygote(requests, folder, guard).run()
    remove(folder)  # here too, since a killed grader can't remove it


if __name__ == "__main__":
    main()
