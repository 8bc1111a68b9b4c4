"""The numbers on tokens in §4 of the handout, computed again without the solution."""

import re
from collections import Counter
from itertools import pairwise

import regex

from staff.figures import tokenizer as figures
from staff.tests.handout.text import ON_ONE_LINE, printed

WORDS = {"tone": 5, "stone": 4, "no": 4, "not": 4, "on": 1, "ten": 1}
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def test_utf8() -> None:
    """Catches a wrong code point, byte or count in the examples of UTF-8."""
    for character in "Aé漢🦊":
        code_point = f"U+{ord(character):04X}"
        printed(f"| {character} | {code_point} | `{character.encode().hex(' ')}` |")
    text = "naïve 🦊"
    printed(f"has {len(text)} characters and {len(text.encode())} bytes")
    assert (len("\u00e9".encode()), len("e\u0301".encode())) == (2, 3)


def test_pretokens() -> None:
    """Catches a caption with other pre-tokens than its picture, or a wrong printed pattern."""
    assert f'PATTERN = r"""{PATTERN}"""' in ON_ONE_LINE
    pieces = regex.findall(PATTERN, figures.SENTENCE)
    assert "".join(pieces) == figures.SENTENCE
    named = ", ".join("a line break" if p == "\n" else f'"{p}"' for p in pieces)
    printed(f"cut into {len(pieces)} pre-tokens: {named}.")
    assert regex.findall(PATTERN, "DON'T") == ["DON", "'", "T"]
    assert "|".join(figures.ALTERNATIVES.values()) == PATTERN


Word = tuple[bytes, ...]
Pair = tuple[bytes, bytes]


def letters(word: str) -> Word:
    """Split a word into single bytes."""
    return tuple(bytes([byte]) for byte in word.encode())


def merged(word: Word, pair: Pair) -> Word:
    """Merge every occurrence of a pair in a word, from left to right."""
    out: list[bytes] = []
    rest = list(word)
    while rest:
        taken = 2 if tuple(rest[:2]) == pair else 1
        out.append(b"".join(rest[:taken]))
        del rest[:taken]
    return tuple(out)


def training() -> list[tuple[Counter[Pair], Pair, list[Word]]]:
    """Train six merges on `WORDS`; return the counts, the pair and the new words of each."""
    words = {word: letters(word) for word in WORDS}
    steps = []
    for _ in range(6):
        counts: Counter[Pair] = Counter()
        for word, tokens in words.items():
            for pair in pairwise(tokens):
                counts[pair] += WORDS[word]
        best = max(counts, key=lambda pair: (counts[pair], pair))
        words = {word: merged(tokens, best) for word, tokens in words.items()}
        steps.append((counts, best, list(words.values())))
    return steps


def test_bpe_counts_and_merges() -> None:
    """Catches a wrong count, a missing pair or a wrongly broken tie in the table of merges."""
    for number, (counts, best, _) in enumerate(training()):
        found = re.search(
            rf"\| {number} \| (\([^|]*) \| (\w+) (\w+) → \*\*(\w+)\*\* \| (\d+) \|", ON_ONE_LINE
        )
        assert found is not None
        row, first, second, token, token_id = found.groups()
        pairs = re.findall(r"\((\w+), (\w+)\) \**(\d+)", row)
        shown = [((a.encode(), b.encode()), int(count)) for a, b, count in pairs]
        assert dict(shown) == counts
        assert [count for _, count in shown] == sorted(counts.values(), reverse=True)
        assert (first.encode(), second.encode()) == best
        assert token.encode() == b"".join(best)
        assert int(token_id) == 256 + number


def test_bpe_words() -> None:
    """Catches a wrong row in the table of the words after each merge."""
    rows = {"none": [letters(word) for word in WORDS]}
    rows |= {str(number): words for number, (_, _, words) in enumerate(training())}
    for name, words in rows.items():
        printed(f"| {name} | " + " | ".join(b" ".join(word).decode() for word in words) + " |")


def test_bpe_ties_need_bytes() -> None:
    """Catches an example in which comparing ids breaks a tie as comparing bytes does."""
    steps = training()
    ids = {bytes([byte]): byte for byte in range(256)}
    ties = 0
    for number, (counts, best, _) in enumerate(steps):
        level = [pair for pair in counts if counts[pair] == counts[best]]
        if len(level) > 1:
            ties += 1
            assert max(level, key=lambda pair: (ids[pair[0]], ids[pair[1]])) != best
        ids[b"".join(best)] = 256 + number
    assert ties == 2
    assert (b"b", b"a") > (b"ab", b"z")


def encoded(pretoken: str) -> list[bytes]:
    """Encode a pre-token with the six merges, applied in their order."""
    tokens = letters(pretoken)
    for _, pair, _ in training():
        tokens = merged(tokens, pair)
    return list(tokens)


def test_encoding() -> None:
    """Catches a wrong id in the encoding example, or longest matches in place of merges."""
    merges = [pair for _, pair, _ in training()]
    ids = {bytes([byte]): byte for byte in range(256)}
    ids |= {b"".join(pair): 256 + rank for rank, pair in enumerate(merges)}
    assert encoded("non") == [b"n", b"on"]
    assert b"no" in ids  # the longest match would take this token
    assert merges.index((b"n", b"o")) == 3
    text = "not one stone"
    tokens = []
    for pretoken in regex.findall(PATTERN, text):
        tokens += encoded(pretoken)
        shown, cut = pretoken.replace(" ", "␣"), " ".join(letter for letter in pretoken)
        joined = b" ".join(t.replace(b" ", "␣".encode()) for t in encoded(pretoken)).decode()
        numbers = ", ".join(str(ids[token]) for token in encoded(pretoken))
        cut = cut.replace("   ", " ").replace("  ", "␣ ")
        printed(f"| `{shown}` | {cut} | {joined} | {numbers} |")
    printed(f"{len(text)} bytes of text became {len(tokens)} tokens")
    printed(f"a ratio of {len(text) / len(tokens):.2f}")
    assert [ids[token] for token in encoded("stone")] == [260]
