"""The tokenizer, compared with Hugging Face, tiktoken and a textbook, and its errors."""

import random
from pathlib import Path

import pytest
import tiktoken
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from cs336_basics.tokenizer import Tokenizer
from cs336_basics.train_bpe import train_bpe
from labs.stories import SEPARATOR
from staff.tests.solution.texts import PATTERN, SPECIALS, merge, read, write_stories

BYTES = {i: bytes([i]) for i in range(256)}


@pytest.fixture(scope="module")
def story_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with 200 kB of stories."""
    return write_stories(tmp_path_factory.mktemp("stories") / "stories.txt", 200_000)


@pytest.fixture(scope="module")
def tokenizer(story_file: Path) -> Tokenizer:
    """A tokenizer of 1,000 tokens, trained on the stories."""
    return Tokenizer(*train_bpe(story_file, 1000, [SEPARATOR]), [SEPARATOR])


def test_encoding_agrees_with_hugging_face(
    tokenizer: Tokenizer, story_file: Path, tmp_path: Path
) -> None:
    """Catches ids or texts that differ from those of `tokenizers` with the saved file.

    The text is longer than the blocks that `encode` processes.
    """
    tokenizer.save_hugging_face(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    text = read(story_file) * 3
    ids = tokenizer.encode(text)
    assert theirs.encode(text).ids == ids
    assert theirs.decode(ids, skip_special_tokens=False) == text == tokenizer.decode(ids)
    assert theirs.token_to_id(SEPARATOR) == 999


def test_encoding_agrees_with_tiktoken(tokenizer: Tokenizer, story_file: Path) -> None:
    """Catches ids that differ from those of `tiktoken` with the same vocabulary."""
    special = {SEPARATOR: 999}
    ranks = {token: i for i, token in tokenizer.vocab.items() if i not in special.values()}
    theirs = tiktoken.Encoding(
        "ours", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special
    )
    text = read(story_file)
    assert theirs.encode(text, allowed_special="all") == tokenizer.encode(text)


def test_long_words_agree_with_the_textbook(tokenizer: Tokenizer) -> None:
    """Catches merges that are applied in a wrong order in a word of 3,000 letters."""
    drawn = random.Random(5)
    word = "".join(drawn.choice("theandsr") for _ in range(3000))
    parts = tuple(bytes([b]) for b in word.encode())
    for pair in tokenizer.merges:
        parts = merge(parts, pair)
    assert [tokenizer.vocab[i] for i in tokenizer.encode(word)] == list(parts)


@given(st.lists(st.text("ab '\n<e>\u3000é", max_size=6), max_size=12), st.sets(st.integers(0, 6)))
@settings(max_examples=150, database=None, deadline=None, derandomize=True)
def test_any_pieces(texts: list[str], chosen: set[int]) -> None:
    """Catches `encode_iterable` returning other ids for pieces than `encode` for the whole."""
    specials = [SPECIALS[i] for i in sorted(chosen)]
    merges = [(b"a", b"b"), (b"b", b"a"), (b" ", b"ab"), (b"'", b"a"), (b"\n", b"\n"), (b"<", b"e")]
    vocab = dict(enumerate([*BYTES.values(), *(a + b for a, b in merges)]))
    tokenizer = Tokenizer(vocab, merges, specials)
    assert list(tokenizer.encode_iterable(texts)) == tokenizer.encode("".join(texts))


def test_any_bytes_come_back(tokenizer: Tokenizer) -> None:
    """Catches changed bytes of invalid UTF-8 that was read with surrogateescape."""
    data = random.Random(2).randbytes(3000)
    ids = tokenizer.encode(data.decode("utf-8", "surrogateescape"))
    assert b"".join(tokenizer.vocab[i] for i in ids) == data
    assert tokenizer.decode(ids) == data.decode("utf-8", "replace")


def test_what_is_remembered_is_bounded(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches the tokenizer's caches of words growing with the text."""
    monkeypatch.setattr("cs336_basics.tokenizer._MEMO_ENTRIES", 100)
    fresh = Tokenizer(tokenizer.vocab, tokenizer.merges)
    text = " ".join(map(str, range(5000)))
    assert fresh.decode(fresh.encode(text)) == text
    tables = (vars(fresh)["_of_word"], vars(fresh)["_of_pretoken"])
    assert max(map(len, tables)) <= 100


def test_empty_special_tokens() -> None:
    """Catches `Tokenizer` accepting an empty special token."""
    with pytest.raises(ValueError, match="a special token must not be empty"):
        Tokenizer(BYTES, [], [""])


@pytest.mark.parametrize("pair", [(b"a", b"b"), (b"ab", b"c")])
def test_merges_that_the_vocabulary_lacks(pair: tuple[bytes, bytes]) -> None:
    """Catches `Tokenizer` accepting a merge with a half or a result not in the vocabulary."""
    with pytest.raises(ValueError, match=r"merges need b'ab', which the vocabulary lacks"):
        Tokenizer(BYTES, [pair])


def test_bytes_that_the_vocabulary_lacks() -> None:
    """Catches `encode` skipping a byte without a token, or failing on texts without this byte."""
    tokenizer = Tokenizer({0: b"a"}, [])
    assert tokenizer.encode("aa") == [0, 0]
    with pytest.raises(KeyError):
        tokenizer.encode("ab")


def test_half_a_surrogate_pair() -> None:
    """Catches `encode` accepting half of a surrogate pair, which is no character."""
    with pytest.raises(UnicodeEncodeError):
        Tokenizer(BYTES, []).encode("a\ud800")
