"""The names of files in a submission: unsafe names are refused, and imports are resolved."""

import os
import posixpath
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staff.grader.intake import opened
from staff.grader.intake.imports import imported
from staff.grader.intake.names import flaw, inside, installed, look_alike, sameness
from staff.tests.grader.intake.packing import FILES, contents, refusal, write_tar, write_zip
from staff.tests.support import thorough
from tests.harness.errors import SubmissionError

PIECES = st.sampled_from(
    [*("..", ".", "", "/", "\\", "a", "cs336_basics", "adapters.py", "C:", "~", " ", "é", "\0")]
)


@given(st.lists(PIECES, max_size=8).map("/".join) | st.text(max_size=30))
@thorough
def test_no_name_leads_out(name: str) -> None:
    """Catches a name in an archive that `inside` turns into a path outside the folder."""
    try:
        path = inside(name, "a.zip")
    except SubmissionError as error:
        path = str(error)
    if "leads out of the archive" in path:
        return
    assert not path.startswith("/")
    assert posixpath.normpath(posixpath.join("/top", path)).startswith("/top")
    assert ".." not in path.split("/")
    assert inside(path, "a.zip") == path


@given(st.text(max_size=30))
@thorough
def test_what_has_no_flaw_can_be_written(name: str) -> None:
    """Catches the path of a module that is accepted although it is not printable ASCII."""
    path = f"cs336_basics/{name}/m.py"
    wrong = flaw(path)
    if wrong is None:
        assert path.isascii()
        assert path.isprintable()
    else:
        assert wrong.isprintable()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("cs336_basics/\u0455oftmax.py", "U+0455"),
        ("cs336_basics/ｍodel.py", "ASCII"),
        ("cs336_basics/sub\u0440/m.py", "ASCII"),
        ("cs336_basics/so\u200bftmax.py", "invisible characters"),
        ("cs336_basics/\u202eyp.x", "invisible characters"),
        ("cs336_basics/a\x1b[2J.txt", "invisible characters"),
        ("cs336_basics/a\nb.txt", "invisible characters"),
        ("cs336_basics/m.py ", "ends in a space or a dot"),
        ("cs336_basics/m.py.", "ends in a space or a dot"),
        ("cs336_basics/ m.py", "begins with a space"),
        ("cs336_basics/" + "n" * 201, "longer than 200 bytes"),
        ("cs336_basics/" + "d/" * 20 + "m.py", "more than 20 folders deep"),
    ],
)
def test_names_in_the_package(tmp_path: Path, name: str, why: str) -> None:
    """Catches a file of the package that is accepted with a misleading or not portable name."""
    text = refusal(write_zip(tmp_path / "ada.zip", {**FILES, name: ""}))
    assert text.startswith("ada.zip holds 'cs336_basics/")
    assert why.removeprefix("U+0455") in text
    assert text.isprintable()
    assert contents(write_zip(tmp_path / "ada.zip", {**FILES, f"docs/{name}": ""})) == FILES


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("data/A.txt", "data/a.txt"),
        ("Model.py", "model.py"),
        ("sub/m.py", "Sub/n.py"),
        ("caf\u00e9.txt", "cafe\u0301.txt"),
        ("stra\u00dfe.txt", "strasse.txt"),
        ("\uff41.txt", "a.txt"),
    ],
)
def test_names_that_are_one_on_some_machines(tmp_path: Path, one: str, other: str) -> None:
    """Catches two files that are accepted although some file systems would keep only one."""
    files = {**FILES, f"cs336_basics/{one}": "1", f"cs336_basics/{other}": "2"}
    text = refusal(write_tar(tmp_path / "ada.tar", files))
    assert "which are the same file on some machines; rename one of them" in text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("\u0441s336_basics/m.py", "'\\u0441s336_basics', which looks like cs336_basics but has"),
        ("cs336_b\u0430sics/m.py", "which looks like cs336_basics"),
        ("cs336\u200b_basics/m.py", "which looks like cs336_basics"),
        ("\u0430dapters.py", "which looks like adapters.py"),
        ("test\u0455/adapters.py", "which looks like tests"),
        ("CS336_Basics/m.py", "'CS336_Basics'; rename it to cs336_basics"),
        ("cs336_basics./m.py", "'cs336_basics.'; rename it to cs336_basics"),
        ("Adapters.py", "'Adapters.py'; rename it to adapters.py"),
    ],
)
def test_names_at_the_top(tmp_path: Path, name: str, text: str) -> None:
    """Catches a name that looks like `cs336_basics`, `adapters.py` or `tests` and is accepted."""
    assert text in refusal(write_zip(tmp_path / "ada.zip", {**FILES, name: ""}))
    assert text in refusal(write_zip(tmp_path / "ada.zip", {name: ""}))


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    """Catches a traceback for a file whose name is not valid UTF-8."""
    os.makedirs(tmp_path / "ada/cs336_basics")
    (tmp_path / "ada/adapters.py").write_text("")
    odd = os.fsdecode(b"gr\xf6sse.txt")
    (tmp_path / "ada" / odd).write_text("")
    with opened(tmp_path / "ada") as intake:
        assert intake.left_out[0].name == "gr\\udcf6sse.txt"
    (tmp_path / "ada/cs336_basics" / odd).write_text("")
    assert refusal(tmp_path / "ada") == (
        "ada holds 'cs336_basics/gr\\udcf6sse.txt', whose name is not UTF-8; "
        "rename it in plain letters"
    )
    assert "is not UTF-8" in refusal(write_tar_bytes(tmp_path / "ada.tar"))


def write_tar_bytes(path: Path) -> Path:
    """Write a tar that holds a file whose name is encoded in Latin-1."""
    write_tar(path, {**FILES, "cs336_basics/grXsse.txt": ""})
    content = bytearray(path.read_bytes())
    at = content.index(b"grXsse") + 2
    content[at] = 0xF6
    start = content.rindex(b"cs336_basics/gr")
    header = content[start : start + 512]
    header[148:156] = b" " * 8
    content[start + 148 : start + 156] = b"%06o\0 " % sum(header)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["torch", "numpy", "random", "json", "sitecustomize", "staff"])
def test_installed_modules(name: str) -> None:
    """Catches an installed module, such as `torch`, that a file of a submission could replace."""
    assert installed(name)


def test_names_that_are_free() -> None:
    """Catches a student's helper module that is mistaken for an installed module."""
    assert not any(map(installed, ["helpers", "my_model", "common", "größe", "a-b", ""]))
    assert look_alike("größe") is look_alike("adapters_old.py") is look_alike("tests") is None
    assert sameness("A/B.") == "a/b"


@given(st.text(max_size=60) | st.binary(max_size=60))
@thorough
def test_imports_of_any_text(text: str | bytes) -> None:
    """Catches a file that stops the whole batch because it can't be parsed."""
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    assert all(isinstance(name, str) for name in imported(content, "a/b.py"))


@pytest.mark.parametrize("text", ["(" * 5000, "-" * 100_000 + "1", "a" + ".b" * 100_000, "\0"])
def test_imports_of_deep_text(text: str) -> None:
    """Catches a crash or an exception of the parser on deeply nested code."""
    assert list(imported(text.encode(), "a.py")) == []


def test_imports() -> None:
    """Catches an import that is missed, or a relative import that is resolved wrongly."""
    text = "import a.b as c, d\nfrom . import e\nfrom .f import g\nfrom ..h import i\n"
    text += "from ... import z"
    assert list(imported(text.encode(), "p/q/r.py")) == [
        *("a.b", "d", "p.q", "p.q.e", "p.q.f", "p.q.f.g", "p.h", "p.h.i", "z")
    ]
