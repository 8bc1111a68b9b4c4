"""The catalogue's files: what an entry may leave out, and what the reader refuses."""

from pathlib import Path

import pytest

from staff.catalogue.edits import BodyEdit, PatchError, TextEdit, apply
from staff.catalogue.patches import Patch, load_alternates, load_mistakes
from staff.paths import SOLUTION
from tests.harness.rubric import read_rubric

HEAD = """
[other]
sentence = "written otherwise"
"""
FIND = 'find = "a"\nreplace = "b"\n'
BODY = 'symbol = "lines"\nbody = "return 1"\n'
TABLE = "[[other.edits]]\n"
FIRST = "cs336_basics/train_bpe.py"
EITHER = "an edit has either find (not empty) and replace, or symbol and body"
OMIT = f"{FIRST} is the first file of the task: leave it out"

REFUSED = {
    "both forms at once": (FIND + BODY, EITHER),
    "half a form": ('find = "a"\n', EITHER),
    "nothing to find": ('find = ""\nreplace = "b"\n', EITHER),
    "a function without a name": (BODY.replace("lines", "cs336_basics.rope:"), EITHER),
    "a file beside a function": ('file = "adapters.py"\n' + BODY, EITHER),
    "no edit": ("", "it has no edit"),
    "no edit in a list": ("edits = []\n", "it has no edit"),
    "a file that is the default": (f'file = "{FIRST}"\n' + FIND, OMIT),
    "such a file in a table": (f'{TABLE}file = "{FIRST}"\n{FIND}{TABLE}{FIND}', OMIT),
    "a module that is the default": (
        BODY.replace("lines", "cs336_basics.train_bpe:lines"),
        OMIT,
    ),
    "one edit in a table": (TABLE + FIND, "its only edit is in a table: put it in the entry"),
    "an edit beside tables": (
        FIND + (TABLE + FIND) * 2,
        "one edit is in the entry and others are in tables: put all in tables",
    ),
    "an unknown field": ('note = "x"\n' + FIND, "Object contains unknown field `note`"),
    "the task, which the file's name gives": (
        'task = "train_bpe"\n' + FIND,
        "Object contains unknown field `task`",
    ),
    "an unknown field in a table": (
        f"{TABLE}line = 3\n{FIND}{TABLE}{FIND}",
        "Object contains unknown field `line` - at `$.edits[0]`",
    ),
}


def test_what_is_left_out_comes_from_the_rubric(tmp_path: Path) -> None:
    """Catches an edit without a file that isn't in the first file of its task."""
    assert read_rubric().task("train_bpe").files[0] == FIRST
    others = (
        'file = "adapters.py"\n' + FIND,
        BODY.replace("lines", "cs336_basics.pretokenization:Heap.pop"),
    )
    entries = HEAD + FIND, HEAD.replace("other", "body") + BODY, HEAD.replace("other", "four")
    tables = "".join(TABLE.replace("other", "four") + edit for edit in (FIND, BODY, *others))
    (tmp_path / "train_bpe.toml").write_text("".join(entries) + tables)
    text, body, four = load_alternates(tmp_path)
    assert (text.id, text.task) == ("other", "train_bpe")
    assert text.edits == (TextEdit(FIRST, "a", "b"),)
    assert body.edits == (BodyEdit(FIRST, "lines", "return 1"),)
    assert four.edits == (
        *text.edits,
        *body.edits,
        TextEdit("adapters.py", "a", "b"),
        BodyEdit("cs336_basics/pretokenization.py", "Heap.pop", "return 1"),
    )


@pytest.mark.parametrize(("entry", "message"), REFUSED.values(), ids=REFUSED)
def test_entries_that_are_refused(tmp_path: Path, entry: str, message: str) -> None:
    """Catches an entry in another form than the one right one, and an error without its place."""
    (tmp_path / "train_bpe.toml").write_text(HEAD + entry)
    with pytest.raises(PatchError) as caught:
        load_alternates(tmp_path)
    assert str(caught.value) == f"other: train_bpe.toml: {message}"


def test_files_that_are_refused(tmp_path: Path) -> None:
    """Catches a file that holds no patches of a task, and an id that two patches have."""
    texts = {
        "rope.toml": ("a = ", r"^rope.toml: Invalid value"),
        "softmax.toml": (
            "other = 3\n",
            "^other: softmax.toml: Expected `object`, got `int`$",
        ),
        "sofmax.toml": (HEAD + FIND, "^sofmax.toml: its name must be that of a task$"),
        "silu.toml": (
            '[other]\nsentence = "no question"\n',
            "^other: silu.toml: Object missing required field `nudge`",
        ),
    }
    for number, (name, (text, message)) in enumerate(texts.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / name).write_text(text)
        with pytest.raises(PatchError, match=message):
            load_mistakes(folder)
    for name in ("rope", "silu"):
        (tmp_path / f"{name}.toml").write_text(HEAD + FIND)
    with pytest.raises(PatchError, match=r"^other: this id is found 2 times$"):
        load_alternates(tmp_path)


def test_edits_that_do_not_fit(tmp_path: Path) -> None:
    """Catches an edit that is made elsewhere where its place is gone or isn't the only one."""
    (tmp_path / "code.py").write_text("def f():\n    return 1  # 1\n")
    for edit, message in (
        (TextEdit("code.py", "2", "3"), "p: code.py: found 0 times: 2"),
        (TextEdit("code.py", "1", "2"), "p: code.py: found 2 times: 1"),
        (BodyEdit("code.py", "g", "pass"), "p: code.py: found 0 times: function g"),
        (TextEdit("none.py", "1", "2"), "p: none.py: there is no such file"),
    ):
        with pytest.raises(PatchError) as caught:
            apply([edit], tmp_path, "p")
        assert str(caught.value) == message
    assert (tmp_path / "code.py").read_text() == "def f():\n    return 1  # 1\n"
    apply([BodyEdit("code.py", "f", "\nreturn 2\n")], tmp_path)
    assert (tmp_path / "code.py").read_text() == "def f():\n    return 2\n"


def test_every_file_of_the_catalogue_exists() -> None:
    """Catches a patch of a file that the solution lacks, and a task without a patch."""
    patches: list[Patch] = [*load_mistakes(), *load_alternates()]
    assert {patch.task for patch in patches} == set(read_rubric().by_id)
    assert all((SOLUTION / edit.file).is_file() for patch in patches for edit in patch.edits)
