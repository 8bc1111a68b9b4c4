"""Tests of the sandbox: its backends, the choice among them, and forked and spawned workers."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
import torch
from torch import Tensor

from staff.grader.sandbox import Confinement, bwrap, choose, seccomp
from staff.grader.sandbox.choose import BACKENDS, SandboxError
from staff.grader.sandbox.view import _HARNESS, readable
from staff.grader.worker.remote import NoWorkerError, Remote, Workers
from staff.grader.worker.zygote import zygote
from staff.paths import ROOT, SOLUTION
from staff.tests.support import submission
from tests.harness.bridge import Answer, Raised
from tests.harness.submission import locate

PARALLEL = """
import torch


def run_silu(in_features):
    torch.set_num_threads(2)
    return torch.ones(500, 500) @ torch.ones(500, 500)
"""
FAKE = """#!{python} -I
import os, sys

inner = sys.argv[sys.argv.index("--") + 1:]
os.execv(inner[0], inner)
"""


@pytest.fixture(scope="module")
def line() -> Iterator[int]:
    """Start a zygote, and yield the file descriptor of its socket."""
    with zygote() as fd:
        yield fd


def remote(line: int, folder: Path, **plan: object) -> Remote:
    """Return a bridge to a submission in a worker; `plan` changes fields of its confinement."""
    confinement = Confinement(backend="namespaces", submission=str(folder))
    confinement = msgspec.structs.replace(confinement, **plan)
    return Remote(locate(folder), "cpu", Workers(zygote_socket=line, plan=confinement))


def silu(bridge: Remote) -> Tensor:
    """Return the output of `run_silu` for three zeros."""
    reply = bridge.call("run_silu", {"in_features": torch.zeros(3)})
    assert isinstance(reply, Answer), reply
    assert isinstance(reply.output, Tensor)
    return reply.output


def raised(bridge: Remote, *, refusal: bool = False) -> Raised:
    """Return the exception that `run_silu` raises for three zeros."""
    reply = bridge.call("run_silu", {"in_features": torch.zeros(3)}, refusal=refusal)
    assert isinstance(reply, Raised), reply
    return reply


def needs(backend: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test if the backend doesn't work on this machine."""
    try:
        choose(backend)
    except SandboxError as error:
        return pytest.mark.skip(str(error))
    return pytest.mark.filterwarnings("error")


@needs("namespaces")
def test_a_parallel_operation_in_the_tenth_worker(line: int, tmp_path: Path) -> None:
    """Catches workers that hang because the zygote ran a parallel operation before it forked."""
    folder = submission(tmp_path / "parallel", added={"adapters.py": PARALLEL})
    for number in range(10):
        with closing(remote(line, folder, number=number)) as bridge:
            if number in (0, 9):
                assert torch.equal(silu(bridge), torch.full((500, 500), 500.0))


@needs("namespaces")
def test_a_spawned_worker(line: int) -> None:
    """Catches a sandbox in which a spawned worker can't read a module that it imports."""
    with closing(remote(line, SOLUTION, gpu=True)) as bridge:
        assert torch.equal(silu(bridge), torch.zeros(3))


def test_a_spawned_worker_sees_no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a sandbox in which a spawned worker can read tests, cases or solutions."""
    more = [str(ROOT / "staff/tests/../.."), str(SOLUTION), str(ROOT / "tests")]
    monkeypatch.setattr(sys, "path", [*sys.path, *more])
    seen = readable(Confinement(backend="bwrap", submission="/nowhere"))
    inside = {path.relative_to(ROOT).as_posix() for path in seen if path.is_relative_to(ROOT)}
    assert {name for name in inside if not (ROOT / name).is_relative_to(sys.prefix)} == {
        "staff/__init__.py",
        "staff/grader/__init__.py",
        "staff/grader/scratch",
        *(f"staff/grader/worker/{name}.py" for name in ("__init__", "wire", "worker")),
        "tests/__init__.py",
        *(f"tests/harness/{name}.py" for name in _HARNESS),
        "tests/harness/probes",
    }
    assert not {"cases", "compare", "fixtures", "plugin", "scoring"} & set(_HARNESS)
    assert not any(ROOT.is_relative_to(path.resolve()) for path in seen)


@pytest.mark.skipif(os.getuid() == 0, reason="as root, the worker's user may not read Python")
def test_behind_a_fake_bwrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a command line for bwrap whose Python can't find the worker's modules."""
    fake = tmp_path / "bwrap"
    fake.write_text(FAKE.format(python=sys.executable))
    fake.chmod(0o755)
    monkeypatch.setattr(bwrap, "program", lambda: str(fake))
    assert choose("bwrap").name == "bwrap"


