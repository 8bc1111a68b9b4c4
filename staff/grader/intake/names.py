"""Rules for the names of files inside a submission.

A name is checked before a file with that name is written. It must be safe on every file system: on
some, `A.py` and `a.py` are the same file, and on others, `a.` and `a` are.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from difflib import get_close_matches
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path, PurePosixPath

from tests.harness.errors import SubmissionError
from tests.harness.submission import PACKAGE

RESERVED = (PACKAGE, "adapters.py", "tests")
"""The names at the top of a submission that have a meaning for the grader."""
MAX_DEPTH = 20
"""The most names in one path."""
MAX_LENGTH = 200
"""The most bytes of one name."""
_STARTUP = ("sitecustomize", "usercustomize")


def quoted(name: str) -> str:
    """Return a name as a message shows it: quoted, escaped, and cut if it is long."""
    shown = ascii(name) if any(map(_invisible, name)) else repr(name)
    return shown if len(shown) <= MAX_LENGTH else f"{shown[:MAX_LENGTH]}…'"


def inside(name: str, archive: str) -> str:
    """Return the path of a member of an archive, relative to the archive's top.

    Raises:
        SubmissionError: the path leads out of the archive.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    leads_out = path.is_absolute() or ".." in path.parts or "\0" in name
    if leads_out or re.match(r"[A-Za-z]:", path.as_posix()):
        raise SubmissionError(
            f"{archive} holds {quoted(name)}, which leads out of the archive; "
            "pack the folder again, with relative paths"
        )
    return "" if path == PurePosixPath() else path.as_posix()


def sameness(name: str) -> str:
    """Return a key that is equal for two paths if some file system treats them as the same path."""
    steps = name.split("/")
    return "/".join(unicodedata.normalize("NFKC", s).casefold().rstrip(". ") for s in steps)


def flaw(path: str) -> str | None:
    """Return what is wrong with the path of a file and what to do about it, or None."""
    steps = path.split("/")
    if any("\ud800" <= letter <= "\udfff" for letter in path):
        return "whose name is not UTF-8; rename it in plain letters"
    if any(map(_invisible, path)):
        return "whose name holds invisible characters; rename it in plain letters"
    if any("\\" in step for step in steps):
        return "whose name holds a backslash; rename it"
    if len(steps) > MAX_DEPTH:
        return f"which is more than {MAX_DEPTH} folders deep; move it up"
    if any(len(step.encode()) > MAX_LENGTH for step in steps):
        return f"whose name is longer than {MAX_LENGTH} bytes; shorten it"
    if any(step != step.strip(" ").rstrip(".") for step in steps):
        return "whose name begins with a space, or ends in a space or a dot; rename it"
    modules = steps if path.endswith((".py", ".pyi")) else steps[:-1]
    for module in modules:
        if not module.isascii():
            letter = next(letter for letter in module if not letter.isascii())
            what = f"{letter!r} ({unicodedata.name(letter, 'no name')})"
            return f"whose name has the letter {what}; name modules in plain ASCII letters"
    return None


def look_alike(name: str) -> str | None:
    """Return the reserved name that a name at the top looks like without being equal, or None."""
    plain = unicodedata.normalize("NFKC", "".join(c for c in name if not _invisible(c)))
    if name in RESERVED or name.isascii():
        return None
    near = get_close_matches(plain.casefold(), RESERVED, n=1, cutoff=0.7)
    return near[0] if near else None


@cache
def installed(module: str) -> bool:
    """Whether Python or an installed package already has a top-level module of this name."""
    if module in sys.stdlib_module_names or module in _STARTUP or module == "staff":
        return True
    folders = [folder for folder in sys.path if folder and not (Path(folder) / PACKAGE).is_dir()]
    return module.isidentifier() and PathFinder.find_spec(module, folders) is not None


def _invisible(letter: str) -> bool:
    """Whether a character is invisible: control, format, surrogate, private or unassigned."""
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
