"""A task's files share one name, its stem, and nothing is looked up in another way."""

import ast
from pathlib import Path

import pytest

from staff.fixtures import inputs, oracle
from staff.fixtures.draft import BuildError, Stored, drafts_of
from staff.fixtures.inputs import CaseInput, all_cases
from staff.paths import ROOT, SOLUTION, TESTS
from staff.tests.support import clean_imports
from tests.harness.in_process import InProcess
from tests.harness.rubric import read_rubric
from tests.harness.submission import locate

TASKS = {task.id: task for task in read_rubric().tasks}
STEMS = {task.stem for task in TASKS.values()}
SAVED = {TASKS[case.task].stem for case in all_cases("2026")}
"""The stems that have saved cases."""
INPUTS = Path(inputs.__file__).parent
ORACLE = Path(oracle.__file__).parent
INPUT_HELPERS = {"__init__", "draw"}
ORACLE_HELPERS = {"__init__", "accepted", "pretokenization"}


def modules(folder: Path, pattern: str = "*.py") -> set[str]:
    """The names of the Python files in a folder."""
    return {file.stem for file in folder.glob(pattern)}


def test_the_stem_is_the_module_of_the_first_symbol() -> None:
    """Catches a rubric that lists a helper of a task before the task's own module."""
    shared = {"silu": "feed_forward", "get_batch": "batches", "multihead_attention": "attention"}
    assert {task: TASKS[task].stem for task in shared} == shared
    assert TASKS["train_bpe"].stem == "train_bpe"


def test_a_module_of_the_package_belongs_to_a_task() -> None:
    """Catches a module of the solution or the stubs that no task of the rubric names."""
    named = {Path(file).stem for task in TASKS.values() for file in task.files} | {"__init__"}
    assert named >= STEMS
    assert modules(SOLUTION / "cs336_basics") == named
    assert modules(ROOT / "cs336_basics") == named


def test_each_stem_has_one_file_of_tests() -> None:
    """Catches a file of tests that is named by a topic, and a test that is in another's file."""
    assert modules(TESTS, "test_*.py") == {f"test_{stem}" for stem in STEMS}
    for task in TASKS.values():
        tree = ast.parse((TESTS / f"test_{task.stem}.py").read_text("utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert set(task.tests) <= functions, task.id


def test_each_stem_with_saved_cases_has_inputs() -> None:
    """Catches inputs in a file of another stem, and a file whose cases are never drawn."""
    assert modules(INPUTS) == SAVED | INPUT_HELPERS
    assert inputs.CASES.keys() == SAVED
    for stem, cases in inputs.CASES.items():
        assert cases.__module__ == f"{inputs.__name__}.{stem}"
        drawn = {TASKS[case.task].stem for case in cases(inputs.ExactDraw("a seed"))}
        assert drawn == {stem}


def test_each_stem_with_saved_cases_has_an_oracle() -> None:
    """Catches an answer in a file of another stem, and one that no case asks for."""
    assert modules(ORACLE) == SAVED | ORACLE_HELPERS
    asked = set()
    for case in all_cases("2026"):
        name = case.arguments["adapter"] if case.adapter == "part" else case.adapter
        home = f"{oracle.__name__}.{TASKS[case.task].stem}"
        assert oracle.ANSWERS[name].__module__ == home, name
        asked |= {name, case.adapter}
    assert oracle.ANSWERS.keys() == asked


@pytest.mark.parametrize(
    ("adapter", "arguments"), [("run_x", {}), ("part", {"adapter": "run_x", "index": 0})]
)
def test_a_missing_answer_is_one_line(adapter: str, arguments: dict[str, object]) -> None:
    """Catches a traceback where a case is added before its answer."""
    case = CaseInput("swiglu", "test_swiglu_module", "a case", adapter, arguments)
    with clean_imports(), pytest.raises(BuildError) as caught:
        drafts_of([case], Stored(), ["swiglu"], InProcess(locate(SOLUTION)))
    assert str(caught.value) == (
        "swiglu · test_swiglu_module · a case: the oracle has no function for run_x; write one in "
        "staff/fixtures/oracle/feed_forward.py and list it in staff/fixtures/oracle/__init__.py"
    )
