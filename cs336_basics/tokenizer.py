"""The tokenizer: text to token ids and back."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self


class Tokenizer:
    """Byte-pair encoding with a given vocabulary and merges.

    Text becomes pre-tokens, these become bytes in UTF-8, and in each pre-token the pair of
    neighbouring tokens that was merged first in training is merged first, until no pair is left
    that training merged (Sennrich et al. 2016). Special tokens are never cut, whatever stands
    around them; of several that begin at the same place, the longest is taken.

    Args:
        vocab: id → bytes; it is copied, and the caller's is left as it is.
        merges: pairs of tokens, in the order in which training made them.
        special_tokens: strings that are tokens as they stand. Those that the vocabulary lacks are
            appended to it, with the ids after its greatest.

    Attributes:
        vocab: id → bytes, special tokens included.
        merges: as they were given.
        special_tokens: without repetitions.

    Raises:
        ValueError: a merge makes a token, or is made of one, that the vocabulary lacks; or a
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

        A text that was decoded with `surrogateescape` gives the bytes that it was decoded from.

        Raises:
            KeyError: the vocabulary lacks a single byte that the text needs.
            UnicodeEncodeError: the text holds half of a surrogate pair.
        """
        raise NotImplementedError("tokenizer: handout §4.3")

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        """Turn pieces of a text, such as the lines of an open file, into token ids one by one.

        The ids are those of `encode("".join(iterable))`, wherever the pieces end: inside a word, a
        special token, or white space. A piece is taken only when its ids are asked for, and no more
        text is kept than is needed to know the next token.
        """
        raise NotImplementedError("tokenizer: handout §4.3")

    def decode(self, ids: Iterable[int]) -> str:
        """Turn token ids into text; bytes that are no valid UTF-8 become U+FFFD.

        Raises:
            KeyError: an id is not in the vocabulary.
        """
        raise NotImplementedError("tokenizer: handout §4.3")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tokenizer to a file, in the form that `write_tokenizer` describes."""
        raise NotImplementedError("tokenizer: handout §4.3")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises:
            ValueError: the file is none of that form.
        """
        raise NotImplementedError("tokenizer: handout §4.3")

    def save_hugging_face(self, path: str | os.PathLike[str]) -> None:
        """Write a `tokenizer.json` that the `tokenizers` and `transformers` packages read."""
        raise NotImplementedError("tokenizer: handout §4.3")

    @classmethod
    def load_hugging_face(cls, path: str | os.PathLike[str]) -> Self:
        """Read a `tokenizer.json`, if it does what this class does: GPT-2's does, for example.

        Raises:
            ValueError: the file is no such tokenizer, or one that works differently.
        """
        raise NotImplementedError("tokenizer: handout §4.3")
