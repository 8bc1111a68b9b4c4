"""BPE training and encoding against textbooks of ten lines, Hugging Face and tiktoken."""

import contextlib
import itertools
import random
import tracemalloc
from collections import Counter

import pytest
import regex
import tiktoken
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, trainers

from cs336_basics import pretokenization
from cs336_basics.pretokenization import PATTERN, Splitter, count_pretokens, pretokens, words
from cs336_basics.tokenizer import Tokenizer
from cs336_basics.train_bpe import train_bpe
from labs.stories import SEPARATOR, text_of

ODD = (
    "Hm…  tea\t\tfor 2½, at 3:45?\r\n\r\n  « дом »\u00a0山水 👩‍🌾❤️  \n\n\n \x1c\x1d \x85\u2028 \x00"
    "e\u0301 ﬁ İ ß\u3000\u3000a\u200bb don't WON'T 'tis we'll've x_y_ 1a2b ٣٤ Ⅷ"
)
SPECIALS = [SEPARATOR, "<e>", "<e><e>", "> <", "a b", "ab", "ba"]


def textbook(text, number):
    """Train by counting everything anew; give the merges, and for each the pairs that were best."""
    counts = Counter(p.encode() for d in text.split(SEPARATOR) for p in regex.findall(PATTERN, d))
    corpus = {tuple(bytes([b]) for b in word): count for word, count in counts.items()}
    for _ in range(number):
        pairs = Counter()
        for word, count in corpus.items():
            for pair in itertools.pairwise(word):
                pairs[pair] += count
        most = max(pairs.values())
        best = {pair for pair, count in pairs.items() if count == most}
        chosen = yield best
        corpus = {merge(word, chosen or max(best)): count for word, count in corpus.items()}


def merge(word, pair):
    """Merge a pair from left to right."""
    result = []
    for token in word:
        if result and (result[-1], token) == pair and result[-1] is not merged_last(result, pair):
            result[-1] += token
        else:
            result.append(token)
    return tuple(result)


def merged_last(result, pair):
    """A token that this merge made is longer than both halves, and can't be one of them."""
    return result[-1] if len(result[-1]) == len(pair[0]) + len(pair[1]) else None


@pytest.fixture(scope="module")
def story_file(tmp_path_factory):
    """A file of 200 kB of stories."""
    path = tmp_path_factory.mktemp("stories") / "stories.txt"
    path.write_text("".join(text_of(200_000, seed=3)) + ODD, encoding="utf-8", newline="")
    return path


@pytest.fixture(scope="module")
def trained(story_file):
    """Vocabulary and merges of 1,000 tokens."""
    return train_bpe(story_file, 1000, [SEPARATOR])


@pytest.fixture
def tokenizer(trained):
    """A tokenizer of 1,000 tokens."""
    return Tokenizer(*trained, [SEPARATOR])


def read(path):
    """The text of a file, with its own line ends."""
    return path.read_bytes().decode()


def test_training_is_the_textbooks(story_file, tmp_path):
    """Every merge of the solution is the greatest of the pairs that occur most often."""
    text = read(story_file)[:30_000]
    small = tmp_path / "small.txt"
    small.write_text(text, encoding="utf-8", newline="")
    _, merges = train_bpe(small, 257 + 150, [SEPARATOR])
    assert merges == [max(best) for best in textbook(text, 150)]


def test_training_agrees_with_hugging_face(story_file, tmp_path):
    """Every merge of `tokenizers` is one of the best pairs as well.

    It decides ties in its own way, so that the merges may differ from the first tie on.
    """
    text = read(story_file)[:20_000]
    theirs = tokenizers.Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=257 + 100,
        special_tokens=[SEPARATOR],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator(text.split(SEPARATOR), trainer)
    theirs.save(str(tmp_path / "tokenizer.json"))
    merges = Tokenizer.load_hugging_face(tmp_path / "tokenizer.json").merges
    assert len(merges) == 100
    steps = textbook(text, 100)
    best = next(steps)
    for chosen in merges:
        assert chosen in best
        with pytest.raises(StopIteration) if chosen is merges[-1] else contextlib.nullcontext():
            best = steps.send(chosen)


