"""Tokenizer files: failed saving, files of Hugging Face, and errors for unusable files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders

from cs336_basics.tokenizer import Tokenizer

TOKENIZER = Tokenizer({i: bytes([i]) for i in range(256)} | {256: b"th"}, [(b"t", b"h")], ["<e>"])


def test_a_file_of_hugging_face_is_read(tmp_path: Path) -> None:
    """Catches ids, merges or special tokens lost in loading a file that `tokenizers` wrote."""
    TOKENIZER.save_hugging_face(tmp_path / "ours.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "ours.json"))
    theirs.decoder = decoders.ByteLevel()
    theirs.save(str(tmp_path / "theirs.json"))
    again = Tokenizer.load_hugging_face(tmp_path / "theirs.json")
    assert (again.vocab, again.merges) == (TOKENIZER.vocab, TOKENIZER.merges)
    assert again.special_tokens == ["<e>"]


@pytest.mark.parametrize("save", [TOKENIZER.save, TOKENIZER.save_hugging_face])
def test_a_file_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: Callable[[Path], None]
) -> None:
    """Catches a failed save that damages the old file or leaves a temporary file."""
    path = tmp_path / "tokenizer.json"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no"):
        save(path)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


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
def test_files_that_are_damaged(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    """Catches an error for a damaged file without the file's name or the reason."""
    path = tmp_path / "tokenizer.json"
    TOKENIZER.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=told) as raised:
        Tokenizer.load(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("content", [b"no JSON", b"[1]", b'{"format": 1', b"\xff"])
@pytest.mark.parametrize("load", [Tokenizer.load, Tokenizer.load_hugging_face])
def test_files_that_are_something_else(
    tmp_path: Path, content: bytes, load: Callable[[Path], Tokenizer]
) -> None:
    """Catches an error that doesn't say that a file contains no JSON object."""
    path = tmp_path / "file"
    path.write_bytes(content)
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
def test_tokenizers_that_work_differently(
    tmp_path: Path, place: tuple[str | int, ...], value: object, told: str
) -> None:
    """Catches a Hugging Face tokenizer that is loaded although ours would return other ids."""
    path = tmp_path / "tokenizer.json"
    TOKENIZER.save_hugging_face(path)
    content: Any = json.loads(path.read_text(encoding="utf-8"))
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=told):
        Tokenizer.load_hugging_face(path)
