"""Importing a submission, so that all that is graded as the student's is the student's.

This is the one place that edits `sys.path`: other folders with a `cs336_basics` leave it, so
that a module which a submission lacks is an error and never somebody else's.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import tests
from tests.harness.errors import SubmissionError
from tests.harness.recipes import scratch_file
from tests.harness.submission import PACKAGE, Submission, first_line

_OURS = ("tests.harness", "tests.test_", "tests.conftest")


def load_adapters(submission: Submission) -> ModuleType:
    """Import the adapters, and with them what they import of the package.

    Raises:
        SubmissionError: an import failed, with the student's own error; or a module came from
            outside the submission.
    """
    _hide_main_program()
    put_first(submission)
    _pretend_installed()
    name = "adapters"
    if submission.layout == "public":
        name = "tests.adapters"
        tests.__path__.append(str(submission.root / "tests"))
    importlib.invalidate_caches()
    try:
        module = execute(name, submission.adapters_file)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise SubmissionError(_import_failure(error, submission)) from error
    prove_origin(submission)
    return module


def put_first(submission: Submission) -> None:
    """Let `cs336_basics` mean the package of this submission, and of no other folder."""
    others = [entry for entry in sys.path if not (Path(entry or ".") / PACKAGE).is_dir()]
    sys.path[:] = [str(submission.root), *others]


def prove_origin(submission: Submission) -> None:
    """Make sure that no module graded as the submission's was imported from elsewhere.

    Raises:
        SubmissionError: one was.
    """
    inside = os.path.join(submission.root, "")
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in (PACKAGE, "adapters", "tests"):
            continue
        file = getattr(module, "__file__", None)
        if name == "tests" or name.startswith(_OURS) or not file:
            continue
        if not os.path.realpath(file).startswith(inside):
            raise SubmissionError(f"{name} was imported from outside the submission: {file}")


def _hide_main_program() -> None:
    """Keep processes that a submission spawns from importing this process's main program again.

    They couldn't find it where `sys.path` is the submission's, and have no use for it.
    """
    main = sys.modules["__main__"]
    main.__spec__ = None
    vars(main).pop("__file__", None)


def _pretend_installed() -> None:
    """Let the package's version be found, which the public `cs336_basics/__init__.py` asks for.

    There the package is installed; here a submission never is. What stands in a folder of
    `sys.path` is found in the processes, too, that a submission spawns.
    """
    folder = scratch_file(".path")
    information = folder / f"{PACKAGE}-0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 0\n")
    sys.path.append(str(folder))


def execute(name: str, file: Path) -> ModuleType:
    """Import one file under a name."""
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {file.name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _import_failure(error: BaseException, submission: Submission) -> str:
    """Say in one line what went wrong and where in the student's code."""
    kind, what = type(error).__name__, first_line(error)
    if isinstance(error, SyntaxError) and error.filename:
        file = Path(error.filename)
        inside = file.is_relative_to(submission.root)
        name = file.relative_to(submission.root).as_posix() if inside else file.name
        return f"{kind} in {name}, line {error.lineno}: {error.msg}"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith(PACKAGE):
        what = f"the submission has no {str(error.name).replace('.', '/')}.py"
    frames = submission.frames(error)
    where = f" in {frames[-1].file}, line {frames[-1].line}" if frames else ""
    return f"{kind}{where}: {what}"
