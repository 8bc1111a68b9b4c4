"""The rubric: what its reader refuses, and that it names what there is."""

import ast
import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

import adapters
from staff.paths import SOLUTION, TESTS
from tests.harness.errors import RubricError
from tests.harness.rubric import read_rubric

Write = Callable[[str], Path]
RUBRIC = """
title = "Small"
limits = { suite_seconds = 10 }
parts = [{ number = 1, title = "The part" }]

[[tasks]]
id = "one"
title = "One"
part = 1
points = 2
handout = "2.1"
requires = []
adapters = ["run_one"]
symbols = ["package.module:One", "package.module:two", "package.other:three"]
tests = ["test_a", "test_b"]
"""
TASK = RUBRIC[RUBRIC.index("[[tasks]]") :]
SECOND = TASK.replace('"one"', '"two"')
REFUSED = {
    "unknown field": (
        RUBRIC + "point = 1",
        "is not a rubric: Object contains unknown field `point`",
    ),
    "missing field": (RUBRIC.replace("points = 2", ""), "missing required field `points`"),
    "wrong type": (RUBRIC.replace("= 2", '= "2"'), r"Expected `float`, got `str` .*points"),
    "unknown visibility": (RUBRIC + 'visibility = "secret"', "Invalid enum value 'secret'"),
    "no TOML": (RUBRIC + "[[", "^assignment.toml is not a rubric: "),
    "task twice": (RUBRIC + TASK, "^the rubric lists the task 'one' 2 times, expected once$"),
    "test twice": (RUBRIC.replace("test_b", "test_a"), "lists the test 'one: test_a' 2 times"),
    "no such part": (
        RUBRIC.replace("part = 1", "part = 2"),
        "'one' belongs to part 2, which has no",
    ),
    "unknown prerequisite": (
        RUBRIC.replace("[]", '["zero"]'),
        "'one' requires 'zero', which is not",
    ),
    "requires itself": (
        RUBRIC.replace("[]", '["one"]'),
        "'one' requires 'one', which is not above",
    ),
    "no such task of a name": (
        RUBRIC.replace("[[parts]]", "") + "[scratch.tasks]\n'torch.nn.Linear' = ['linear']",
        "^scratch.tasks: 'torch.nn.Linear' names 'linear', which is no task$",
    ),
    "requires a later task": (RUBRIC.replace("[]", '["two"]') + SECOND, "'one' requires 'two', wh"),
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a rubric and give its path."""

    def write_text(text: str) -> Path:
        file = tmp_path / "assignment.toml"
        file.write_text(text, "utf-8")
        return file

    return write_text


def test_a_rubric_is_read(write: Write) -> None:
    """Catches fields that are lost, and files of symbols named twice or in another order."""
    rubric = read_rubric(write(RUBRIC + SECOND.replace("requires = []", 'requires = ["one"]')))
    assert [task.id for task in rubric.tasks] == ["one", "two"]
    assert rubric.task("two").requires == ("one",)
    assert rubric.task("one").files == ("package/module.py", "package/other.py")
    assert rubric.limits.suite_seconds == 10


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(write: Write, what: str) -> None:
    """Catches a slip in the rubric that goes unnoticed, and an error that doesn't name it."""
    text, error = REFUSED[what]
    with pytest.raises(RubricError, match=error) as caught:
        read_rubric(write(text))
    assert "\n" not in str(caught.value)


def test_missing_or_unreadable_file(tmp_path: Path) -> None:
    """Catches a traceback in place of one line when the file is gone or is no text."""
    file = tmp_path / "assignment.toml"
    with pytest.raises(RubricError, match=f"^cannot read the rubric {file}: No such file"):
        read_rubric(file)
    file.write_bytes(b"title = '\xff'")
    with pytest.raises(RubricError, match=r"^assignment.toml is not a rubric: .*utf-?8"):
        read_rubric(file)


def test_the_nearest_name_is_offered() -> None:
    """Catches a typing slip that is answered with no help, or with a far-fetched name."""
    rubric = read_rubric()
    with pytest.raises(RubricError, match=r"^no task is called 'ropee'; did you mean 'rope'\?$"):
        rubric.task("ropee")
    with pytest.raises(RubricError, match=r"^no task is called 'xyz'; there are: linear, embed"):
        rubric.task("xyz")


def test_points_of_the_model_sum_to_thirty() -> None:
    """Catches points that change without anybody deciding it."""
    assert sum(task.points for task in read_rubric().tasks if task.part == 1) == 30


def test_every_graded_test_is_listed() -> None:
    """Catches a test that counts for nothing, and a listed one that can never be passed."""
    found = set()
    for file in TESTS.glob("test_*.py"):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found.add((*_marks(node, "task"), node.name))
    listed = {(task.id, test) for task in read_rubric().tasks for test in task.tests}
    assert found == listed


def test_what_needs_a_name_of_ours_is_marked_so() -> None:
    """Catches a test that costs a public submission points for names it never promised."""
    unmarked = [
        node.name
        for file in TESTS.glob("test_*.py")
        for node in ast.parse(file.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and "symbol=" in ast.unparse(node)
        and node.name.startswith("test_")
        and not any(isinstance(d, ast.Name) and d.id == "ours" for d in node.decorator_list)
    ]
    assert unmarked == []


def test_the_solution_has_all_that_the_rubric_names() -> None:
    """Catches a symbol or adapter that a student would be asked for and nobody can write."""
    for task in read_rubric().tasks:
        assert all(hasattr(adapters, name) for name in task.adapters), task.id
        assert all((SOLUTION / file).is_file() for file in task.files), task.id
        for symbol in task.symbols:
            module, _, name = symbol.partition(":")
            assert hasattr(importlib.import_module(module), name), symbol


def _marks(node: ast.FunctionDef, name: str) -> list[str]:
    return [
        ast.literal_eval(call.args[0])
        for call in node.decorator_list
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name
    ]
