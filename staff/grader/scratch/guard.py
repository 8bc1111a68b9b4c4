"""The guard notes the calls of forbidden functions that a submission makes while it runs.

It runs in the process of the submission, and is installed before the submission is imported:

    guard = Guard(rules)
    guard.install()            # once, in a process that forks, before it forks
    guard.watch(root)          # the folder of the submission
    ... import the submission ...
    guard.task = "softmax"     # before the calls of each test
    guard.found()              # plain data: a list of dictionaries

The guard replaces each forbidden function, method and constructor by one that looks at its caller
and then makes the call, so that results don't change. A call from a file of the submission is noted
under the function's own name, whatever alias the submission uses. A call from PyTorch itself is not
noted.
The submission shares the process and could remove the guard, so a lack of notes proves nothing.

A `TorchDispatchMode` would note every operator and so miss less. But with one, the suite on the
solution takes 2.4 times the CPU time, and with this guard 1.1 times.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

from staff.grader.scratch.rules import Binding, bindings
from tests.harness.rubric import Scratch

_MAX_NOTES = 1_000
_frame = sys._getframe  # noqa: SLF001 - `inspect` only returns the current frame
_METHODS = ("__init__", "forward", "step")
"""The methods of a class that are watched, as far as the class has them."""


class Guard:
    """Notes the calls of forbidden functions that a submission makes.

    Args:
        rules: what is forbidden.
    """

    def __init__(self, rules: Scratch) -> None:
        self.task: str | None = None
        """The task whose tests run now; None while the submission is imported."""
        self._rules = rules
        self._root = "\0"
        self._notes: dict[tuple[str | None, str, str, int], str] = {}
        self._replaced: list[tuple[Any, str, Any, bool]] = []
        self._finder = _Finder(self, rules)

    def watch(self, root: Path) -> None:
        """Begin to note calls from code in files below `root`."""
        self._root = f"{root.resolve()}{os.sep}"

    def install(self) -> None:
        """Replace the forbidden functions, methods and constructors by watched ones."""
        import torch
        from torch._ops import OpOverload, OpOverloadPacket

        self._compiling: Callable[[], bool] = torch.compiler.is_compiling
        made: dict[int, Any] = {}
        for binding in list(bindings(self._rules)):
            if isinstance(binding.value, type):
                constructor = inspect.getattr_static(binding.value, "__init__")
                if id(binding.value) not in made and isinstance(constructor, FunctionType):
                    made[id(binding.value)] = binding.value
                    self._watch_class(binding)
            else:
                if id(binding.value) not in made:
                    made[id(binding.value)] = self._watched(binding)
                self._replace(binding.holder, binding.attribute, made[id(binding.value)])
        for kind in (OpOverload, OpOverloadPacket):
            self._replace(kind, "__call__", self._watched_operator(kind.__call__))
        sys.meta_path.insert(0, self._finder)

    def remove(self) -> None:
        """Restore everything that `install` has replaced."""
        for holder, attribute, value, own in reversed(self._replaced):
            if own:
                setattr(holder, attribute, value)
            else:
                delattr(holder, attribute)
        self._replaced.clear()
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)

    def found(self) -> list[dict[str, Any]]:
        """Return the notes, each with the keys `task`, `name`, `file`, `line` and `how`.

        `file` is relative to the submission's folder. `how` is `called`, or `dodge` for a call
        through PyTorch's internal operators (`torch.ops`).
        """
        return [
            {"task": task, "name": name, "file": file, "line": line, "how": how}
            for (task, name, file, line), how in self._notes.items()
        ]

    def note(self, frame: FrameType | None, name: str, how: str = "called") -> bool:
        """Note a call if it comes from a file of the submission.

        Code without a file, such as code that `exec` runs, belongs to the file that runs it.

        Args:
            frame: the frame that makes the call.
            name: the forbidden name.
            how: `called` or `dodge`.

        Returns:
            Whether the call comes from a file of the submission.
        """
        while frame is not None and frame.f_code.co_filename.startswith("<"):
            frame = frame.f_back
        if frame is not None and frame.f_code.co_filename.startswith(self._root):
            self._write(name, frame.f_code.co_filename, frame.f_lineno, how)
            return True
        return False

    def _write(self, name: str, file: str, line: int, how: str) -> None:
        if len(self._notes) < _MAX_NOTES:
            relative = file[len(self._root) :].replace(os.sep, "/")
            self._notes.setdefault((self.task, name, relative, line), how)

    def _replace(self, holder: Any, attribute: str, value: Any) -> None:
        own = attribute in vars(holder)
        self._replaced.append((holder, attribute, vars(holder).get(attribute), own))
        setattr(holder, attribute, value)

    def _watched(self, binding: Binding) -> Callable[..., Any]:
        watched = self._noting(binding.value, binding.name)
        if isinstance(binding.holder, ModuleType):  # so that it can be pickled by its name
            watched.__module__ = binding.holder.__name__
            watched.__qualname__ = binding.attribute
        return watched

    def _noting(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        compiling, note, frame_of = self._compiling, self.note, _frame

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if not compiling():  # the compiler can't trace frames; `static` reads the code
                note(frame_of(1), name)
            return function(*args, **kwargs)

        return watched

    def _watch_class(self, binding: Binding) -> None:
        cls = binding.value
        for method in _METHODS:
            if method == "__init__":
                watched = self._constructor(cls.__init__, binding.name)
            elif method in vars(cls):
                watched = self._noting(vars(cls)[method], binding.name)
            else:
                continue
            self._replace(cls, method, watched)

    def _constructor(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Watch a constructor; note a subclass of the submission even if others make an object."""
        compiling, note, frame_of = self._compiling, self.note, _frame

        @functools.wraps(function)
        def watched(self_: Any, /, *args: Any, **kwargs: Any) -> None:
            if not compiling():
                own = type(self_).__module__.partition(".")[0] == "torch"
                if not note(frame_of(1), name) and not own:
                    self._note_subclass(type(self_), name)
            function(self_, *args, **kwargs)

        return watched

    def _note_subclass(self, cls: type, name: str) -> None:
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        if isinstance(file, str) and file.startswith(self._root):
            codes = [getattr(value, "__code__", None) for value in vars(cls).values()]
            lines = [code.co_firstlineno for code in codes if code is not None]
            self._write(name, file, min(lines, default=1), "called")

    def _watched_operator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        note, frame_of = self.note, _frame

        @functools.wraps(function)
        def watched(self_: Any, /, *args: Any, **kwargs: Any) -> Any:
            caller = frame_of(1)
            if caller.f_code.co_filename.startswith((self._root, "<")):
                note(caller, f"torch.ops.{self_}", "dodge")
            return function(self_, *args, **kwargs)

        return watched


class _Finder(MetaPathFinder):
    """An import finder that finds nothing, but notes who imports a forbidden module."""

    def __init__(self, guard: Guard, rules: Scratch) -> None:
        self._guard = guard
        self._rules = rules

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Note a forbidden import, and leave the search to the other finders."""
        if self._rules.forbids(fullname):
            self._guard.note(_frame(1), fullname)