def test_encoding_agrees_with_hugging_face(tokenizer, story_file, tmp_path):
    """`tokenizers` reads the file that was written, gives the same ids, and the same text."""
    tokenizer.save_hugging_face(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    text = read(story_file) * 3  # more than `encode` takes at a time
    ids = tokenizer.encode(text)
    assert theirs.encode(text).ids == ids
    assert theirs.decode(ids, skip_special_tokens=False) == text == tokenizer.decode(ids)
    assert theirs.token_to_id(SEPARATOR) == 999


def test_a_file_of_hugging_face_is_read(tokenizer, story_file, tmp_path):
    """A file that `tokenizers` wrote is read: its ids, merges and special tokens."""
    tokenizer.save_hugging_face(tmp_path / "ours.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "ours.json"))
    theirs.decoder = decoders.ByteLevel()
    theirs.save(str(tmp_path / "theirs.json"))
    again = Tokenizer.load_hugging_face(tmp_path / "theirs.json")
    assert (again.vocab, again.merges) == (tokenizer.vocab, tokenizer.merges)
    assert again.special_tokens == [SEPARATOR]


def test_encoding_agrees_with_tiktoken(tokenizer, story_file):
    """`tiktoken`, given the same tokens in the same order, gives the same ids."""
    special = {SEPARATOR: 999}
    ranks = {token: i for i, token in tokenizer.vocab.items() if i not in special.values()}
    theirs = tiktoken.Encoding(
        "ours", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special
    )
    text = read(story_file)
    assert theirs.encode(text, allowed_special="all") == tokenizer.encode(text)


@pytest.mark.parametrize("number", [2, 7])
def test_processes_change_nothing(story_file, monkeypatch, number):
    """One process, two and seven count the same, in pieces of any size."""
    one = count_pretokens(story_file, [SEPARATOR], 1)
    assert count_pretokens(story_file, [SEPARATOR], number) == one
    monkeypatch.setattr(pretokenization, "_CHUNK_BYTES", 3000 + number)
    assert count_pretokens(story_file, [SEPARATOR], 1) == one


@given(st.data())
@settings(max_examples=300, database=None, deadline=None, derandomize=True)
def test_a_cut_changes_nothing(data):
    """Where `last_cut` cuts, both sides split alone as they do together, whatever follows."""
    signs = st.text("ab '\n<e>1\u3000é.st", max_size=20)
    specials = data.draw(st.lists(st.sampled_from(SPECIALS), unique=True))
    splitter = Splitter(specials)
    text, more = data.draw(signs), data.draw(signs)
    cut = splitter.last_cut(text)
    whole = pieces(splitter, text + more)
    assert pieces(splitter, text[:cut]) + pieces(splitter, text[cut:] + more) == whole


def pieces(splitter, text):
    """Pre-tokens and special tokens of a text."""
    parts = splitter.split(text)
    return [p for i, part in enumerate(parts) for p in ([part] if i % 2 else pretokens(part))]


@given(st.text() | st.text(" \t\n\u3000\x1cab'1é.", max_size=12))
@settings(max_examples=150, database=None, deadline=None, derandomize=True)
def test_words_end_where_pre_tokens_end(text):
    """The pre-tokens of the words of a text are those of the text."""
    assert "".join(words(text)) == text
    assert [p for word in words(text) for p in pretokens(word)] == pretokens(text)


@given(st.lists(st.text("ab '\n<e>\u3000é", max_size=6), max_size=12), st.sets(st.integers(0, 6)))
@settings(max_examples=150, database=None, deadline=None, derandomize=True)
def test_any_pieces(texts, chosen):
    """`encode_iterable` gives the ids of the whole text."""
    specials = [SPECIALS[i] for i in sorted(chosen)]
    merges = [(b"a", b"b"), (b"b", b"a"), (b" ", b"ab"), (b"'", b"a"), (b"\n", b"\n"), (b"<", b"e")]
    vocab = dict(enumerate([bytes([i]) for i in range(256)] + [a + b for a, b in merges]))
    tokenizer = Tokenizer(vocab, merges, specials)
    assert list(tokenizer.encode_iterable(texts)) == tokenizer.encode("".join(texts))


def test_long_words_agree_with_the_textbook(tokenizer):
    """A word of 3,000 letters, where ranks meet in every order."""
    drawn = random.Random(5)
    word = "".join(drawn.choice("theandsr") for _ in range(3000))
    parts = tuple(bytes([b]) for b in word.encode())
    for pair in tokenizer.merges:
        parts = merge(parts, pair)
    assert [tokenizer.vocab[i] for i in tokenizer.encode(word)] == list(parts)


def test_any_bytes_come_back(tokenizer, tmp_path):
    """A file that is no UTF-8 is encoded byte by byte when it is read with surrogateescape."""
    data = random.Random(2).randbytes(3000)
    ids = tokenizer.encode(data.decode("utf-8", "surrogateescape"))
    assert b"".join(tokenizer.vocab[i] for i in ids) == data
    assert tokenizer.decode(ids) == data.decode("utf-8", "replace")
    (tmp_path / "bytes").write_bytes(data)
    counted = count_pretokens(tmp_path / "bytes")
    assert sum(len(word) * count for word, count in counted.items()) == len(data)


def test_counting_needs_little_memory(tmp_path, monkeypatch):
    """The file is read in pieces: 1 MB with few different words needs far less memory."""
    path = tmp_path / "long.txt"
    path.write_text("the miller and the reed, don't they sing?\n" * 25_000)
    monkeypatch.setattr(pretokenization, "_CHUNK_BYTES", 1 << 15)
    tracemalloc.start()
    counts = count_pretokens(path, [SEPARATOR], 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts[b" the"] == 25_000
    assert peak < 700_000


def test_what_is_remembered_is_bounded(tokenizer, monkeypatch):
    """The tables of words that were met are emptied when they are full."""
    monkeypatch.setattr("cs336_basics.tokenizer._MEMO_ENTRIES", 100)
    text = " ".join(map(str, range(5000)))
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert max(len(tokenizer._of_word), len(tokenizer._of_pretoken)) <= 100


@pytest.mark.parametrize("save", ["save", "save_hugging_face"])
def test_a_file_is_whole_or_not_there(tokenizer, tmp_path, monkeypatch, save):
    """When the last step fails, the old file stays, and nothing else is left."""
    path = tmp_path / "tokenizer.json"
    path.write_text("old")

    def fail(*_):
        raise OSError("no")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no"):
        getattr(tokenizer, save)(path)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]
