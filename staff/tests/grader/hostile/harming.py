"""Attacks that crash, hang or use up resources, and files that the grader must not run."""

from staff.tests.grader.hostile.attack import KEPT, LOST, UNGRADED, Attack

_IN_CALL = "\n\ndef run_softmax(in_features, dim):\n    {}\n    return _zeros(in_features, dim)\n"


def _in_call(name: str, tries: str, body: str, *, slow: bool = False, before: str = "") -> Attack:
    return Attack(name, tries, before + _IN_CALL.format(body), LOST, slow=slow)


_ANY = "raise RuntimeError('run')"

HARMING = (
    Attack(
        "exits-at-import", "ends with status 0 before anything is tested", "_os._exit(0)", UNGRADED
    ),
    Attack("raises-exit-at-import", "raises SystemExit(0)", "_sys.exit(0)", UNGRADED),
    _in_call("exits-in-a-call", "ends the process with status 0", "_os._exit(0)"),
    _in_call(
        "kills-itself",
        "sends itself SIGKILL, and stops itself",
        "_os.kill(_os.getpid(), 9); _os.kill(_os.getpid(), 19); _os.abort()",
    ),
    _in_call("crashes", "reads address zero", "_ctypes.string_at(0)"),
    _in_call(
        "recurses",
        "overflows the stack",
        "_sys.setrecursionlimit(10**9); (f := lambda g: g(g))(f)",
        slow=True,
    ),
    _in_call("hangs", "never answers", "while True: pass", slow=True),
    _in_call(
        "sleeps",
        "never answers, at no cost, and ignores signals",
        "[_signal.signal(s, _signal.SIG_IGN) for s in (1, 2, 3, 15)]; _time.sleep(10**6)",
        slow=True,
    ),
    Attack("sleeps-at-import", "is never imported", "_time.sleep(10**6)", UNGRADED, slow=True),
    _in_call(
        "hangs-up",
        "closes its line to the grader, and lives on",
        "_os.closerange(3, 256); _time.sleep(10**6)",
        slow=True,
    ),
    _in_call(
        "drips",
        "sends an answer without end, byte by byte",
        "_drip()",
        slow=True,
        before="""
def _drip():
    from staff.grader.worker.wire import HEAD, MAGIC
    with _socket.socket(fileno=_os.dup(_line())) as line:
        line.setblocking(True)
        line.sendall(HEAD.pack(MAGIC, 8_000_000, 64_000_000))
        while True:
            line.sendall(b" ")
            _time.sleep(0.01)
""",
    ),
    _in_call(
        "floods-the-line",
        "sends frames of the largest size, one after the other",
        "_flood()",
        slow=True,
        before="""
def _flood():
    from staff.grader.worker.wire import HEAD, MAGIC
    with _socket.socket(fileno=_os.dup(_line())) as line:
        line.setblocking(True)
        line.sendall(HEAD.pack(MAGIC, 0, 64_000_000))
        while True:
            line.sendall(b"\\xff" * 1_000_000)
""",
    ),
    Attack(
        "forks-without-end",
        "a fork bomb",
        """
def _bomb():
    while True:
        try:
            _os.fork()
        except OSError:
            _time.sleep(0.001)


run_softmax = _zeros
if _os.fork() == 0:
    _bomb()
""",
        LOST,
        slow=True,
    ),
    Attack(
        "starts-threads-without-end",
        "a bomb of threads",
        """
import threading as _threading

with _contextlib.suppress(RuntimeError):
    for _ in range(2000):
        _threading.Thread(target=_time.sleep, args=(100,), daemon=True).start()
    raise Reached("2000 threads")
""",
        KEPT,
    ),
    Attack(
        "leaves-a-daemon",
        "children in sessions of their own that ignore every signal they can",
        """
for _ in range(3):
    if _os.fork() == 0:
        _os.setsid()
        if _os.fork() == 0:
            _libc.prctl(1, 0, 0, 0, 0)
            for _number in range(1, 65):
                with _contextlib.suppress(OSError, ValueError):
                    _signal.signal(_number, _signal.SIG_IGN)
            while True:
                with _contextlib.suppress(OSError):
                    open("@CANARY@", "a").write("x")
                _time.sleep(0.01)
        _os._exit(0)
_libc.prctl(1, 0, 0, 0, 0)  # the worker itself wants to outlive its supervisor
""",
        KEPT,
    ),
    Attack(
        "starts-programs",
        "leaves a program running that was not Python",
        """
import subprocess as _subprocess

_subprocess.Popen(["sleep", "4242"], start_new_session=True)
_subprocess.Popen(["sh", "-c", "trap '' TERM HUP; sleep 4242 & sleep 4242"], start_new_session=True)
""",
        KEPT,
    ),
    _in_call(
        "takes-all-memory",
        "allocates more than there is",
        """
    held = []
    try:
        while True:
            held.append(_torch.ones(1 << 27))
    except RuntimeError:
        raise""".strip(),
        slow=True,
    ),
    _in_call(
        "takes-all-memory-together",
        "many processes, each below its own limit",
        """
    for _ in range(24):
        if _os.fork() == 0:
            held = [bytearray(b"x") * (1 << 24) for _ in range(24)]
            _time.sleep(10**6)
    _time.sleep(10**6)""".strip(),
        slow=True,
    ),
    Attack(
        "hides-memory",
        "memory that no process holds: memfd, System V segments, queues",
        """
_never("memfd", lambda: _call(319, 0, 0))
_never("shmget", lambda: _call(29, 0, 1 << 30, 0o1666))
for _folder, _most in (("/scratch", 300), ("/dev/shm", 100)):
    try:
        with open(f"{_folder}/big", "wb") as _file:
            for _ in range(_most):
                _file.write(bytes(1 << 20))
        raise Reached(f"{_most} MB in {_folder}")
    except OSError:
        _os.remove(f"{_folder}/big")
""",
        KEPT,
    ),
    Attack(
        "fills-the-disk",
        "files without end, in many and in large",
        """
_signal.signal(_signal.SIGXFSZ, _signal.SIG_IGN)
for _place in ("/scratch", "/dev/shm", "/tmp", "/var/tmp", "/"):
    with _contextlib.suppress(OSError):
        for _number in range(40):
            with open(f"{_place}/fill{_number}", "wb") as _file:
                _file.write(bytes(1 << 23))
        raise Reached(_place)
""",
        KEPT,
    ),
    Attack(
        "fills-the-inodes",
        "a million empty files and folders, deep in each other",
        """
with _contextlib.suppress(OSError):
    for _number in range(10**6):
        _os.mkdir("/scratch/d")
        _os.chdir("/scratch/d") if _number == 0 else _os.chdir("d")
        _os.mkdir("d")
with _contextlib.suppress(OSError):
    for _number in range(10**6):
        open(f"/dev/shm/{_number}", "w").close()
    raise Reached("a million files")
_os.chdir("/scratch")
""",
        KEPT,
    ),
    Attack(
        "floods-its-output",
        "prints without end, on every stream there is",
        """
_text = "x" * 1_000_000
for _ in range(50):
    print(_text)
    print(_text, file=_sys.stderr)
    _os.write(1, b"x" * 1_000_000)
_sys.stdout.close()
""",
        KEPT,
    ),
    Attack(
        "opens-every-file",
        "takes every file descriptor",
        """
_held = []
with _contextlib.suppress(OSError):
    while True:
        _held.append(_os.open("/dev/null", _os.O_RDONLY))
run_softmax = _zeros
""",
        LOST,
    ),
    Attack(
        "meddles-with-its-process",
        "changes locale, recursion, hooks, streams, float modes",
        """
import builtins as _builtins

_sys.settrace(lambda *a: None)
_sys.setswitchinterval(1e-6)
_sys.excepthook = _sys.unraisablehook = lambda *a: None
_sys.stdout = _sys.stderr = _sys.stdin = None
_builtins.print = None
_os.environ.clear()
_os.environ["PYTEST_ADDOPTS"] = "--no-such-option"
_os.environ["LD_PRELOAD"] = _os.environ["PYTHONPATH"] = "/scratch/evil.so"
_os.chdir("/")
_torch.set_default_dtype(_torch.float64)
_torch.set_flush_denormal(True)
""",
        KEPT,
    ),
    Attack(
        "runs-in-parallel",
        "nothing: it computes in parallel, as a slow submission would",
        """
def run_softmax(in_features, dim):
    before = _torch.get_num_threads()
    _torch.set_num_threads(2)
    _torch.ones(600, 600) @ _torch.ones(600, 600)
    _torch.set_num_threads(before)
    return _right(in_features, dim)
""",
        KEPT,
    ),
    Attack(
        "shadows-modules",
        "files with the names of torch, json, safetensors, numpy, msgspec",
        "",
        KEPT,
        dict.fromkeys(
            (
                "torch.py",
                "json.py",
                "random.py",
                "safetensors.py",
                "msgspec.py",
                "numpy/__init__.py",
                "tests/harness/compare.py",
                "pytest.py",
                "staff/__init__.py",
                "struct.py",
                "socket.py",
            ),
            _ANY,
        ),
    ),
    Attack(
        "brings-configuration",
        "conftest, pytest.ini, pyproject, tox.ini, setup.cfg, plug-ins",
        "",
        KEPT,
        {
            "conftest.py": _ANY,
            "cs336_basics/conftest.py": _ANY,
            "tests/conftest.py": _ANY,
            "pytest.ini": "[pytest]\naddopts = --no-such-option",
            "pyproject.toml": "[[[",
            "tox.ini": "[pytest]\naddopts = -x",
            "setup.cfg": "[tool:pytest]\naddopts = -x",
            "setup.py": _ANY,
            ".env": "PYTEST_ADDOPTS=-x",
        },
    ),
    Attack(
        "brings-start-up-files",
        "sitecustomize, usercustomize, a .pth, a __main__",
        "",
        KEPT,
        {
            "sitecustomize.py": _ANY,
            "usercustomize.py": _ANY,
            "zzz.pth": "import os; os._exit(0)",
            "__main__.py": _ANY,
            "cs336_basics/__main__.py": _ANY,
        },
    ),
    Attack(
        "brings-its-own-tests",
        "tests, a rubric, fixtures and a workflow that pass by themselves",
        "",
        KEPT,
        {
            "tests/__init__.py": _ANY,
            "tests/test_softmax.py": "def test_all(): pass",
            "tests/assignment.toml": "[[[",
            "tests/fixtures/softmax.safetensors": "x",
            "run_autograder": "#!/bin/sh\nexit 0",
            "results.json": '{"score": 30}',
        },
    ),
)
