"""The zygote: a process that has imported PyTorch once and forks a worker for each request.

It is started before any test, saved case or submission is opened, holds no secret, and runs no
tensor operation, since OpenMP's threads don't survive a fork. A request comes in on a Unix socket
in a folder of the grader's own; the connection it came on becomes the worker's line.
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import beartype.claw  # noqa: F401 - a worker that checks annotations finds it loaded
import einops  # noqa: F401
import jaxtyping  # noqa: F401
import msgspec
import numpy as np  # noqa: F401
import torch

from staff.grader.sandbox.confine import Confinement, enter, supervise
from staff.grader.wire import Channel, WireError
from staff.grader.worker import serve
from tests.harness.errors import HarnessError

_PATIENT = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR")
_GREETING_SECONDS = 10


@contextlib.contextmanager
def zygote() -> Iterator[str]:
    """Run a zygote for as long as the block lasts; gives the path of its socket.

    Raises:
        HarnessError: it doesn't start.
    """
    with tempfile.TemporaryDirectory(prefix="workers-", dir=_short_folder()) as folder:
        Path(folder).chmod(0o711)
        path = f"{folder}/line"
        process = subprocess.Popen(
            [sys.executable, "-I", "-m", "staff.grader.zygote", path],
            env={k: os.environ[k] for k in _KEPT if k in os.environ} | _PATIENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 120
            while not os.path.exists(path):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise HarnessError("the process that starts workers ended before it began")
                time.sleep(0.01)
            yield path
        finally:
            assert process.stdin is not None
            process.stdin.close()  # it ends when this does, also when the grader is killed
            process.wait()


def _short_folder() -> str | None:
    """Socket paths hold a hundred bytes at most, so a deep TMPDIR won't do."""
    return "/tmp" if len(tempfile.gettempdir()) > 50 else None


class _Zygote:
    def __init__(self, path: str) -> None:
        self._rooms = Path(path).parent
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{path}.new")
        Path(f"{path}.new").chmod(0o600)
        self._listener.listen(64)
        os.rename(f"{path}.new", path)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(sys.stdin, selectors.EVENT_READ, self._end)
        self._rooms_of: dict[int, tuple[int, Path]] = {}
        self._open = True

    def run(self) -> None:
        while self._open:
            for key, _ in self._selector.select():
                key.data(key.fd)
        for fd, (pid, room) in self._rooms_of.items():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(fd)
            _remove(room)

    def _end(self, _: int) -> None:
        self._open = False

    def _accept(self, _: int) -> None:
        connection = self._listener.accept()[0]
        with connection:
            try:
                channel = Channel(connection)
                asked = channel.receive(time.monotonic() + _GREETING_SECONDS)
                plan, device = msgspec.convert(asked["plan"], Confinement), str(asked["device"])
            except (WireError, msgspec.ValidationError, KeyError, TypeError):
                return
            room = Path(tempfile.mkdtemp(dir=self._rooms))
            room.chmod(0o711)
            pid = os.fork()
            if pid == 0:
                self._become_worker(plan, device, room, connection)
            fd = os.pidfd_open(pid)
            self._rooms_of[fd] = (pid, room)
            self._selector.register(fd, selectors.EVENT_READ, self._reap)

    def _become_worker(
        self, plan: Confinement, device: str, room: Path, connection: socket.socket
    ) -> None:
        status = 1
        try:
            self._listener.close()
            for fd in self._rooms_of:
                os.close(fd)
            self._selector.close()
            supervise(plan, room, connection)
            try:
                submission = enter(plan, room)
            except OSError as error:
                Channel(connection).send({"problem": f"the sandbox can't be entered: {error}"})
                return
            serve(connection, submission, device)
            status = 0
        finally:
            os._exit(status)

    def _reap(self, fd: int) -> None:
        self._selector.unregister(fd)
        pid, room = self._rooms_of.pop(fd)
        os.waitpid(pid, 0)
        os.close(fd)
        _remove(room)


def _remove(room: Path) -> None:
    shutil.rmtree(room, ignore_errors=True)


def main() -> None:
    """Serve until standard input ends."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
    _Zygote(sys.argv[1]).run()


if __name__ == "__main__":
    main()
