"""The cutter of the stubs, on small texts: what goes with a body, and what it refuses."""

import ast
import textwrap
from pathlib import Path

import pytest

from staff.release.stubs import StubError, cut, cut_text
from staff.tests.support import submission
from tests.harness.rubric import read_rubric


def test_a_public_name_without_a_task_is_an_error(tmp_path: Path) -> None:
    """Catches an answer that is released whole because the rubric forgot it."""
    extra = "def extra(x: int) -> int:\n    return x"
    solution = submission(tmp_path / "s", added={"cs336_basics/rope.py": extra})
    text = "cs336_basics/rope.py: extra belongs to no task; list it in assignment.toml, or make it"
    with pytest.raises(StubError, match=f"^{text} private$"):
        cut(solution, read_rubric())


def stubbed(text: str) -> str:
    """Cut the function `f` and the class `GELU` of a file."""
    return cut_text(textwrap.dedent(text), {"f": "t: x", "GELU": "t: x"})


def test_comments_of_a_body_go_with_it() -> None:
    """Catches a comment that tells the answer, before, between or after the statements."""
    text = '''\
        # Stays.
        def f(x: int) -> int:  # stays
            """Doc."""
            # secret

            # secret
            y = x  # secret
            return y
            # secret


        # Stays too.
        class GELU:
            """Doc."""

            a: int  # stays

            def __init__(self) -> None:
                # secret
                self.a = 1
        '''
    result = stubbed(text)
    assert "secret" not in result
    assert result.lower().count("stays") == 4
    assert result.count('raise NotImplementedError("t: x")') == 2


def test_what_only_removed_code_used_goes() -> None:
    """Catches helpers, constants and imports that give the answer away or trip the linter."""
    text = """\
        import math
        import os

        _EPS = 1e-6
        KEPT = os.sep


        def _outer(x: float) -> float:
            return _inner(x)


        def _inner(x: float) -> float:
            return math.floor(x) + _EPS


        def _used() -> str:
            return KEPT


        def f(x: float) -> float:
            return _outer(x)


        def g() -> str:
            return _used()


        class GELU:
            def _helper(self) -> int:
                return 1

            def forward(self) -> int:
                return self._helper()
        """
    result = stubbed(text)
    names = [n.name for n in ast.walk(ast.parse(result)) if isinstance(n, ast.FunctionDef)]
    assert names == ["_used", "f", "g", "forward"]
    for gone in ("math", "_EPS", "_inner", "_helper"):
        assert gone not in result
    for kept in ("import os\n", "KEPT = os.sep\n", "return KEPT\n", "class GELU:\n"):
        assert kept in result


def test_no_gap_is_left() -> None:
    """Catches blank lines that the formatter would take out, where a method or helper stood."""
    before = "    def forward(self) -> int:\n        return self._a()\n"
    helper = "    def _a(self) -> int:\n        return 1\n"
    last = "\n\ndef g() -> int:\n    return 2\n"
    result = stubbed(f"class GELU:\n{before}\n{helper}\n{before}\n{helper}{last}")
    stub = before.replace("return self._a()", 'raise NotImplementedError("t: x")')
    assert result == f"class GELU:\n{stub}\n{stub}{last}"


def test_a_body_on_the_line_of_its_signature() -> None:
    """Catches a signature that goes with its body."""
    with pytest.raises(
        StubError, match="line 1: the body of f stands on the line of its signature"
    ):
        stubbed("def f(x: int) -> int: return x\n")
