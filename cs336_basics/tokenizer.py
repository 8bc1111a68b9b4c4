"""The tokenizer: it encodes text as token ids, and decodes ids as text."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self


class Tokenizer:
    """Byte-pair encoding with a given vocabulary and merges.

    Text is split into pre-tokens, and these into their UTF-8 bytes. In each pre-token, the pair of
    neighbouring tokens that training merged first is merged first. This repeats until no pair is
    left that training merged (Sennrich et al. 2016). A special token in the text always becomes one
    id. If several special tokens begin at the same index, the longest is taken.

    Args:
        vocab: the bytes of each id; the dict is copied and does not change.
        merges: pairs of tokens, in the order in which training made them.
        special_tokens: strings that are one token each. Those that are not in the vocabulary are
            added to it, with the ids after its greatest.

    Attributes:
        vocab: the bytes of each id, including the special tokens.
        merges: the given merges.
        special_tokens: the given special tokens, without repetitions.

    Raises:
        ValueError: the vocabulary lacks a token of a merge or the token that the merge makes, or a
            special token is empty.
    """

    vocab: dict[int, bytes]
    merges: list[tuple[bytes, bytes]]
    special_tokens: list[str]

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[tuple[bytes, bytes]],
        special_tokens: Sequence[str] | None = None,
    ) -> None:
        raise NotImplementedError("tokenizer: handout §4.3")

    def encode(self, text: str) -> list[int]:
        """Turn text into token ids.

        A text that was decoded with `surrogateescape` is encoded as its original bytes.

        Raises:
            KeyError: the vocabulary lacks a single byte that the text needs.
            UnicodeEncodeError: the text holds half of a surrogate pair.
        """
        raise NotImplementedError("tokenizer: handout §4.3")

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        """Yield the token ids of a text that comes in pieces, such as the lines of an open file.

        The ids are those of `encode("".join(iterable))`, wherever the pieces end: inside a word, a
        special token, or white space. A piece is read only when its ids are requested. Only text
        that the next token may depend on is kept in memory.
        """
        raise NotImplementedError("tokenizer: handout §4.3")

    def decode(self, ids: Iterable[int]) -> str:
        """Turn token ids into text; bytes that are not valid UTF-8 become U+FFFD.

        Raises:
            KeyError: an id is not in the vocabulary.
        """
        raise NotImplementedError("tokenizer: handout §4.3")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tokenizer to a file, in the form that `write_tokenizer` describes."""
        raise NotImplementedError("tokenizer: handout §4.3")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a tokenizer from a file that `save` wrote.

        Raises:
            ValueError: the file does not have that form.
        """
        raise NotImplementedError("tokenizer: handout §4.3")

    def save_hugging_face(self, path: str | os.PathLike[str]) -> None:
        """Write a `tokenizer.json` that the `tokenizers` and `transformers` packages read."""
        raise NotImplementedError("tokenizer: handout §4.3")

    @classmethod
    def load_hugging_face(cls, path: str | os.PathLike[str]) -> Self:
        """Read the `tokenizer.json` of a tokenizer that works like this class, such as GPT-2's.

        Raises:
            ValueError: the file is not a `tokenizer.json`, or its tokenizer works differently.
        """
        raise NotImplementedError("tokenizer: handout §4.3")
