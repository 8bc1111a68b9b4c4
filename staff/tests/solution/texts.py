"""Texts for the tests of the tokenizer, and byte-pair encoding in a simple textbook version.

This module doesn't use the solution, so an error of the solution can't be in an expected value.
"""

import itertools
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import regex

from labs.stories import SEPARATOR, text_of

PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
ODD = (
    "Hm…  tea\t\tfor 2½, at 3:45?\r\n\r\n  « дом »\u00a0山水 👩‍🌾❤️  \n\n\n \x1c\x1d \x85\u2028 \x00"
    "e\u0301 ﬁ İ ß\u3000\u3000a\u200bb don't WON'T 'tis we'll've x_y_ 1a2b ٣٤ Ⅷ"
)
SPECIALS = [SEPARATOR, "<e>", "<e><e>", "> <", "a b", "ab", "ba"]
Pair = tuple[bytes, bytes]
Word = tuple[bytes, ...]


def write_stories(path: Path, size: int) -> Path:
    """Write stories of `size` bytes, followed by unusual characters."""
    path.write_text("".join(text_of(size, seed=3)) + ODD, encoding="utf-8", newline="")
    return path


def read(path: Path) -> str:
    """Read the text of a file without converting its line ends."""
    return path.read_bytes().decode()


def training(text: str, number: int) -> Generator[set[Pair], Pair | None, None]:
    """Train `number` merges, counting all pairs again each time; yield the most frequent pairs.

    The pair that the caller sends is merged next. If the caller sends none, the greatest of the
    most frequent pairs is merged.
    """
    counts = Counter(p.encode() for d in text.split(SEPARATOR) for p in regex.findall(PATTERN, d))
    corpus = {tuple(bytes([b]) for b in word): count for word, count in counts.items()}
    for _ in range(number):
        pairs: Counter[Pair] = Counter()
        for word, count in corpus.items():
            for pair in itertools.pairwise(word):
                pairs[pair] += count
        most = max(pairs.values())
        best = {pair for pair, count in pairs.items() if count == most}
        chosen = yield best
        corpus = {merge(word, chosen or max(best)): count for word, count in corpus.items()}


def merge(word: Word, pair: Pair) -> Word:
    """Merge every occurrence of a pair in a word, from left to right."""
    result: list[bytes] = []
    rest = list(reversed(word))
    while rest:
        token = rest.pop()
        if rest and (token, rest[-1]) == pair:
            token += rest.pop()
        result.append(token)
    return tuple(result)
