"""The rubric: `assignment.toml` as typed data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

from tests.harness.errors import RubricError

RUBRIC_FILE = Path(__file__).parents[1] / "assignment.toml"


Visibility = Literal["visible", "hidden", "after_due_date", "after_published"]
"""The time at which a student may see a task's result, in Gradescope's terms."""


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the assignment, such as "The model"."""

    number: int
    title: str
    bonus: bool = False
    """Whether its points are bonus points: they are shown apart, and full marks don't need them."""

    @property
    def heading(self) -> str:
        """The heading of the part in a table."""
        return f"Part {self.number} · {self.title}{' (bonus)' if self.bonus else ''}"


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The resources that a submission may use."""

    suite_seconds: float
    """The wall time for the whole suite on one submission."""


class Scratch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The library names that a submission may not use, since it must implement them itself.

    A pattern is a dotted name. It matches that name and every name below it; with `.*` at its
    end, it matches only the names below. If several patterns match a name, the longest decides.
    A name that no pattern matches is allowed.
    """

    forbidden: tuple[str, ...] = ()
    """Patterns of forbidden names."""
    allowed: tuple[str, ...] = ()
    """Patterns of allowed names."""
    backdoors: tuple[str, ...] = ()
    """Names that give access to everything else; their use is reported and costs no points."""
    tasks: dict[str, tuple[str, ...]] = {}
    """The ids of the tasks that a forbidden name would solve, by pattern.

    They are used if the file does not show which task uses the name.
    """

    def __hash__(self) -> int:
        return hash((self.forbidden, self.allowed, self.backdoors))

    def forbids(self, name: str) -> bool:
        """Return whether a name is forbidden."""
        return _longest(self.forbidden, name) > _longest(self.allowed, name)

    def backdoor(self, name: str) -> str | None:
        """Return the backdoor that a name belongs to; None if there is none."""
        return next((door for door in self.backdoors if covers(door, name)), None)

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the forbidden tensor methods."""
        start = "torch.Tensor."
        return tuple(name.removeprefix(start) for name in self.forbidden if name.startswith(start))


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task: the smallest unit that gets points."""

    id: str
    title: str
    part: int
    points: float
    handout: str
    """The number of the handout's section, such as `2.3`."""
    requires: tuple[str, ...]
    """The ids of the tasks whose code this one calls."""
    adapters: tuple[str, ...]
    """The names of the task's adapters."""
    symbols: tuple[str, ...]
    """The names that the student implements, as `package.module:Name`."""
    tests: tuple[str, ...]
    """The names of the test functions; those that count share the points equally."""
    visibility: Visibility = "visible"

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the symbols, as paths relative to the submission's root."""
        modules = dict.fromkeys(symbol.partition(":")[0] for symbol in self.symbols)
        return tuple(module.replace(".", "/") + ".py" for module in modules)

    @property
    def stem(self) -> str:
        """The common name of the task's files: the name of the module of its first symbol."""
        return self.symbols[0].partition(":")[0].rpartition(".")[2]


class Rubric(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """The whole rubric."""

    title: str
    limits: Limits
    parts: tuple[Part, ...]
    tasks: tuple[Task, ...]
    scratch: Scratch = Scratch()

    @cached_property
    def by_id(self) -> dict[str, Task]:
        """The tasks by id."""
        return {task.id: task for task in self.tasks}

    @cached_property
    def bonus(self) -> frozenset[str]:
        """The ids of the tasks whose points are bonus points."""
        parts = {part.number for part in self.parts if part.bonus}
        return frozenset(task.id for task in self.tasks if task.part in parts)

    def task(self, task_id: str) -> Task:
        """Find a task by its id.

        Raises:
            RubricError: no task has that id; the text names the most similar one.
        """
        if task_id in self.by_id:
            return self.by_id[task_id]
        near = get_close_matches(task_id, self.by_id, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(self.by_id)}"
        raise RubricError(f"no task is called {task_id!r}; {hint}")

    def owners(self, file: str, function: str) -> list[Task]:
        """Find the tasks that a function of the package belongs to: those that list its symbol.

        Args:
            file: the path of its file, relative to the submission's root.
            function: its qualified name, such as `Class.method`.
        """
        module = file.removesuffix(".py").replace("/", ".")
        symbol = f"{module}:{function.partition('.')[0]}"
        return [task for task in self.tasks if symbol in task.symbols]

    def required_by(self, task_id: str) -> tuple[str, ...]:
        """Find the tasks that a task calls, directly or not, in the order of the rubric."""
        needed: set[str] = set()
        for task in reversed(self.tasks):
            if task.id == task_id or task.id in needed:
                needed.update(task.requires)
        return tuple(task.id for task in self.tasks if task.id in needed)

    def reached_from(self, task_id: str) -> tuple[str, ...]:
        """Find the tasks that call a task, directly or not, and the task itself."""
        return tuple(
            task.id
            for task in self.tasks
            if task.id == task_id or task_id in self.required_by(task.id)
        )


def covers(pattern: str, name: str) -> bool:
    """Return whether a pattern of `Scratch` matches a dotted name."""
    base = pattern.removesuffix(".*")
    return name.startswith(f"{base}.") or (name == base and pattern == base)


def _longest(patterns: tuple[str, ...], name: str) -> int:
    return max((len(p.removesuffix(".*")) for p in patterns if covers(p, name)), default=-1)


def read_rubric(file: Path = RUBRIC_FILE) -> Rubric:
    """Read and check the rubric.

    Raises:
        RubricError: the file is missing, is not valid TOML, has unknown or missing fields,
            names a task or test twice, names a part or prerequisite that doesn't exist, or lets
            a task without bonus points require a bonus task.
    """
    try:
        rubric = msgspec.toml.decode(file.read_bytes(), type=Rubric)
    except OSError as error:
        raise RubricError(f"cannot read the rubric {file}: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RubricError(f"{file.name} is not a rubric: {error}") from error
    _check(rubric)
    return rubric


def _check(rubric: Rubric) -> None:
    _unique("task", (task.id for task in rubric.tasks))
    _unique("test", (f"{task.id}: {test}" for task in rubric.tasks for test in task.tests))
    parts = {part.number for part in rubric.parts}
    seen: set[str] = set()
    for task in rubric.tasks:
        if task.part not in parts:
            raise RubricError(f"task {task.id!r} belongs to part {task.part}, which has no title")
        for required in task.requires:
            if required not in seen:
                raise RubricError(f"task {task.id!r} requires {required!r}, which is not above it")
            if required in rubric.bonus and task.id not in rubric.bonus:
                raise RubricError(f"task {task.id!r} requires {required!r}, which is a bonus")
        seen.add(task.id)
    for pattern, names in rubric.scratch.tasks.items():
        for name in names:
            if name not in seen:
                raise RubricError(f"scratch.tasks: {pattern!r} names {name!r}, which is no task")


def _unique(what: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise RubricError(f"the rubric lists the {what} {name!r} {count} times, expected once")
