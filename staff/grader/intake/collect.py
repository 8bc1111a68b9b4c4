"""Collect the files of a submission that a grade needs: package, adapters, imported modules."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from typing import BinaryIO

import msgspec

from staff.grader.intake.imports import imported
from staff.grader.intake.names import (
    RESERVED,
    flaw,
    installed,
    look_alike,
    quoted,
    sameness,
)
from staff.grader.intake.sources import FILE, FOLDER, Source
from tests.harness.errors import SubmissionError, printable
from tests.harness.submission import PACKAGE

MAX_BYTES = 50_000_000
"""The most bytes of all copied files together."""
MAX_FILES = 5_000
MAX_MODULE = 500_000
"""The most bytes of one module, since the grader parses it."""
MAX_MODULES = 5_000_000
"""The most bytes of all modules together."""
_MAX_LEFT_OUT = 200
_ADAPTERS = ("adapters.py", "tests/adapters.py")
_JUNK = ("__MACOSX", "__pycache__")
_PACKED = (".zip", ".tar", ".gz", ".tgz", ".xz", ".txz", ".bz2", ".7z", ".rar")
_UNNEEDED = "is not needed by the package or the adapters"


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder that was handed in and is not used."""

    name: str
    why: str
    """The reason, as the rest of a sentence that begins with the name."""
    noteworthy: bool = True
    """Whether a report lists it. Nobody expects a use for the other files, such as notes."""


def take(source: Source, folder: Path) -> tuple[tuple[str, ...], tuple[LeftOut, ...]]:
    """Copy the files that a grade needs into a folder.

    Args:
        source: the submission.
        folder: an empty folder.

    Returns:
        The paths of the copied files, and what was left out.

    Raises:
        SubmissionError: a file that a grade needs is missing or can't be copied.
    """
    collector = _Collector(source, folder)
    collector.run()
    return tuple(sorted(collector.taken)), tuple(collector.left_out())


