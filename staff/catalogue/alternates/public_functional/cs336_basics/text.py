"""Tokenizer as functions and one thin class. Special tokens go to the end of the vocabulary."""

import os
from collections import Counter
from functools import lru_cache

import regex

PAT = regex.compile(
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)


def count_words(path: str | os.PathLike, specials: list[str]) -> Counter:
    with open(path, "rb") as f:
        text = f.read().decode("utf-8", errors="ignore")
    if specials:
        ordered = sorted(specials, key=len, reverse=True)
        docs = regex.split("|".join(map(regex.escape, ordered)), text)
    else:
        docs = [text]
    words = Counter()
    for doc in docs:
        for m in PAT.finditer(doc):
            words[tuple(bytes((b,)) for b in m.group().encode())] += 1
    return words


def apply_merge(word: tuple, pair: tuple) -> tuple:
    out = []
    i = 0
    while i < len(word):
        if word[i : i + 2] == pair:
            out.append(pair[0] + pair[1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return tuple(out)


def train(path, vocab_size, specials):
    words = count_words(path, specials)
    merges = []
    while 256 + len(merges) + len(specials) < vocab_size:
        pairs = Counter()
        for word, n in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += n
        if not pairs:
            break
        best = max(pairs.items(), key=lambda kv: (kv[1], kv[0]))[0]
        merges.append(best)
        merged = Counter()
        for word, n in words.items():
            merged[apply_merge(word, best)] += n
        words = merged
    vocab = {i: bytes((i,)) for i in range(256)}
    for a, b in merges:
        vocab[len(vocab)] = a + b
    for s in specials:
        vocab[len(vocab)] = s.encode()
    return vocab, merges


class Codec:
    def __init__(self, vocab, merges, specials=None):
        self.vocab = dict(vocab)
        self.specials = sorted(specials or (), key=len, reverse=True)
        for s in specials or ():
            if s.encode() not in self.vocab.values():
                self.vocab[max(self.vocab) + 1] = s.encode()
        self.ids = {b: i for i, b in self.vocab.items()}
        ranks = {pair: i for i, pair in enumerate(merges)}

        @lru_cache(maxsize=20000)
        def word_ids(word: str) -> list[int]:
            parts = tuple(bytes((b,)) for b in word.encode())
            while True:
                candidates = [p for p in zip(parts, parts[1:]) if p in ranks]
                if not candidates:
                    return [self.ids[p] for p in parts]
                parts = apply_merge(parts, min(candidates, key=ranks.__getitem__))

        self.word_ids = word_ids

    def _special_at(self, text, i):
        return next((s for s in self.specials if text.startswith(s, i)), None)

    def encode(self, text):
        ids = []
        start = i = 0
        while i <= len(text):
            s = self._special_at(text, i) if i < len(text) else None
            if s or i == len(text):
                for m in PAT.finditer(text[start:i]):
                    ids += self.word_ids(m.group())
                if s:
                    ids.append(self.ids[s.encode()])
                    i += len(s)
                    start = i
                    continue
            i += 1
        return ids

    def encode_iterable(self, pieces):
        """A line end between two visible characters is a safe place to stop."""
        kept = ""
        for piece in pieces:
            kept += piece
            stop = 0
            for m in regex.finditer(r"(?<=\S)\n(?=\S)", kept):
                if not any("\n" in s for s in self.specials):
                    stop = m.end()
            if stop:
                yield from self.encode(kept[:stop])
                kept = kept[stop:]
        yield from self.encode(kept)

    def decode(self, ids):
        return b"".join([self.vocab[i] for i in ids]).decode("utf-8", "replace")
