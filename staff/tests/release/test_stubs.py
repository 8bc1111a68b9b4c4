"""The stubs: the solution without its answers, and every other byte as it was."""

import ast
import builtins
import subprocess
import sys
from pathlib import Path

import pytest

from staff.paths import ROOT, SOLUTION
from staff.release.stubs import cut, out_of_step, write
from tests.harness.rubric import read_rubric

RUBRIC = read_rubric()
STUBS = cut(SOLUTION, RUBRIC)
WHOLE = {name: (SOLUTION / name).read_text("utf-8") for name in STUBS}
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def functions(text: str) -> dict[str, ast.FunctionDef]:
    """Every function and method of a file, under its name."""
    found = {}
    for node in ast.parse(text).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        found |= {f"{prefix}{f.name}": f for f in inner if isinstance(f, FUNCTION)}
    return found


def without_body(node: ast.stmt) -> str:
    """Signature, decorators and docstring of a function."""
    docstring = node.body[:1] if ast.get_docstring(node) else [ast.Pass()]
    kept = ast.FunctionDef(node.name, node.args, docstring, node.decorator_list, node.returns)
    return ast.unparse(ast.fix_missing_locations(kept))


def is_stub(node: ast.stmt) -> bool:
    """Whether all that a function does is to raise NotImplementedError."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return len(body) == 1 and ast.unparse(body[0]).startswith("raise NotImplementedError('")


def test_the_committed_stubs_are_those_of_the_solution() -> None:
    """Catches stubs that were edited by hand, or left behind when the solution moved on."""
    assert out_of_step(STUBS, ROOT) == []


@pytest.mark.parametrize("name", STUBS)
def test_nothing_but_signatures_and_docstrings(name) -> None:
    """Catches an answer that slips through, or a contract that is lost with the body."""
    stubs, whole = functions(STUBS[name]), functions(WHOLE[name])
    whole = {n: f for n, f in whole.items() if not n.startswith("_")}
    public = {n: f for n, f in whole.items() if not n.rpartition(".")[2].startswith("_")}
    inits = {n: f for n, f in whole.items() if n.endswith("__")}
    assert stubs.keys() == (public | inits).keys()
    assert all(is_stub(node) for node in stubs.values())
    assert {n: without_body(f) for n, f in stubs.items()} == {
        n: without_body(whole[n]) for n in stubs
    }
    assert ast.get_docstring(ast.parse(STUBS[name])) == ast.get_docstring(ast.parse(WHOLE[name]))


def test_a_stub_names_its_task() -> None:
    """Catches an error that sends the student to another task or section."""
    for task in RUBRIC.tasks:
        error = f'raise NotImplementedError("{task.id}: handout §{task.handout}")'
        adapter = functions(STUBS["adapters.py"])[task.adapters[0]]
        assert error.replace('"', "'") in ast.unparse(adapter)
    assert STUBS["cs336_basics/rope.py"].count('("rope: handout §2.6")') == 2


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_the_stubs_are_as_tidy_as_the_solution(command) -> None:
    """Catches unused imports and gaps that removed code leaves behind."""
    files = [str(ROOT / name) for name in STUBS]
    ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", *files]
    done = subprocess.run(ruff, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("task", RUBRIC.tasks, ids=lambda task: task.id)
def test_one_task_is_cut_and_the_others_stay(task) -> None:
    """Catches a cut that takes code of other tasks along, or a helper that they still call."""
    partial = cut(SOLUTION, RUBRIC, [task.id])
    cut_names = {s.partition(":")[2] for s in task.symbols} | set(task.adapters)
    for name, text in partial.items():
        found = functions(text)
        for function, node in functions(WHOLE[name]).items():
            owner, _, method = function.partition(".")
            if function not in found:
                assert (method or owner).startswith("_") or owner.startswith("_"), function
            elif owner in cut_names:
                assert is_stub(found[function]), function
            else:
                assert ast.unparse(found[function]) == ast.unparse(node), function
        assert undefined(text) <= undefined(WHOLE[name])


def undefined(text: str) -> set[str]:
    """Names that a file reads and neither binds anywhere nor finds among the builtins."""
    nodes = list(ast.walk(ast.parse(text)))
    read = {n.id for n in nodes if isinstance(n, ast.Name)}
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    bound |= {n.name for n in nodes if isinstance(n, ast.ClassDef | FUNCTION)}
    bound |= {(n.asname or n.name).partition(".")[0] for n in nodes if isinstance(n, ast.alias)}
    return read - bound - set(dir(builtins))


def test_check_detects_any_change(tmp_path: Path) -> None:
    """Catches a comparison that skips a changed, a missing or a superfluous file."""
    write(STUBS, tmp_path)
    assert out_of_step(STUBS, tmp_path) == []
    changed, missing, extra = (tmp_path / f"cs336_basics/{n}.py" for n in ("rope", "linear", "x"))
    changed.write_text(changed.read_text("utf-8") + "\n", "utf-8")
    missing.unlink()
    extra.write_text("")
    names = [f"cs336_basics/{n}.py" for n in ("linear", "rope", "x")]
    assert out_of_step(STUBS, tmp_path) == names
