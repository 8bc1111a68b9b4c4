"""The import of a submission, which makes sure that every graded module is the student's.

Only this module edits `sys.path`. It removes all other folders that hold a `cs336_basics`
package. A module that the submission lacks is therefore an error, and the module of another
folder is never graded in its place.
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
    """Import the adapters, and with them the modules of the package that they import.

    Raises:
        SubmissionError: an import failed, or a module came from outside the submission. For a
            failed import, the text quotes the student's own error.
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
    """Edit `sys.path` so that `cs336_basics` can be imported only from this submission."""
    others = [entry for entry in sys.path if not (Path(entry or ".") / PACKAGE).is_dir()]
    sys.path[:] = [str(submission.root), *others]


def prove_origin(submission: Submission) -> None:
    """Check that every module that is graded was imported from the submission's folder.

    Raises:
        SubmissionError: a module was imported from outside the submission.
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
    """Keep child processes of the submission from importing the main program of this process.

    A spawned process imports the main program of its parent. Here it can't find that program,
    since `sys.path` is changed, and it does not need it.
    """
    main = sys.modules["__main__"]
    main.__spec__ = None
    vars(main).pop("__file__", None)


def _pretend_installed() -> None:
    """Make `importlib.metadata` find a version of `cs336_basics`, which is not installed.

    The public `cs336_basics/__init__.py` asks for the version of its package. The metadata is
    written to a folder of `sys.path`, so that the child processes of a submission find it too.
    """
    folder = scratch_file(".path")
    information = folder / f"{PACKAGE}-0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 0\n")
    sys.path.append(str(folder))


def execute(name: str, file: Path) -> ModuleType:
    """Import one file as the module `name`."""
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {file.name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _import_failure(error: BaseException, submission: Submission) -> str:
    """Describe a failed import in one line: the error, and its line in the student's code."""
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
