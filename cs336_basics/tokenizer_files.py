"""The two files a tokenizer can live in: a form of our own, and Hugging Face's `tokenizer.json`.

Both are JSON, so that reading one runs no code. Both are written to a temporary file that takes
the old one's place when it is whole.
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

    In `vocab` and `merges`, each character of a text stands for the byte of the same number
    (Latin-1), so that any bytes can be written. `special_tokens` are ordinary texts.
    """
    raise NotImplementedError("tokenizer: handout §4.3")


def read_tokenizer(path: _Path) -> _Tokenizer:
    """Read what `write_tokenizer` wrote: vocabulary, merges and special tokens.

    Raises:
        ValueError: the file is none of that form; the text says why.
    """
    raise NotImplementedError("tokenizer: handout §4.3")


def write_hugging_face(
    path: _Path,
    vocab: Mapping[int, bytes],
    merges: Sequence[tuple[bytes, bytes]],
    special_tokens: Sequence[str],
) -> None:
    """Write a `tokenizer.json`: a byte-level BPE model with GPT-2's pattern.

    There every byte is written as a printable character (Radford et al. 2019): those that print
    stand for themselves, and the others, in their order, for the characters from U+0100 on.
    """
    raise NotImplementedError("tokenizer: handout §4.3")


def read_hugging_face(path: _Path) -> _Tokenizer:
    """Read a `tokenizer.json`: vocabulary, merges and special tokens.

    Raises:
        ValueError: the file is no `tokenizer.json`, or that of a tokenizer which works differently:
            no byte-level BPE, another pattern, a normaliser, a space put in front. The text says
            what.
    """
    raise NotImplementedError("tokenizer: handout §4.3")
