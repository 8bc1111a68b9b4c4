"""What the tokenizer refuses, and what it says."""

import json

import pytest

from cs336_basics.pretokenization import Splitter
from cs336_basics.tokenizer import Tokenizer
from cs336_basics.train_bpe import train_bpe

BYTES = {i: bytes([i]) for i in range(256)}


def test_a_vocabulary_that_is_too_small(tmp_path):
    """Bytes and special tokens need room."""
    (tmp_path / "text").write_text("tea")
    with pytest.raises(ValueError, match="vocab_size is 256; bytes and special tokens need 257"):
        train_bpe(tmp_path / "text", 256, ["<e>", "<e>"])


def test_empty_special_tokens():
    """An empty special token would stand everywhere."""
    with pytest.raises(ValueError, match="a special token must not be empty"):
        Splitter(["<e>", ""])
    with pytest.raises(ValueError, match="a special token must not be empty"):
        Tokenizer(BYTES, [], [""])


@pytest.mark.parametrize("merge", [(b"a", b"b"), (b"ab", b"c")])
def test_merges_that_the_vocabulary_lacks(merge):
    """A merge needs its halves and what it makes."""
    with pytest.raises(ValueError, match=r"merges need b'ab', which the vocabulary lacks"):
        Tokenizer(BYTES, [merge])


def test_bytes_that_the_vocabulary_lacks():
    """A byte without a token is an error where it is met."""
    tokenizer = Tokenizer({0: b"a"}, [])
    assert tokenizer.encode("aa") == [0, 0]
    with pytest.raises(KeyError):
        tokenizer.encode("ab")


def test_unknown_ids():
    """An id without a token is an error."""
    with pytest.raises(KeyError, match="256"):
        Tokenizer(BYTES, []).decode([97, 256])


def test_half_a_surrogate_pair():
    """It is no character, and stands for no byte."""
    with pytest.raises(UnicodeEncodeError):
        Tokenizer(BYTES, []).encode("a\ud800")


def saved(tmp_path):
    """A file in our own form, and what it holds."""
    path = tmp_path / "tokenizer.json"
    Tokenizer(BYTES | {256: b"th"}, [(b"t", b"h")], ["<e>"]).save(path)
    return path, json.loads(path.read_text())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": 2}, "expected format 'bpe-tokenizer', version 1"),
        ({"format": "other"}, "expected format"),
        ({"vocab": [[0, "Ġ"]]}, "damaged"),
        ({"merges": [["a"]]}, "damaged"),
        ({"special_tokens": None}, "damaged"),
    ],
)
def test_files_that_are_damaged(tmp_path, change, told):
    """The error names the file and says what is wrong with it."""
    path, content = saved(tmp_path)
    path.write_text(json.dumps(content | change))
    with pytest.raises(ValueError, match=told) as raised:
        Tokenizer.load(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("content", ["no JSON", "[1]", '{"format": 1', b"\xff"])
@pytest.mark.parametrize("load", [Tokenizer.load, Tokenizer.load_hugging_face])
def test_files_that_are_something_else(tmp_path, content, load):
    """Anything may stand in a file."""
    path = tmp_path / "file"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=r"no JSON|expected a JSON object"):
        load(path)


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        (("model", "type"), "WordPiece", "its model is WordPiece, not BPE"),
        (("model", "ignore_merges"), True, "takes whole words from the vocabulary"),
        (("model", "dropout"), 0.1, "drops merges at random"),
        (("model", "end_of_word_suffix"), "</w>", "marks the ends"),
        (("pre_tokenizer", "add_prefix_space"), True, "puts a space in front"),
        (("pre_tokenizer", "use_regex"), False, "another pattern"),
        (("pre_tokenizer", "type"), "Sequence", "not ByteLevel alone"),
        (("normalizer",), {"type": "NFC"}, "normalises the text"),
        (("added_tokens", 0, "lstrip"), True, "takes the white space around it"),
        (("model", "merges"), None, "no tokenizer.json"),
        (("model",), None, "no tokenizer.json"),
    ],
)
def test_tokenizers_that_work_differently(tmp_path, place, value, told):
    """Of Hugging Face's tokenizers, those are refused that would give other ids."""
    path, _ = saved(tmp_path)
    Tokenizer.load(path).save_hugging_face(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=told):
        Tokenizer.load_hugging_face(path)
