"""The generator of stories: reproducible, of any size, and rich enough for 10,000 merges."""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from cs336_basics.pretokenization import count_pretokens
from cs336_basics.train_bpe import train_bpe
from labs.stories import SEPARATOR, stories, text_of
from staff.paths import ROOT


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with 2 MB of stories, which is the first tenth of the benchmark's text."""
    path = tmp_path_factory.mktemp("stories") / "stories.txt"
    path.write_text("".join(text_of(2_000_000, seed=1)), encoding="utf-8", newline="")
    return path


def test_the_same_seed_tells_the_same() -> None:
    """Catches stories that vary between runs or with their number, or that ignore the seed."""
    some = list(itertools.islice(stories(4), 20))
    assert some == list(itertools.islice(stories(4), 30))[:20]
    assert some[0] != next(stories(5))


def test_size_and_separators() -> None:
    """Catches a text that is too short, too long by a story, or without separators."""
    documents = list(text_of(50_000, seed=2))
    size = len("".join(documents).encode())
    assert 50_000 <= size < 50_000 + len(documents[-1].encode())
    assert all(document.endswith(f"\n{SEPARATOR}\n") for document in documents)


def test_the_program_writes_the_text(tmp_path: Path) -> None:
    """Catches `python -m labs.stories` writing other bytes than those of `text_of`."""
    command = [sys.executable, "-m", "labs.stories", "--bytes", "9000", "--seed", "7"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run([*command, "--out", str(tmp_path / "s.txt")], cwd=ROOT, check=True)
    assert shown == (tmp_path / "s.txt").read_bytes() == "".join(text_of(9000, 7)).encode()


def test_there_is_something_of_everything(big: Path) -> None:
    """Catches a text without quotes, contractions, other alphabets, emoji, tabs or CRLF."""
    text = big.read_bytes().decode()
    for sign in (
        '"',
        "n't",
        "'re",
        "\r\n",
        "\t",
        "  ",
        "\u00a0",
        "\u3000",
        "🦊",
        "ж",
        "山",
        "שׁ"[0],
    ):
        assert sign in text


def test_words_grow_with_the_text(big: Path, tmp_path: Path) -> None:
    """Catches a text with too few pre-tokens, or with few new pre-tokens in its second half.

    2 MB must have more than 10,000 different pre-tokens. The benchmark checks that 20 MB have
    more than 60,000.
    """
    half = tmp_path / "half.txt"
    half.write_bytes(big.read_bytes()[:1_000_000])
    few, many = (len(count_pretokens(path, [SEPARATOR])) for path in (half, big))
    assert many > 10_000
    assert many - few > 0.75 * few


def test_words_follow_zipf(big: Path) -> None:
    """Catches a text in which all words are about equally frequent."""
    counts = sorted(count_pretokens(big, [SEPARATOR]).values(), reverse=True)
    total = sum(counts)
    assert sum(counts[:100]) > 0.5 * total
    assert sum(count <= 2 for count in counts) > 0.5 * len(counts)


def test_ten_thousand_tokens_are_reached(big: Path) -> None:
    """Catches 2 MB of stories from which a vocabulary of 10,000 tokens can't be trained."""
    vocab, merges = train_bpe(big, 10_000, [SEPARATOR])
    assert (len(vocab), len(merges)) == (10_000, 10_000 - 257)
