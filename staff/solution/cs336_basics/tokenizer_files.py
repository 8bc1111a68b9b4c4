"""The two file forms of a tokenizer: our own, and Hugging Face's `tokenizer.json`.

Both forms are JSON, so reading a file runs no code. A file is written under a temporary name first,
and replaces the old file when it is complete.
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_Path = str | os.PathLike[str]
_Tokenizer = tuple[dict[int, bytes], list[tuple[bytes, bytes]], list[str]]

_FORMAT = "bpe-tokenizer"
_VERSION = 1


def write_tokenizer(
    path: _Path,
    vocab: Mapping[int, bytes],
    merges: Sequence[tuple[bytes, bytes]],
    special_tokens: Sequence[str],
) -> None:
    r"""Write a tokenizer in our own form, in ASCII.

    The file holds one JSON object::

        {"format": "bpe-tokenizer", "version": 1,
         "vocab": [[0, "\u0000"], ..., [256, "th"], ...],
         "merges": [["t", "h"], ...],
         "special_tokens": ["<|endoftext|>"]}

    In `vocab` and `merges`, each character of a string represents the byte of the same number
    (Latin-1), so that any bytes can be written. `special_tokens` are ordinary strings.
    """
    tokenizer = {
        "format": _FORMAT,
        "version": _VERSION,
        "vocab": [[token_id, token.decode("latin-1")] for token_id, token in vocab.items()],
        "merges": [[a.decode("latin-1"), b.decode("latin-1")] for a, b in merges],
        "special_tokens": list(special_tokens),
    }
    _write(path, json.dumps(tokenizer))


def read_tokenizer(path: _Path) -> _Tokenizer:
    """Read a file that `write_tokenizer` wrote; return vocabulary, merges and special tokens.

    Raises:
        ValueError: the file does not have that form; the text says why.
    """
    found = _read(path)
    if found.get("format") != _FORMAT or found.get("version") != _VERSION:
        raise ValueError(f"{path}: expected format {_FORMAT!r}, version {_VERSION}")
    try:
        vocab = {int(token_id): token.encode("latin-1") for token_id, token in found["vocab"]}
        merges = [(a.encode("latin-1"), b.encode("latin-1")) for a, b in found["merges"]]
        return vocab, merges, [str(special) for special in found["special_tokens"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path}: damaged ({type(error).__name__}: {error})") from error


def write_hugging_face(
    path: _Path,
    vocab: Mapping[int, bytes],
    merges: Sequence[tuple[bytes, bytes]],
    special_tokens: Sequence[str],
) -> None:
    """Write a `tokenizer.json`: a byte-level BPE model with GPT-2's pattern.

    In this form, every byte is written as a printable character (Radford et al. 2019). A printable
    byte is written as itself; the others are written, in order, as the characters from U+0100 on.
    """
    letters = _letters()
    specials = {special.encode(): special for special in special_tokens}
    names = {
        token_id: specials.get(token) or "".join(letters[byte] for byte in token)
        for token_id, token in vocab.items()
    }
    added = [
        {"id": token_id, "content": specials[token], "special": True, "normalized": False}
        | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
        for token_id, token in vocab.items()
        if token in specials
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    byte_level["use_regex"] = True
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {name: token_id for token_id, name in names.items()},
        "merges": [["".join(letters[byte] for byte in token) for token in pair] for pair in merges],
    }
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": model,
    }
    _write(path, json.dumps(tokenizer, ensure_ascii=False))


def read_hugging_face(path: _Path) -> _Tokenizer:
    """Read a `tokenizer.json`; return vocabulary, merges and special tokens.

    Raises:
        ValueError: the file is not a `tokenizer.json`, or its tokenizer works differently: it is
            not a byte-level BPE, or has another pattern, a normaliser or an added space. The text
            says which.
    """
    found = _read(path)
    try:
        _refuse_other_kinds(found)
        bytes_of = {letter: byte for byte, letter in enumerate(_letters())}
        specials = {token["content"]: token["id"] for token in found["added_tokens"]}
        model = found["model"]
        vocab = {
            token_id: bytes(bytes_of[letter] for letter in name)
            for name, token_id in model["vocab"].items()
            if name not in specials
        }
        vocab |= {token_id: special.encode() for special, token_id in specials.items()}
        pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
        merges = [
            (bytes(bytes_of[letter] for letter in a), bytes(bytes_of[letter] for letter in b))
            for a, b in pairs
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: no tokenizer.json ({type(error).__name__}: {error})") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return dict(sorted(vocab.items())), merges, list(specials)


def _refuse_other_kinds(tokenizer: dict[str, Any]) -> None:
    model, before = tokenizer["model"], tokenizer["pre_tokenizer"] or {}
    wrong = {
        f"its model is {model['type']}, not BPE": model["type"] != "BPE",
        "its pre-tokenizer is not ByteLevel alone": before.get("type") != "ByteLevel",
        "its pre-tokenizer uses another pattern": not before.get("use_regex", True),
        "it puts a space in front of the text": before.get("add_prefix_space", True),
        "it normalises the text": tokenizer["normalizer"] is not None,
        "it takes whole words from the vocabulary": model.get("ignore_merges"),
        "it drops merges at random": model.get("dropout"),
        "it marks the ends or the insides of words": model.get("end_of_word_suffix")
        or model.get("continuing_subword_prefix"),
        "an added token takes the white space around it, or whole words only": any(
            token.get(key)
            for token in tokenizer["added_tokens"]
            for key in ("lstrip", "rstrip", "single_word")
        ),
    }
    for what, is_wrong in wrong.items():
        if is_wrong:
            raise ValueError(what)


def _letters() -> list[str]:
    """Return the character that represents each byte in Hugging Face's files."""
    prints = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in prints else next(others)) for byte in range(256)]


def _write(path: _Path, text: str) -> None:
    handle, name = tempfile.mkstemp(suffix=".json", dir=Path(path).parent)
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _read(path: _Path) -> dict[str, Any]:
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: no JSON ({error})") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected a JSON object, found a {type(found).__name__}")
    return found
