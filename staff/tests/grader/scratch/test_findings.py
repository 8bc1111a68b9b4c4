"""Findings of ready-made code: which tasks a finding concerns, and which points it costs."""

from pathlib import Path
from typing import get_args

from staff.catalogue.patches import patched
from staff.grader.grade import Grade, read_grade, write_grade
from staff.grader.intake import LeftOut, opened
from staff.grader.run import Grading
from staff.grader.sandbox import choose
from staff.grader.scratch.findings import enforced, findings
from staff.grader.scratch.model import Call, Policy, ScratchFinding
from staff.paths import SOLUTION
from staff.reports.notes import notes
from staff.runner.jobs import SuiteRun
from staff.tests.support import small_rubric, submission, suite_result, task_result
from tests.harness.fixtures import FIXTURES
from tests.harness.results import State
from tests.harness.rubric import read_rubric

RUBRIC = read_rubric()


def test_the_task_of_a_place(tmp_path: Path) -> None:
    """Catches a finding that is assigned to a task to which its code does not belong."""
    patched([], SOLUTION, tmp_path / "s")
    file = tmp_path / "s/cs336_basics/attention.py"
    text = file.read_text().replace("0.0, softmax(", "0.0, torch.softmax(")
    helper = "\n\ndef _helper(x):\n    return torch.nn.functional.silu(x)\n"
    file.write_text(text + helper)
    adapters = (tmp_path / "s/adapters.py").read_text()
    (tmp_path / "s/adapters.py").write_text(
        adapters.replace("return rmsnorm", "return torch.rms_norm")
        + "\n\nimport torch\ndef run_silu(x):\n    return torch.nn.functional.silu(x)\n"
    )
    line = len(text.splitlines()) + 4
    own = {f.line: f for f in findings(tmp_path / "s", RUBRIC) if f.file.endswith("attention.py")}
    (first, *_) = own
    assert own[first].tasks == ("attention",)
    assert own[line].tasks == ("attention", "multihead_attention", "multihead_attention_rope")
    glue = [f for f in findings(tmp_path / "s", RUBRIC) if f.file == "adapters.py"]
    assert [f.tasks for f in glue] == [("silu",)]
    name = "torch.nn.functional.silu"
    calls = [
        Call(task=task, name=name, file="cs336_basics/attention.py", line=line)
        for task in ("transformer_lm", "multihead_attention", None)
    ]
    called = {f.line: f for f in findings(tmp_path / "s", RUBRIC, calls)}
    assert called[line].how == "called"
    assert called[line].tasks == ("multihead_attention",)
    assert len(own) == sum(f.file.endswith("attention.py") for f in called.values())


def test_the_task_of_a_name(tmp_path: Path) -> None:
    """Catches a use of `torch.softmax` without a task because the rubric doesn't list its file."""
    (tmp_path / "cs336_basics").mkdir()
    text = "import torch\ndef f(x):\n    return torch.softmax(x, 0)\ntorch.nn.ReLU()\neval('x')"
    (tmp_path / "cs336_basics/ops.py").write_text(text)
    one, two, three = findings(tmp_path, RUBRIC)
    assert str(one) == "cs336_basics/ops.py:3 uses torch.softmax (softmax)"
    assert str(two) == "cs336_basics/ops.py:4 uses torch.nn.ReLU"
    assert str(three) == "cs336_basics/ops.py:5 could use anything through eval"


def findings_of(task: str) -> tuple[ScratchFinding, ...]:
    """Return a finding that concerns the task, and a dodge, which concerns no task."""
    return (
        ScratchFinding(file="a.py", line=1, name="torch.softmax", how="called", tasks=(task,)),
        ScratchFinding(file="a.py", line=2, name="eval", how="dodge"),
    )


def test_points_are_taken() -> None:
    """Catches a finding that costs the points of a wrong task, or does not lower the total."""
    rubric = small_rubric()
    first, second = rubric.tasks
    result = suite_result(
        task_result(first, [State.PASSED] * 3), task_result(second, [State.PASSED])
    )
    found = findings_of("first")
    taken = enforced(result, found)
    assert [task.earned for task in taken.tasks] == [0, 1]
    assert (taken.earned, taken.possible) == (1, 4)
    assert result.earned == 4
    assert enforced(result, ()) == result


def test_what_follows(tmp_path: Path) -> None:
    """Catches a policy (`report`, `enforce`, `off`) that gives wrong points, findings or notes."""
    text = "from torch import softmax as ready\n\n\ndef softmax(x, dim):\n    return ready(x, dim)"
    folder = submission(tmp_path / "ada", {"cs336_basics/softmax.py": text})
    tasks = [task_result(task, [State.PASSED] * len(task.tests)) for task in RUBRIC.tasks]
    run = SuiteRun(result=suite_result(*tasks))
    line = "cs336_basics/softmax.py:5 uses torch.softmax (softmax)"
    with opened(folder) as intake:
        reported, taken, off = (
            Grading(rubric=RUBRIC, cases=FIXTURES, backend=choose("mock"), policy=policy).grade(
                "ada", run, intake
            )
            for policy in get_args(Policy)
        )
    assert (off.run, off.scratch) == (run, ())
    found = reported.scratch
    assert (reported.run, [str(finding) for finding in found]) == (run, [line])
    assert run.result is not None
    assert taken.run.result is not None
    assert taken.run.result.earned == run.result.earned - RUBRIC.task("softmax").points
    noted = LeftOut(name="conftest.py", why="is a test")
    left = (noted, LeftOut(name="a", why="is not needed", noteworthy=False))
    grade = Grade(submission="ada", run=run, fixtures="f", left_out=left, scratch=found)
    write_grade(grade, tmp_path / "grade.json")
    assert read_grade(tmp_path / "grade.json") == grade
    said = "Not from scratch (a person decides; the handout lists what may be used):"
    assert notes(grade) == [said, f"  {line}", "", "Not used:", "  conftest.py is a test", ""]
    assert notes(Grade(submission="ada", run=run, fixtures="f")) == []
