"""Annotations: a failed call is repeated with checks of the student's own type annotations.

An exception from inside PyTorch names two shapes that don't fit. A violated annotation names the
function, the argument and the axis as well. So a call that raised is repeated on a second copy of
the submission, in which jaxtyping and beartype check the annotations. The message quotes a
violation. Annotations never decide a point.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from tests.harness.loading import execute
from tests.harness.submission import PACKAGE, Submission

_WHERE = re.compile(r"whilst checking the (parameters|return value) of ([\w.]+)")
_ARGUMENT = re.compile(r"typechecking parameter '(\w+)'")
_ACTUAL = re.compile(r"Actual value: (.+?)(?:\(torch\))?$", re.M)
_EXPECTED = re.compile(r"Expected type: (?:<class ')?(.+?\])(?:'>)?\.$", re.M)
_AXES = re.compile(r"follows\.\n((?:\w+=\d+\s*)+)")


class Annotated:
    """A copy of the submission that checks its annotations.

    The copy is imported when it is first needed.
    """

    def __init__(self, submission: Submission) -> None:
        self._submission = submission
        self._adapters: ModuleType | None = None

    def complaint(self, adapter: str, arguments: Mapping[str, Any]) -> str:
        """Call an adapter and describe the first violation of an annotation in one line.

        Returns:
            "" if no annotation is violated.
        """
        from jaxtyping import TypeCheckError

        try:
            function: Callable[..., Any] = getattr(self._imported(), adapter)
            function(**arguments)
        except TypeCheckError as error:
            return _one_line(str(error))
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - the first call raised too
            return ""
        return ""

    def _imported(self) -> ModuleType:
        if self._adapters is None:
            from jaxtyping import install_import_hook

            name = "adapters" if self._submission.layout == "ours" else "tests.adapters"
            mine = [m for m in sys.modules if m == name or m.partition(".")[0] == PACKAGE]
            first = {module: sys.modules.pop(module) for module in mine}
            try:
                with install_import_hook(PACKAGE, f"{__name__}.checked"):
                    self._adapters = execute(name, self._submission.adapters_file)
            finally:
                sys.modules.update(first)
        return self._adapters


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that checks its annotations, or the same one if beartype can't do that."""
    from beartype import beartype

    try:
        return beartype(function)
    except Exception:  # noqa: BLE001 - for example, `Self` outside a class or an undefined name
        return function


def _one_line(text: str) -> str:
    """Shorten jaxtyping's report to the function, the argument, its value and its annotation."""
    where, actual, expected = _WHERE.search(text), _ACTUAL.search(text), _EXPECTED.search(text)
    if where is None or actual is None or expected is None:
        return ""
    function = ".".join(part for part in where[2].split(".") if part != PACKAGE)
    argument = _ARGUMENT.search(text)
    got = f"got {argument[1]} = {actual[1]}" if argument else f"returned {actual[1]}"
    axes = _AXES.search(text)
    sizes = f" with {', '.join(axes[1].split())}" if axes else ""
    return f"annotations: {function} {got}, annotated as {expected[1]}{sizes}"
