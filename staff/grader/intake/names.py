"""What a name inside a submission may be.

A name is judged before anything is written under it, and by what it would do on any file system:
on some `A.py` and `a.py` are one file, on others `a.` and `a` are.
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
"""The names at the top that a submission is known by."""
MAX_DEPTH = 20
MAX_LENGTH = 200
"""Bytes of one name."""
_STARTUP = ("sitecustomize", "usercustomize")


def quoted(name: str) -> str:
    """A name as an error shows it: escaped, and cut where it is long."""
    shown = ascii(name) if any(map(_invisible, name)) else repr(name)
    return shown if len(shown) <= MAX_LENGTH else f"{shown[:MAX_LENGTH]}…'"


def inside(name: str, archive: str) -> str:
    """The path that a member of an archive has below the archive's top.

    Raises:
        SubmissionError: it leads out of the archive.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    climbs = path.is_absolute() or ".." in path.parts or "\0" in name
    if climbs or re.match(r"[A-Za-z]:", path.as_posix()):
        raise SubmissionError(
            f"{archive} holds {quoted(name)}, which leads out of the archive; "
            "pack the folder anew, with paths below its top"
        )
    return "" if path == PurePosixPath() else path.as_posix()


def sameness(name: str) -> str:
    """What two paths share that some file system takes for one."""
    parts = name.split("/")
    return "/".join(unicodedata.normalize("NFKC", p).casefold().rstrip(". ") for p in parts)


def flaw(path: str) -> str | None:
    """What is wrong with the path of a file to take, and what to do; None if nothing is."""
    parts = path.split("/")
    if any("\ud800" <= letter <= "\udfff" for letter in path):
        return "whose name is not UTF-8; rename it in plain letters"
    if any(map(_invisible, path)):
        return "whose name holds invisible characters; rename it in plain letters"
    if any("\\" in part for part in parts):
        return "whose name holds a backslash; rename it"
    if len(parts) > MAX_DEPTH:
        return f"which lies more than {MAX_DEPTH} folders deep; move it up"
    if any(len(part.encode()) > MAX_LENGTH for part in parts):
        return f"whose name is longer than {MAX_LENGTH} bytes; shorten it"
    if any(part != part.strip(" ").rstrip(".") for part in parts):
        return "whose name begins with a space, or ends in a space or a dot; rename it"
    modules = parts if path.endswith((".py", ".pyi")) else parts[:-1]
    for part in modules:
        if not part.isascii():
            letter = next(letter for letter in part if not letter.isascii())
            what = f"{letter!r} ({unicodedata.name(letter, 'no name')})"
            return f"whose name has the letter {what}; name modules in plain ASCII letters"
    return None


def look_alike(name: str) -> str | None:
    """The reserved name that a name at the top is easily taken for, without being it."""
    plain = unicodedata.normalize("NFKC", "".join(c for c in name if not _invisible(c)))
    if name in RESERVED or name.isascii():
        return None
    near = get_close_matches(plain.casefold(), RESERVED, n=1, cutoff=0.7)
    return near[0] if near else None


@cache
def installed(module: str) -> bool:
    """Whether a top-level module of that name comes with Python or stands beside PyTorch."""
    if module in sys.stdlib_module_names or module in _STARTUP or module == "staff":
        return True
    places = [place for place in sys.path if place and not (Path(place) / PACKAGE).is_dir()]
    return module.isidentifier() and PathFinder.find_spec(module, places) is not None


def _invisible(letter: str) -> bool:
    """Control characters, zero widths, changes of direction, surrogates, private letters."""
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