class _Collector:
    """Copies files from a source into a folder, and keeps within the limits."""

    def __init__(self, source: Source, folder: Path) -> None:
        self._source = source
        self._folder = folder
        self._prefix = _top(source)
        self._top = source.children(self._prefix)
        self._tests = self._children("tests") if self._top.get("tests") == FOLDER else {}
        self.taken: set[str] = set()
        self._same: dict[str, str] = {}
        self._bytes = 0
        self._modules = 0
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._refused: list[LeftOut] = []

    def run(self) -> None:
        """Copy the package and the adapters, and then every module that a copied file imports."""
        self._look_at_the_top()
        public = self._top.get("adapters.py") is None
        self._take_folder(PACKAGE, everything=True)
        _make_folder(self._folder / PACKAGE)
        self._take(_ADAPTERS[public], (self._tests if public else self._top)["adapters.py"])
        if not self._top.keys() - {PACKAGE, "adapters.py"}:
            return  # the submission has no other module that could be imported
        while self._waiting:
            path, content = self._waiting.popleft()
            for module in imported(content, path):
                self._take_module(module.split("."), public)

    def left_out(self) -> list[LeftOut]:
        """List what was not copied of the submission's top folder and of its `tests/`."""
        found = list(self._refused)
        used = {PACKAGE, *(path.split("/")[0] for path in self.taken)}
        for name, what in self._top.items():
            if name not in used:
                found.append(_left_out(name, what))
        if "tests" in used:
            found += [
                _left_out(f"tests/{name}", what)
                for name, what in self._tests.items()
                if f"tests/{name}" not in self.taken
            ]
        more = len(found) - _MAX_LEFT_OUT
        if more > 0:
            found[_MAX_LEFT_OUT:] = [LeftOut(name=f"… and {more} more", why="is not used")]
        return found

    def _look_at_the_top(self) -> None:
        """Raise if this is not a submission, or if a name looks like a reserved name and is not."""
        name = self._source.name
        for entry in self._top:
            near = look_alike(entry)
            if near is not None:
                raise SubmissionError(
                    f"{name} holds {entry!a}, which looks like {near} but has other letters; "
                    "rename it in plain ASCII letters"
                )
            exact = next((r for r in RESERVED[:2] if sameness(r) == sameness(entry)), entry)
            if exact != entry:
                raise SubmissionError(f"{name} holds {quoted(entry)}; rename it to {exact}")
        if not self._top:
            raise SubmissionError(f"{name} is empty; expected {PACKAGE}/ and the adapters")
        if PACKAGE not in self._top:
            packed = [e for e in self._top if e.lower().endswith(_PACKED)]
            if packed:
                raise SubmissionError(
                    f"{name} holds another archive, {quoted(packed[0])}, and no {PACKAGE}/ folder; "
                    "hand in the inner archive"
                )
            raise SubmissionError(f"{name} has no {PACKAGE}/ folder; put the package there")
        if "adapters.py" not in self._top and "adapters.py" not in self._tests:
            raise SubmissionError(
                f"{name} has neither adapters.py nor tests/adapters.py; put the adapters in one"
            )

    def _take_module(self, names: list[str], public: bool) -> None:
        """Copy the module that an import names, if it belongs to the submission."""
        first, *rest = names
        if first in (PACKAGE, "adapters"):
            return  # copied already
        if first == "tests":
            name = f"{rest[0]}.py" if rest else ""
            if public and name in self._tests and name != "conftest.py":
                self._take(f"tests/{name}", self._tests[name])
            return
        file = f"{first}.py"
        if file not in self._top and self._top.get(first) != FOLDER:
            return
        if installed(first) or file == "conftest.py":
            return
        if first in self._top:  # as in Python, a package wins over a module of the same name
            self._take_folder(first, everything=False)
        else:
            self._take(file, self._top[file])

    def _take_folder(self, folder: str, *, everything: bool) -> None:
        """Copy a package: all its files, or only its modules."""
        what = self._top[folder] if "/" not in folder else FOLDER
        self._check(folder, what, FOLDER)
        for name, what in self._children(folder).items():
            path = f"{folder}/{name}"
            if path in self.taken:
                continue
            if name.startswith(".") or name in _JUNK or name.endswith((".pyc", ".pth")):
                if name.endswith(".pth"):
                    self._refused.append(_left_out(path, what))
            elif what == FOLDER:
                self._take_folder(path, everything=everything)
            elif everything or name.endswith(".py"):
                self._take(path, what)

    def _take(self, path: str, what: str) -> None:
        if path in self.taken:
            return
        self._check(path, what, FILE)
        content = bytearray()
        target = self._folder / path
        for above in reversed(target.relative_to(self._folder).parents[:-1]):
            _make_folder(self._folder / above)
        with _new_file(target) as file:
            for chunk in self._source.read(self._inner(path)):
                self._bytes += len(chunk)
                self._check_size(len(self.taken) + 1, self._bytes)
                file.write(chunk)
                if path.endswith(".py"):
                    content += chunk
                    self._check_module_size(path, len(content))
        self.taken.add(path)
        if path.endswith(".py"):
            self._modules += len(content)
            self._waiting.append((path, bytes(content)))

    def _check(self, path: str, what: str, expected: str) -> None:
        """Raise if an entry is not the expected kind, or if its name is bad or a duplicate."""
        name = self._source.name
        if what != expected:
            raise SubmissionError(
                f"{name}: {quoted(path)} is {what}; expected {expected}, so replace it with one"
            )
        if wrong := flaw(path if expected == FILE else f"{path}/_.py"):
            raise SubmissionError(f"{name} holds {quoted(path)}, {wrong}")
        other = self._same.setdefault(sameness(path), path)
        if other != path:
            raise SubmissionError(
                f"{name} holds {quoted(path)} and {quoted(other)}, which are the same file "
                "on some machines; rename one of them"
            )

    def _check_size(self, files: int, size: int) -> None:
        if files > MAX_FILES or size > MAX_BYTES:
            raise SubmissionError(
                f"{self._source.name} is too large: it may have at most {MAX_FILES} files and "
                f"{MAX_BYTES // 1_000_000} MB; hand in only your code"
            )

    def _check_module_size(self, path: str, size: int) -> None:
        if size > MAX_MODULE or self._modules + size > MAX_MODULES:
            raise SubmissionError(
                f"{self._source.name}: {quoted(path)} makes it too large: Python code may have at "
                f"most {MAX_MODULE // 1000} kB in one file and {MAX_MODULES // 1000} kB in all; "
                "move data into other files"
            )

    def _children(self, folder: str) -> dict[str, str]:
        return self._source.children(self._inner(folder))

    def _inner(self, path: str) -> str:
        return f"{self._prefix}/{path}" if self._prefix else path


def _top(source: Source) -> str:
    """Return the folder that holds the package: "" for the top, or the only folder in it."""
    children = source.children("")
    inner = [n for n, what in children.items() if what == FOLDER and n not in _JUNK]
    visible = [name for name in inner if not name.startswith(".")]
    if PACKAGE not in children and len(visible) == 1 and look_alike(visible[0]) is None:
        return visible[0] if sameness(visible[0]) != PACKAGE else ""
    return ""


def _left_out(name: str, what: str) -> LeftOut:
    """Make the entry for a file or folder that is not used, with the reason."""
    last = name.rpartition("/")[2]
    stem = last.removesuffix(".py")
    why = _UNNEEDED
    if last.endswith(".pth") or stem in ("sitecustomize", "usercustomize"):
        why = "would run at Python's start"
    elif (last.endswith(".py") or what == FOLDER) and "/" not in name and installed(stem):
        why = f"has the name of the installed module {stem}"
    elif stem == "conftest" or stem.startswith("test_"):
        why = "is a test, and the grader brings its own"
    elif last in ("pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini", ".coveragerc"):
        why = "is configuration, and the grader brings its own"
    elif what not in (FILE, FOLDER):
        why = f"is {what}"
    shown = printable(name) + ("/" if what == FOLDER else "")
    return LeftOut(name=shown, why=why, noteworthy=why != _UNNEEDED)


def _make_folder(folder: Path) -> None:
    """Make a folder that every user can enter, whatever the umask."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)


def _new_file(path: Path) -> BinaryIO:
    """Open a file that must not exist yet and that every user can read, whatever the umask."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(path, flags, 0o644)
    os.fchmod(fd, 0o644)
    return os.fdopen(fd, "wb")
