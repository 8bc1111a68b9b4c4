"""Pre-tokenisation: cuts and processes don't change the result, and memory is bounded."""

import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cs336_basics import pretokenization
from cs336_basics.pretokenization import Splitter, count_pretokens, pretokens, words
from labs.stories import SEPARATOR
from staff.tests.solution.texts import SPECIALS, write_stories


@pytest.fixture(scope="module")
def story_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with 200 kB of stories."""
    return write_stories(tmp_path_factory.mktemp("stories") / "stories.txt", 200_000)


@pytest.mark.parametrize("number", [2, 7])
def test_processes_change_nothing(
    story_file: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Catches counts that depend on the number of processes or on the size of the pieces."""
    one = count_pretokens(story_file, [SEPARATOR], 1)
    assert count_pretokens(story_file, [SEPARATOR], number) == one
    monkeypatch.setattr(pretokenization, "_CHUNK_BYTES", 3000 + number)
    assert count_pretokens(story_file, [SEPARATOR], 1) == one


@given(st.data())
@settings(max_examples=300, database=None, deadline=None, derandomize=True)
def test_a_cut_changes_nothing(data: st.DataObject) -> None:
    """Catches a cut at `last_cut` that changes the pre-tokens of the text."""
    signs = st.text("ab '\n<e>1\u3000é.st", max_size=20)
    specials = data.draw(st.lists(st.sampled_from(SPECIALS), unique=True))
    splitter = Splitter(specials)
    text, more = data.draw(signs), data.draw(signs)
    cut = splitter.last_cut(text)
    whole = pieces(splitter, text + more)
    assert pieces(splitter, text[:cut]) + pieces(splitter, text[cut:] + more) == whole


def pieces(splitter: Splitter, text: str) -> list[str]:
    """Return the pre-tokens and the special tokens of a text, in order."""
    parts = splitter.split(text)
    return [p for i, part in enumerate(parts) for p in ([part] if i % 2 else pretokens(part))]


@given(st.text() | st.text(" \t\n\u3000\x1cab'1é.", max_size=12))
@settings(max_examples=150, database=None, deadline=None, derandomize=True)
def test_words_end_where_pre_tokens_end(text: str) -> None:
    """Catches a word of `words` whose pre-tokens differ from those in the whole text."""
    assert "".join(words(text)) == text
    assert [p for word in words(text) for p in pretokens(word)] == pretokens(text)


def test_empty_special_tokens() -> None:
    """Catches `Splitter` accepting an empty special token."""
    with pytest.raises(ValueError, match="a special token must not be empty"):
        Splitter(["<e>", ""])


def test_no_byte_is_lost(tmp_path: Path) -> None:
    """Catches bytes that are dropped or replaced if a file isn't valid UTF-8."""
    data = random.Random(2).randbytes(3000)
    (tmp_path / "bytes").write_bytes(data)
    counted = count_pretokens(tmp_path / "bytes")
    assert sum(len(word) * count for word, count in counted.items()) == len(data)


def test_counting_needs_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches `count_pretokens` reading a whole file of 1 MB into memory."""
    path = tmp_path / "long.txt"
    path.write_text("the miller and the reed, don't they sing?\n" * 25_000)
    monkeypatch.setattr(pretokenization, "_CHUNK_BYTES", 1 << 15)
    tracemalloc.start()
    counts = count_pretokens(path, [SEPARATOR], 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts[b" the"] == 25_000
    assert peak < 700_000
