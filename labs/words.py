"""The stories word by word: small enough a vocabulary for a model that learns in a minute."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labs.stories import text_of

UNKNOWN = "?"
"""Stands for every word that is not in the vocabulary."""


@dataclass(frozen=True)
class Vocabulary:
    """The words that a model knows; a word's id is its place."""

    words: tuple[str, ...]

    def ids(self, pieces: Sequence[str]) -> npt.NDArray[np.uint16]:
        """Give the id of each word; that of `UNKNOWN` for those that it doesn't know."""
        places = {word: place for place, word in enumerate(self.words)}
        unknown = places[UNKNOWN]
        return np.array([places.get(piece, unknown) for piece in pieces], dtype=np.uint16)


def split(text: str) -> list[str]:
    """Cut a text into words in lower case, numbers and single signs; white space goes."""
    return re.findall(r"<\|endoftext\|>|[a-z]+(?:'[a-z]+)?|\d+|\S", text.lower())


def story_words(size: int, vocab_size: int, seed: int) -> tuple[Vocabulary, npt.NDArray[np.uint16]]:
    """Give the most frequent words of at least `size` bytes of stories, and the stories' ids."""
    pieces = split("".join(text_of(size, seed)))
    frequent = Counter(piece for piece in pieces if piece != UNKNOWN).most_common(vocab_size - 1)
    vocabulary = Vocabulary((UNKNOWN, *(word for word, _ in frequent)))
    return vocabulary, vocabulary.ids(pieces)
