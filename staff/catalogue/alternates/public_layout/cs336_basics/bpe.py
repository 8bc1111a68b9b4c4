"""Byte-level BPE: special tokens come first in my vocabularies."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import regex as re

GPT2_SPLIT = re.compile(
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
)


def split_on_specials(text, specials, keep):
    if not specials:
        return [text]
    pattern = "|".join(re.escape(s) for s in sorted(specials, key=len, reverse=True))
    return re.split(f"({pattern})" if keep else pattern, text)


def learn_bpe(path, vocab_size, specials):
    with open(path, encoding="utf-8", errors="replace", newline="") as f:
        corpus = f.read()
    freqs = Counter()
    for doc in split_on_specials(corpus, specials, keep=False):
        freqs.update(m.group() for m in GPT2_SPLIT.finditer(doc))

    vocab = {i: s.encode("utf-8") for i, s in enumerate(specials)}
    for b in range(256):
        vocab[len(vocab)] = bytes([b])
    words = [[bytes([b]) for b in w.encode("utf-8")] for w in freqs]
    counts = list(freqs.values())

    pair_freq = defaultdict(int)
    where = defaultdict(set)
    for i, w in enumerate(words):
        for pair in zip(w, w[1:]):
            pair_freq[pair] += counts[i]
            where[pair].add(i)

    merges = []
    while len(vocab) < vocab_size:
        if not pair_freq:
            break
        top = max(pair_freq.values())
        best = max(p for p, c in pair_freq.items() if c == top)
        merges.append(best)
        vocab[len(vocab)] = best[0] + best[1]
        for i in where.pop(best):
            w = words[i]
            for pair in zip(w, w[1:]):
                pair_freq[pair] -= counts[i]
                if pair_freq[pair] == 0:
                    del pair_freq[pair]
            out, j = [], 0
            while j < len(w):
                if j + 1 < len(w) and (w[j], w[j + 1]) == best:
                    out.append(w[j] + w[j + 1])
                    j += 2
                else:
                    out.append(w[j])
                    j += 1
            words[i] = out
            for pair in zip(out, out[1:]):
                pair_freq[pair] += counts[i]
                where[pair].add(i)
    return vocab, merges


class BPE:
    """Encoder and decoder. It writes to the vocabulary that it is given."""

    def __init__(self, vocab, merges, special_tokens=None):
        self.id_to_bytes = vocab
        self.specials = special_tokens or []
        known = set(vocab.values())
        for s in self.specials:
            if s.encode("utf-8") not in known:
                vocab[len(vocab)] = s.encode("utf-8")
        self.bytes_to_id = {b: i for i, b in vocab.items()}
        self.rank = {pair: r for r, pair in enumerate(merges)}
        self.cache = {}

    def _bpe(self, word):
        if word in self.cache:
            return self.cache[word]
        parts = [bytes([b]) for b in word.encode("utf-8")]
        while len(parts) > 1:
            pairs = set(zip(parts, parts[1:]))
            best = min(pairs, key=lambda p: self.rank.get(p, float("inf")))
            if best not in self.rank:
                break
            out, j = [], 0
            while j < len(parts):
                if j + 1 < len(parts) and (parts[j], parts[j + 1]) == best:
                    out.append(parts[j] + parts[j + 1])
                    j += 2
                else:
                    out.append(parts[j])
                    j += 1
            parts = out
        self.cache[word] = [self.bytes_to_id[p] for p in parts]
        return self.cache[word]

    def encode(self, text: str) -> list[int]:
        ids = []
        for part in split_on_specials(text, self.specials, keep=True):
            if part in self.specials:
                ids.append(self.bytes_to_id[part.encode("utf-8")])
            else:
                for m in GPT2_SPLIT.finditer(part):
                    ids.extend(self._bpe(m.group()))
        return ids

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        """Keep the text back from the last place that no token and no special can reach across."""
        reach = max((len(s) for s in self.specials), default=1)
        rest = ""
        for chunk in iterable:
            rest += chunk
            for at in range(len(rest) - reach, 0, -1):
                if rest[at] in " \n" and not rest[at - 1].isspace() and self._free(rest, at, reach):
                    yield from self.encode(rest[:at])
                    rest = rest[at:]
                    break
        yield from self.encode(rest)

    def _free(self, text, at, reach):
        return not any(
            text.startswith(s, i) and i + len(s) > at
            for s in self.specials
            for i in range(max(0, at - reach), at)
        )

    def decode(self, ids: list[int]) -> str:
        return b"".join(self.id_to_bytes[i] for i in ids).decode("utf-8", errors="replace")
