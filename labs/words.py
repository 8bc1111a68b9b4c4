"""Split the stories into words, so that a model with a small vocabulary learns in a minute."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labs.stories import text_of

UNKNOWN = "?"
"""The word that replaces every word outside the vocabulary."""


@dataclass(frozen=True)
class Vocabulary:
    """The vocabulary of a model; a word's id is its index."""

    words: tuple[str, ...]

    def ids(self, pieces: Sequence[str]) -> npt.NDArray[np.uint16]:
        """Return the id of each word; words outside the vocabulary get the id of `UNKNOWN`."""
        index = {word: number for number, word in enumerate(self.words)}
        unknown = index[UNKNOWN]
        return np.array([index.get(piece, unknown) for piece in pieces], dtype=np.uint16)


def split(text: str) -> list[str]:
    """Split a text into lower-case words, numbers and single signs, without white space."""
    return re.findall(r"<\|endoftext\|>|[a-z]+(?:'[a-z]+)?|\d+|\S", text.lower())


def story_words(size: int, vocab_size: int, seed: int) -> tuple[Vocabulary, npt.NDArray[np.uint16]]:
    """Return the most frequent words of at least `size` bytes of stories, and the stories' ids."""
    pieces = split("".join(text_of(size, seed)))
    frequent = Counter(piece for piece in pieces if piece != UNKNOWN).most_common(vocab_size - 1)
    vocabulary = Vocabulary((UNKNOWN, *(word for word, _ in frequent)))
    return vocabulary, vocabulary.ids(pieces)