def test_the_command_of_bwrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a protective option that is missing from the command line of bwrap."""
    monkeypatch.setattr(bwrap, "program", lambda: "/usr/bin/bwrap")
    plan = Confinement(backend="bwrap", submission=str(tmp_path))
    command = bwrap.command(plan, ["python", "-I"], tmp_path / "room")
    assert command[-3:] == ["--", "python", "-I"]
    text = " ".join(command)
    for wall in (
        "--unshare-all",
        "--disable-userns",
        "--die-with-parent",
        "--new-session",
        "--as-pid-1",
        "--seccomp ",
        "--cap-drop ALL",
        "--clearenv",
        f"--ro-bind {tmp_path} /submission",
        f"--bind {tmp_path}/room /scratch",
        "--size 4096 --tmpfs /dev",
        "--remount-ro /dev",
        "--remount-ro /",
    ):
        assert wall in text
    assert text.count(" --bind ") == 1
    assert "fixtures" not in text


@needs("namespaces")
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_a_worker_cannot_reach(line: int) -> None:
    """Catches a missing `NoWorkerError` if a worker can't use the GPU."""
    plan = Confinement(backend="namespaces", submission=str(SOLUTION))
    with pytest.raises(NoWorkerError, match="cuda:0 can't be used: "):
        Remote(locate(SOLUTION), "cuda:0", Workers(zygote_socket=line, plan=plan))


@needs("namespaces")
def test_auto_takes_the_strongest() -> None:
    """Catches an `auto` that chooses a weaker backend although `namespaces` works."""
    assert choose("auto").name == "namespaces"
    assert any("no network" in text for text in choose("auto").protections)


def test_what_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a `choose` that returns another backend if the requested one is not installed."""
    monkeypatch.setattr(bwrap, "program", lambda: None)
    with pytest.raises(SandboxError, match="bwrap is not available: bwrap is not installed"):
        choose("bwrap")


@needs("bwrap")
def test_behind_bwrap() -> None:
    """Catches an option of bwrap that stops a correct submission from answering."""
    with zygote() as fd, closing(remote(fd, SOLUTION, backend="bwrap")) as bridge:
        assert torch.equal(silu(bridge), torch.zeros(3))


def test_unknown_backends() -> None:
    """Catches an unknown backend, such as `docker`, for which no `SandboxError` is raised."""
    with pytest.raises(SandboxError, match="no sandbox is called 'docker'; there are auto, namesp"):
        choose("docker")
    assert [b.name for b in BACKENDS] == ["namespaces", "bwrap", "landlock", "process"]


@needs("namespaces")
def test_a_folder_that_is_not_there(line: int) -> None:
    """Catches a missing `NoWorkerError` if the sandbox can't be entered."""
    plan = Confinement(backend="namespaces", submission="/no/such/folder")
    with pytest.raises(NoWorkerError, match="the sandbox can't be entered: "):
        Remote(locate(SOLUTION), "cpu", Workers(zygote_socket=line, plan=plan))


def test_a_zygote_that_is_gone() -> None:
    """Catches a missing `NoWorkerError` if the zygote has ended."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.close()
    plan = Confinement(backend="namespaces", submission=str(SOLUTION))
    with ours, pytest.raises(NoWorkerError, match="no worker could be started: "):
        Remote(locate(SOLUTION), "cpu", Workers(zygote_socket=ours.fileno(), plan=plan))


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_jumps_of_the_filter_end_inside_it(machine: str) -> None:
    """Catches a seccomp filter with a jump past its end, which the kernel rejects."""
    for signals in (True, False):
        program = seccomp.program(signals=signals, machine=machine)
        count = len(program) // 8
        for i in range(count):
            code = int.from_bytes(program[8 * i : 8 * i + 2], sys.byteorder)
            if code & 7 == 5:  # a jump
                assert i + 1 + max(program[8 * i + 2], program[8 * i + 3]) < count


ANNOTATED = """
from jaxtyping import Float, Int
from torch import Tensor


def silu(x: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
    raise ValueError("no")
"""
KNOWING = """
import sys


def run_silu(in_features):
    frame, seen = sys._getframe(), {}
    while frame:
        for name, value in frame.f_locals.items():
            if isinstance(value, dict) and "arguments" in value:
                seen = {k: v for k, v in value.items() if k != "arguments"}
            elif isinstance(value, bool):
                seen.setdefault(name, value)
        frame = frame.f_back
    raise ValueError(repr(sorted(seen.items(), key=str)))
"""


@needs("namespaces")
def test_what_annotations_say_is_asked_for_once(line: int, tmp_path: Path) -> None:
    """Catches a violated type annotation that is not reported, or is reported for every call."""
    added = {"cs336_basics/feed_forward.py": ANNOTATED}
    with closing(remote(line, submission(tmp_path / "annotated", added=added))) as bridge:
        first, second = raised(bridge), raised(bridge)
        assert first.annotations.startswith("annotations: feed_forward.silu")
        assert second.annotations == ""


@needs("namespaces")
def test_no_request_tells_that_an_error_is_expected(line: int, tmp_path: Path) -> None:
    """Catches a request from which the submission can read that an error is expected."""
    with closing(
        remote(line, submission(tmp_path / "knowing", added={"adapters.py": KNOWING}))
    ) as bridge:
        told = [raised(bridge, refusal=refusal) for refusal in (False, True)]
        assert told[0].message == told[1].message != "[]"
