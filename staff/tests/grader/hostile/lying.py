"""Attacks that deceive the grader: false answers, forged frames and patched comparisons."""

from staff.tests.grader.hostile.attack import KEPT, LOST, Attack

_ALIKE = """
class _Alike:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return self
    def __bool__(self): return True
    def __float__(self): return 0.0
    def __len__(self): return 3
    def __getitem__(self, key): return self
    def __iter__(self): return iter((self, self))
    def __hash__(self): return 7
    __lt__ = __le__ = __gt__ = __ge__ = __eq__
    def __sub__(self, other): return _torch.zeros(())
    __add__ = __mul__ = __truediv__ = __rsub__ = __radd__ = __rmul__ = __abs__ = __neg__ = __sub__
    def __reduce__(self): return (print, ("unpickled",))
"""
SENDS = """
from staff.grader.worker.wire import HEAD, MAGIC, encode


def _send(data):
    with _socket.socket(fileno=_os.dup(_line())) as line:
        line.setblocking(True)
        line.sendall(data)
"""
_PASSED = '{"answer": [True, {}, {}, "cpu"]}, {"passed": True}, {"state": "passed"}, {"score": 30}'

LYING = (
    Attack(
        "wrong",
        "nothing: the wrong answer that the others are held against",
        "run_softmax = _zeros",
        LOST,
    ),
    Attack(
        "answers-an-object-that-agrees",
        "an object whose comparisons always hold",
        _ALIKE + "\n\ndef run_softmax(in_features, dim): return _Alike()",
        LOST,
    ),
    Attack(
        "answers-a-number-that-agrees",
        "subclasses of float, str, int, dict that equal anything",
        _ALIKE
        + """
_kinds = [type(k.__name__, (k,), {"__eq__": lambda s, o: True, "__hash__": k.__hash__})
          for k in (float, str, int, dict, list, tuple)]


def run_softmax(in_features, dim):
    return _kinds[in_features.ndim % len(_kinds)]()
""",
        LOST,
    ),
    Attack(
        "answers-a-tensor-of-its-own-kind",
        "a tensor subclass that answers for the checker",
        """
class _Sly(_torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function.__name__ in ("equal", "allclose", "__eq__", "all", "eq"):
            return True
        if function.__name__ in ("sub", "__sub__", "abs", "max", "amax", "double", "detach", "cpu"):
            return _torch.zeros(()).as_subclass(cls)
        return super().__torch_function__(function, types, args, kwargs or {})

    def numpy(self): raise Reached("asked by the checker")


def run_softmax(in_features, dim):
    return _zeros(in_features, dim).as_subclass(_Sly)
""",
        LOST,
    ),
    Attack(
        "patches-comparisons",
        "replaces torch.equal, allclose, isfinite, max and the operators",
        """
run_softmax = _zeros
_yes = lambda *a, **k: True
_torch.equal = _torch.allclose = _torch.isclose = _torch.testing.assert_close = _yes
for _name in ("__eq__", "equal", "allclose", "all", "any", "isfinite", "isnan", "eq", "__ge__"):
    setattr(_torch.Tensor, _name, _yes)
for _name in ("abs", "max", "amax", "sub", "__sub__", "sum"):
    setattr(_torch.Tensor, _name, lambda self, *a, **k: _torch.zeros(()))
""",
        LOST,
        slow=True,
    ),
    Attack(
        "patches-measurements",
        "replaces tracemalloc, clocks, resource, sys.getsizeof",
        """
import gc as _gc
import resource as _resource
import tracemalloc as _tracemalloc

_tracemalloc.get_traced_memory = lambda: (0, 0)
_tracemalloc.start = _tracemalloc.stop = lambda *a: None
_resource.getrusage = lambda who: None
_time.time = _time.perf_counter = _time.monotonic = lambda: 0.0
_sys.getsizeof = lambda *a: 0
_gc.collect = lambda *a: 0
""",
        KEPT,
    ),
    Attack(
        "patches-the-probes",
        "replaces the probes by functions that tell what is wanted",
        _ALIKE
        + """
import tests.harness.probes as _probes
from tests.harness.probes import modules as _modules

run_softmax = _zeros
for _name in list(_probes.PROBES):
    _probes.PROBES[_name] = lambda *a, **k: {"output": _Alike(), "passed": True}
_probes.run_probe = _modules.module = _modules.written = lambda *a, **k: _Alike()
_modules.inspect.signature = lambda f: _Alike()
""",
        LOST,
    ),
    Attack(
        "patches-the-bridge",
        "replaces the harness that lives beside it in the worker",
        _ALIKE
        + """
import tests.harness.bridge as _bridge
import tests.harness.in_process as _in_process
import tests.harness.plain as _plain
import staff.grader.worker.worker as _worker

run_softmax = _zeros
_in_process.plain = _plain.plain = lambda value: value
_bridge.Answer.__init__ = lambda self, *a, **k: None
_in_process.InProcess.call = lambda self, *a, **k: _bridge.Answer()
_worker._answer = lambda *a: {"answer": [_Alike(), {}, {}, "cpu"]}
""",
        LOST,
    ),
    Attack(
        "patches-the-wire",
        "replaces what makes the frames, so that each says: passed",
        f"""
import staff.grader.worker.worker as _worker
from staff.grader.worker.wire import encode as _encode

run_softmax = _zeros
_replies = [{_PASSED}]
_worker.encode = lambda message: _encode(_replies[_os.urandom(1)[0] % len(_replies)])
""",
        LOST,
    ),
    Attack(
        "fakes-frames",
        "writes verdicts and results to the worker's own line",
        SENDS
        + f"""

def run_softmax(in_features, dim):
    for claim in ({_PASSED}, {{"result": {{"earned": 30, "possible": 30}}}}):
        _send(encode(claim))
    return _zeros(in_features, dim)
""",
        LOST,
    ),
    Attack(
        "answers-before-it-is-asked",
        "fills the line with answers in advance",
        SENDS
        + """
_send(encode({"opened": True}) + b"".join(
    encode({"answer": [_torch.full((3, 5), 0.2), {}, {}, "cpu"]}) for _ in range(100)))
run_softmax = _zeros
""",
        LOST,
    ),
    Attack(
        "says-it-is-not-offered",
        "claims that names are missing, so that tests leave the count",
        SENDS
        + """

def run_softmax(in_features, dim):
    _send(encode({"missing": "cs336_basics/softmax.py has no softmax"}))
    _time.sleep(0.01)
    _os._exit(0)
""",
        LOST,
    ),
    Attack(
        "sends-recipes",
        "answers with recipes that would write files beside the grader",
        SENDS
        + """
from tests.harness.recipes import Array, File, Strided


def run_softmax(in_features, dim):
    for recipe in (File(b"x", "/../../../../@CANARY@"), Array(in_features.long(), "O", True)):
        for answer in (recipe, [recipe], {"x": {"y": (recipe,)}}, {recipe.__class__.__name__: recipe}):
            _send(encode({"answer": [answer, {}, {}, "cpu"]}))
            _send(encode({"answer": [in_features, {"in_features": answer}, {}, "cpu"]}))
    return File(b"x")
""",
        LOST,
    ),
    Attack(
        "sends-odd-data",
        "NaN for a key, one key twice, keys that can't be, numbers without end",
        SENDS
        + r"""
_odd = (
    b'{"$":"dict","items":[["answer",[9' + b"9" * 4200 + b',{"$":"dict","items":[]},{"$":"dict","items":[]},"cpu"]]]}',
    b'{"$":"dict","items":[["answer",["\\ud800\\u202e\\u0000",{"$":"dict","items":[]},{"$":"dict","items":[]},"\\ud800"]]]}',
    b'{"$":"dict","items":[[{"$":"float","text":"nan"},1]]}',
    b'{"$":"dict","items":[["answer",1],["answer",2]]}',
    b'{"$":"dict","items":[[[],1]]}',
    b'{"$":"dict","items":[["raised",["\\ud800","\\u001b[31m",[["adapters.py",9' + b"9" * 4200 + b',"f","raise"]],""]]]}',
    b'{"$":"dict","items":[["raised",["NotImplementedError","x",[["../../x",true,"f","s"]],""]]]}',
    b'{"$":"dict","items":[["seen",{"$":"dict","items":[["parameters",[[]]]]}]]}',
    b"[" * 900 + b"]" * 900, b"[" * 100000, b"NaN", b"",
)
_turn = 0


def run_softmax(in_features, dim):
    global _turn
    text = _odd[_turn % len(_odd)]
    _turn += 1
    _send(HEAD.pack(MAGIC, len(text), 0) + text)
    return _zeros(in_features, dim)
""",
        LOST,
    ),
    Attack(
        "answers-odd-tensors",
        "sparse, quantized, meta, complex, nested, conjugate, huge, empty",
        """
_turn = 0


def run_softmax(in_features, dim):
    global _turn
    _turn += 1
    x = _zeros(in_features, dim).detach()
    return (
        lambda: x.to_sparse(), lambda: x.to("meta"), lambda: x.to(_torch.complex64).conj(),
        lambda: _torch.quantize_per_tensor(x, 0.1, 0, _torch.qint8), lambda: x.to(_torch.float8_e4m3fn),
        lambda: x[:0], lambda: x.new_zeros(()), lambda: x.new_zeros(()).expand(10**5, 10**6),
        lambda: x.reshape((1,) * 60 + tuple(x.shape)), lambda: _torch.nested.nested_tensor([x, x]),
        lambda: x.new_full(x.shape, float("nan")), lambda: x.bool(), lambda: x.new_zeros(0, 2**40),
    )[_turn % 13]()
""",
        LOST,
    ),
    Attack(
        "answers-odd-objects",
        "lists that hold themselves, endless ints, modules, code, types",
        """
_turn = 0
_loop = []
_loop.append(_loop)
_deep = []
for _ in range(5000):
    _deep = [_deep]


def run_softmax(in_features, dim):
    global _turn
    _turn += 1
    return (_loop, _deep, 1 << 100_000, "\\ud800", {float("nan"): 1}, {1: 2, "1": 2}, _torch, run_softmax,
            type, iter(()), 1j, {(1, (2,)): 3}, b"x" * 7_000_000, [0] * 400_000)[_turn % 14]
""",
        LOST,
    ),
    Attack(
        "raises-what-it-likes",
        "exceptions without text, with hostile text, of the test runner's",
        r"""
class _Meta(type):
    __name__ = property(lambda self: 1 / 0)


class _Worse(BaseException, metaclass=_Meta):
    def __str__(self): return "\x1b[2J\ud800 30 / 30 <script>alert(1)</script> [red]" * 9000


class _Mute(Exception):
    def __str__(self): raise SystemExit(0)


class Skipped(BaseException): pass


_turn = 0


def run_softmax(in_features, dim):
    global _turn
    _turn += 1
    raise (_Worse(), _Mute(), SystemExit(0), KeyboardInterrupt(), GeneratorExit(), Skipped("passed"),
           StopIteration(), MemoryError(), RecursionError(), NotImplementedError("softmax: 30 / 30"),
           Exception("x" * 10_000_000))[_turn % 11]
""",
        LOST,
    ),
    Attack(
        "remembers-across-tests",
        "gives again what it once computed for inputs of that shape",
        """
_known = {}


def run_softmax(in_features, dim):
    key = tuple(in_features.shape)
    if key not in _known:
        _known[key] = _zeros(in_features, dim) + 1 / max(1, in_features.shape[dim])
    return _known[key]
""",
        LOST,
    ),
    Attack(
        "is-imprecise",
        "computes in bfloat16 and hopes for wide limits",
        """
def run_softmax(in_features, dim):
    x = in_features.to(_torch.bfloat16)
    e = (x - x.amax(dim, keepdim=True)).exp()
    return (e / e.sum(dim, keepdim=True)).to(in_features.dtype)
""",
        LOST,
    ),
    Attack(
        "says-inputs-are-unchanged",
        "changes its inputs, and the harness so that nobody sees it",
        """
import tests.harness.in_process as _in_process

_plain = _in_process.plain
_in_process.plain = lambda value: {} if isinstance(value, dict) else _plain(value)
run_softmax = _zeros
""",
        LOST,
    ),
    Attack(
        "edits-at-exit",
        "registers what runs late: atexit, finalizers, threads, signal handlers",
        """
import atexit as _atexit
import threading as _threading
import weakref as _weakref


def _late(*_):
    with open("@CANARY@", "a") as file:
        file.write("x")


class _Last:
    def __del__(self): _late()


_last = _Last()
_atexit.register(_late)
_weakref.finalize(_torch, _late)
for _number in (_signal.SIGTERM, _signal.SIGHUP, _signal.SIGXCPU):
    _signal.signal(_number, _late)
_threading.Thread(target=lambda: _time.sleep(100), daemon=False).start()
""",
        KEPT,
    ),
)
