"""The two file forms of a tokenizer: our own, and Hugging Face's `tokenizer.json`.

Both forms are JSON, so reading a file runs no code. A file is written under a temporary name first,
and replaces the old file when it is complete.
"""

import os
from collections.abc import Mapping, Sequence

_Path = str | os.PathLike[str]
_Tokenizer = tuple[dict[int, bytes], list[tuple[bytes, bytes]], list[str]]


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
    raise NotImplementedError("tokenizer: handout §4.3")


def read_tokenizer(path: _Path) -> _Tokenizer:
    """Read a file that `write_tokenizer` wrote; return vocabulary, merges and special tokens.

    Raises:
        ValueError: the file does not have that form; the text says why.
    """
    raise NotImplementedError("tokenizer: handout §4.3")


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
    raise NotImplementedError("tokenizer: handout §4.3")


def read_hugging_face(path: _Path) -> _Tokenizer:
    """Read a `tokenizer.json`; return vocabulary, merges and special tokens.

    Raises:
        ValueError: the file is not a `tokenizer.json`, or its tokenizer works differently: it is
            not a byte-level BPE, or has another pattern, a normaliser or an added space. The text
            says which.
    """
    raise NotImplementedError("tokenizer: handout §4.3")
