"""Byte-pair encoding: training merges the most frequent pair of tokens, again and again.

A merge changes few words. The counts of pairs are therefore stored, and a merge updates only the
counts of the pairs next to it.
"""

import heapq
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from cs336_basics.pretokenization import count_pretokens

_Pair = tuple[int, int]

_END = -1  # stands between words
_GONE = -2  # stands where a token was merged into the one before it


def train_bpe(
    input_path: str | os.PathLike[str],
    vocab_size: int,
    special_tokens: Sequence[str] = (),
    num_processes: int | None = None,
) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    """Train a byte-level BPE tokenizer (Sennrich et al. 2016, on bytes: Radford et al. 2019).

    Training starts from the 256 single bytes, and counts all pairs of neighbouring tokens in every
    pre-token; `aaaa` holds `(a, a)` three times. The pair with the greatest count is merged into
    one token, in every pre-token and from left to right; then the next pair is merged. If several
    pairs have the greatest count, the greatest tuple of bytes is merged: `(b"b", b"a")` before
    `(b"ab", b"z")`. Training ends when the vocabulary is full, or when no pair is left.

    Args:
        input_path: a text file in UTF-8; its bytes are not normalised.
        vocab_size: number of tokens, including the single bytes and the special tokens.
        special_tokens: strings that end a document and are one token each. Nothing in them is
            counted or merged.
        num_processes: see `count_pretokens`. The result does not depend on it.

    Returns:
        The vocabulary, which maps ids to bytes, and the merges in the order of training. The single
        bytes have the ids 0 to 255, the merges have the next ids, and the special tokens have the
        last ids.

    Raises:
        ValueError: `vocab_size` is too small for the single bytes and the special tokens.
    """
    specials = [special.encode() for special in dict.fromkeys(special_tokens)]
    size = vocab_size - len(specials)
    if size < 256:
        raise ValueError(
            f"vocab_size is {vocab_size}; bytes and special tokens need {256 + len(specials)}"
        )
    words = _Words(count_pretokens(input_path, special_tokens, num_processes))
    tokens = [bytes([value]) for value in range(256)]
    ids = {token: i for i, token in enumerate(tokens)}
    queue = _Queue(words.counts, tokens)
    merges = []
    while len(tokens) < size and (pair := queue.pop()):
        first, second = tokens[pair[0]], tokens[pair[1]]
        merges.append((first, second))
        new = ids.setdefault(first + second, len(tokens))
        if new == len(tokens):
            tokens.append(first + second)
        queue.push(words.merge(pair, new))
    return dict(enumerate(tokens + specials)), merges


class _Words:
    """All different pre-tokens in one linked list: a merge takes time only where it applies.

    The index of a token is that of its first byte. `places` holds the indices at which each pair
    was formed; an index whose tokens have changed since then is skipped.
    """

    def __init__(self, pretokens: Mapping[bytes, int]) -> None:
        self.tokens = [_END]
        self.weights = [0]
        for pretoken, count in pretokens.items():
            self.tokens += [*pretoken, _END]
            self.weights += [count] * (len(pretoken) + 1)
        self.before = list(range(-1, len(self.tokens) - 1))
        self.after = list(range(1, len(self.tokens) + 1))
        self.counts: dict[_Pair, int] = defaultdict(int)
        self.places: dict[_Pair, list[int]] = defaultdict(list)
        for place, pair in enumerate(pairwise(self.tokens)):
            if _END not in pair:
                self.counts[pair] += self.weights[place]
                self.places[pair].append(place)

    def merge(self, pair: _Pair, new: int) -> set[_Pair]:
        """Merge a pair everywhere, and return the pairs whose counts have grown."""
        first, second = pair
        tokens, counts, places = self.tokens, self.counts, self.places
        grown = set()
        for place in sorted(places[pair]):
            gone = self.after[place]
            if tokens[place] != first or tokens[gone] != second:
                continue
            left, right = self.before[place], self.after[gone]
            tokens[place], tokens[gone] = new, _GONE
            self.after[place], self.before[right] = right, place
            weight = self.weights[place]
            if (neighbour := tokens[left]) != _END:
                counts[neighbour, first] -= weight
                counts[neighbour, new] += weight
                places[neighbour, new].append(left)
                grown.add((neighbour, new))
            if (neighbour := tokens[right]) != _END:
                counts[second, neighbour] -= weight
                counts[new, neighbour] += weight
                places[new, neighbour].append(place)
                grown.add((new, neighbour))
        del counts[pair], places[pair]
        return grown


class _Queue:
    """A queue of pairs: the greatest count comes first, then the greatest tuple of bytes.

    If a count falls, its entry in the heap is corrected only when it comes to the top.
    """

    def __init__(self, counts: dict[_Pair, int], tokens: Sequence[bytes]) -> None:
        self._counts = counts
        self._tokens = tokens
        self._descending: list[str] = []
        self._heap: list[tuple[int, str, _Pair]] = []
        self.push(counts)

    def push(self, pairs: Mapping[_Pair, int] | set[_Pair]) -> None:
        """Add pairs whose counts have grown."""
        known = len(self._descending)
        self._descending += [_descending(token) for token in self._tokens[known:]]
        for pair in pairs:
            first, second = pair
            order = self._descending[first] + self._descending[second]
            heapq.heappush(self._heap, (-self._counts[pair], order, pair))

    def pop(self) -> _Pair | None:
        """Return the next pair; None if no pair is left."""
        while self._heap:
            negative, order, pair = self._heap[0]
            count = self._counts.get(pair, 0)
            if count == -negative and count:
                return pair
            if count:
                heapq.heapreplace(self._heap, (-count, order, pair))
            else:
                heapq.heappop(self._heap)
        return None


def _descending(token: bytes) -> str:
    """Return a text that sorts in the opposite order: greater bytes give a smaller text.

    The last character is greater than all others. So `b"ab"` comes before its prefix `b"a"`, and
    two joined texts sort like a pair of tokens.
    """
    return token.translate(_COMPLEMENT).decode("latin-1") + "\u0100"


_COMPLEMENT = bytes(range(255, -1, -1))
