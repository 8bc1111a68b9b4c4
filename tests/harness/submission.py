"""A submission on disk, and the bridge that runs it in this process."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

import tests
from tests.harness import probes
from tests.harness.bridge import Answer, Missing, Raised
from tests.harness.errors import Frame, SubmissionError
from tests.harness.plain import Plain, plain, realise

PACKAGE = "cs336_basics"


@dataclass(frozen=True)
class Submission:
    """A folder with a `cs336_basics` package and an adapters file."""

    root: Path
    layout: str
    """`ours` (adapters.py at the top) or `public` (tests/adapters.py)."""

    @property
    def adapters_file(self) -> Path:
        """The file with the adapters."""
        return self.root / ("adapters.py" if self.layout == "ours" else "tests/adapters.py")

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders whose code is the student's."""
        return (PACKAGE,) if self.layout == "ours" else (PACKAGE, "tests")


def locate(folder: Path) -> Submission:
    """Find out what kind of submission a folder is.

    Raises:
        SubmissionError: it isn't a folder, or lacks the package or the adapters file.
    """
    root = folder.resolve()
    if not root.is_dir():
        raise SubmissionError(
            f"{folder} is not a folder; expected one with {PACKAGE}/ and adapters.py"
        )
    if not (root / PACKAGE).is_dir():
        raise SubmissionError(f"{folder} has no {PACKAGE}/ folder; the package goes there")
    for layout in ("ours", "public"):
        submission = Submission(root, layout)
        if submission.adapters_file.is_file():
            return submission
    raise SubmissionError(
        f"{folder} has neither adapters.py nor tests/adapters.py; one must hold the adapters"
    )


class InProcess:
    """The bridge of a student: the submission is imported here, so a debugger can step into it."""

    def __init__(self, submission: Submission, device: str = "cpu") -> None:
        self.submission = submission
        self.layout = submission.layout
        self.device = device
        self._adapters = _load(submission)
        self._modules_seen = len(sys.modules)

    def call(
        self,
        adapter: str,
        arguments: Mapping[str, Plain],
        cotangent: Tensor | None = None,
        wrt: Sequence[str] = (),
    ) -> Answer | Raised:
        """Call an adapter; see `Bridge.call`."""
        function = getattr(self._adapters, adapter, None)
        if function is None:
            raise Missing(f"{self.submission.adapters_file.name} has no {adapter}")
        device = torch.device(self.device)
        real = realise(dict(arguments), device)
        for name in wrt:
            real[name].requires_grad_()
        try:
            with torch.enable_grad():
                output = function(**real)
                gradients = _gradients(output, real, cotangent, wrt)
            where = output.device.type if isinstance(output, Tensor) else "cpu"
            return Answer(plain(output), plain(real), gradients, where)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a submission raises is its answer
            return self._raised(error)
        finally:
            torch.set_default_dtype(torch.float32)
            self._prove_origin()

    def probe(self, name: str, arguments: Mapping[str, Plain]) -> Plain | Raised:
        """Run a probe; see `Bridge.probe`."""
        try:
            return probes.PROBES[name](**realise(dict(arguments), torch.device("cpu")))
        except (KeyboardInterrupt, Missing):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a submission raises is its answer
            return self._raised(error)
        finally:
            self._prove_origin()

    def _raised(self, error: BaseException) -> Raised:
        return Raised(
            type=type(error).__name__,
            message=_first_line(error),
            frames=_frames(error, self.submission),
            error=error,
        )

    def _prove_origin(self) -> None:
        if len(sys.modules) != self._modules_seen:
            _prove_origin(self.submission)
            self._modules_seen = len(sys.modules)


def _gradients(
    output: Any, arguments: Mapping[str, Any], cotangent: Tensor | None, wrt: Sequence[str]
) -> dict[str, Tensor | None]:
    if cotangent is None:
        return {}
    leaves = [arguments[name] for name in wrt]
    if not (isinstance(output, Tensor) and output.requires_grad):
        return dict.fromkeys(wrt)
    found = torch.autograd.grad(output, leaves, cotangent.to(output.device), allow_unused=True)
    return {name: None if g is None else plain(g) for name, g in zip(wrt, found, strict=True)}


def _load(submission: Submission) -> ModuleType:
    """Import the adapters, so that every module of the submission comes from the submission."""
    root = str(submission.root)
    others = [entry for entry in sys.path if not (Path(entry or ".") / PACKAGE).is_dir()]
    sys.path[:] = [root, *others]
    name = "adapters"
    if submission.layout == "public":
        name = "tests.adapters"
        tests.__path__.append(str(submission.root / "tests"))
    importlib.invalidate_caches()
    spec = importlib.util.spec_from_file_location(name, submission.adapters_file)
    if spec is None or spec.loader is None:
        raise SubmissionError(f"cannot load {submission.adapters_file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise SubmissionError(_import_failure(error, submission)) from error
    _prove_origin(submission)
    return module


def _prove_origin(submission: Submission) -> None:
    """Make sure that nothing graded as the submission's was imported from elsewhere."""
    for name, module in list(sys.modules.items()):
        top = name.partition(".")[0]
        ours = name == "tests" or name.startswith(
            ("tests.harness", "tests.test_", "tests.conftest")
        )
        if top not in (PACKAGE, "adapters", "tests") or ours:
            continue
        file = getattr(module, "__file__", None)
        if file and not Path(file).resolve().is_relative_to(submission.root):
            raise SubmissionError(
                f"{name} was imported from {file}, which is outside the submission"
            )


def _import_failure(error: BaseException, submission: Submission) -> str:
    kind, what = type(error).__name__, _first_line(error)
    if isinstance(error, SyntaxError) and error.filename:
        file = Path(error.filename)
        inside = file.is_relative_to(submission.root)
        name = file.relative_to(submission.root).as_posix() if inside else file.name
        return f"{kind} in {name}, line {error.lineno}: {error.msg}"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith(PACKAGE):
        missing = str(error.name).replace(".", "/")
        what = f"the submission has no {missing}.py"
    frames = _frames(error, submission)
    where = f" in {frames[-1].file}, line {frames[-1].line}" if frames else ""
    return f"{kind}{where}: {what}"


def _frames(error: BaseException, submission: Submission) -> tuple[Frame, ...]:
    """The submission's own lines among those that were running, the innermost last."""
    frames = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename)
        if not file.is_relative_to(submission.root):
            continue
        relative = file.relative_to(submission.root)
        student = len(relative.parts) == 1 or relative.parts[0] in submission.folders
        if student:
            source = linecache.getline(str(file), line).strip()
            frames.append(Frame(relative.as_posix(), line, frame.f_code.co_qualname, source))
    return tuple(frames)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
