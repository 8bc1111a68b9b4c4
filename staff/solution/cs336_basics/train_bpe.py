"""Byte-pair encoding: again and again, the most frequent pair of tokens becomes a token.

A merge changes few words. So the counts of pairs are kept, and only those next to a merge are
updated, in place of counting everything anew.
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

    Training starts from the 256 single bytes and counts, in every pre-token, all pairs of
    neighbouring tokens; `aaaa` holds `(a, a)` three times. The pair with the greatest count becomes
    a token, wherever it stands, from left to right. Of several pairs with that count, the one whose
    tuple of bytes is greatest is taken: `(b"b", b"a")` before `(b"ab", b"z")`. Training ends when
    the vocabulary is full, or when no pair is left.

    Args:
        input_path: a text file in UTF-8; its bytes are taken as they are.
        vocab_size: number of tokens, single bytes and special tokens included.
        special_tokens: strings that end a document and are tokens as they stand. Nothing in them
            is counted or merged.
        num_processes: see `count_pretokens`. The result doesn't depend on it.

    Returns:
        The vocabulary, id → bytes, and the merges in the order in which they were made. The single
        bytes have the ids 0 to 255, then come the merges, and the special tokens have the last ids.

    Raises:
        ValueError: `vocab_size` has no room for the single bytes and the special tokens.
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
    """All different pre-tokens in one row, linked so that a merge costs what it changes.

    A token stands at the place of its first byte. `places` remembers where a pair came to be; an
    entry whose tokens have changed since is skipped when it is met.
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
        """Merge a pair everywhere, and return the pairs that there are more of now."""
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
    """Gives the pair that is next: the greatest count, and of these the greatest tuple of bytes.

    Counts that fall are left as they are in the heap, and put right when they come to its top.
    """

    def __init__(self, counts: dict[_Pair, int], tokens: Sequence[bytes]) -> None:
        self._counts = counts
        self._tokens = tokens
        self._descending: list[str] = []
        self._heap: list[tuple[int, str, _Pair]] = []
        self.push(counts)

    def push(self, pairs: Mapping[_Pair, int] | set[_Pair]) -> None:
        """Put pairs in whose counts have grown."""
        known = len(self._descending)
        self._descending += [_descending(token) for token in self._tokens[known:]]
        for pair in pairs:
            first, second = pair
            order = self._descending[first] + self._descending[second]
            heapq.heappush(self._heap, (-self._counts[pair], order, pair))

    def pop(self) -> _Pair | None:
        """Take out the next pair; None where no pair is left."""
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
    """Turn the order round: the greater the bytes, the smaller the text.

    The last character is greater than all others, so that `b"ab"` comes before its beginning
    `b"a"`, and two texts in a row compare as a pair does.
    """
    return token.translate(_COMPLEMENT).decode("latin-1") + "\u0100"


_COMPLEMENT = bytes(range(255, -1, -1))
