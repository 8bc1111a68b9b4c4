"""Pre-tokenisation: text is split into pre-tokens, and no merge joins bytes of two pre-tokens.

A text contains the same pre-token many times. Training counts the pre-tokens first, and then works
on each different one only once. This makes training fast enough for a laptop.
"""

import multiprocessing
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from io import BufferedReader

import regex

PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""

_PRETOKEN = regex.compile(PATTERN)
_WORD = re.compile(r"[^\S\x1c-\x1f]*[\S\x1c-\x1f]+|\s+")
_CUT = regex.compile(r"(?r)(?<=\p{L})\P{L}|(?<=\p{N})\P{N}|(?<=\S)\s")
_CHUNK_BYTES = 1 << 20
_WINDOW_BYTES = 1 << 7
_BYTES_FOR_EACH_PROCESS = 8 << 20


def pretokens(text: str) -> list[str]:
    r"""Split text without special tokens into pre-tokens; joined, they are the text again.

    The pre-tokens are the successive matches of GPT-2's pattern (Radford et al. 2019):
    `'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`. The `regex` package
    supports the classes `\p{L}` and `\p{N}` of letters and numbers; `re` does not.
    """
    return _PRETOKEN.findall(text)


def words(text: str) -> list[str]:
    """Split text without special tokens into words; joined, they are the text again.

    A word is a run of visible characters with all white space before it. Its pre-tokens do not
    depend on the text around it. A text repeats its words often, so results for words can be
    cached.
    """
    # `re` is much faster than `regex`, but counts the separators 1c to 1f as white space.
    return _WORD.findall(text)


class Splitter:
    """Splits text at special tokens, and finds other indices at which a text may be split.

    Args:
        special_tokens: strings that are one token each; a document ends at each of them.

    Attributes:
        longest: number of characters of the longest special token; 0 if there is none.

    Raises:
        ValueError: a special token is empty.
    """

    longest: int

    def __init__(self, special_tokens: Sequence[str] = ()) -> None:
        if "" in special_tokens:
            raise ValueError("a special token must not be empty")
        longest_first = sorted(special_tokens, key=len, reverse=True)
        either = "|".join(map(re.escape, longest_first))
        self.longest = max(map(len, special_tokens), default=0)
        self._special = re.compile(f"({either})") if either else None
        self._special_anywhere = re.compile(f"(?=({either}))")

    def split(self, text: str) -> list[str]:
        """Split a text into documents and special tokens, which alternate.

        The first and the last item are documents; a document may be empty. Special tokens are
        searched from left to right. If several begin at the same index, the longest is taken.
        """
        return self._special.split(text) if self._special else [text]

    def last_cut(self, text: str, start: int = 0) -> int:
        """Find the last index at which `text` may be split, whatever text follows.

        The two sides, processed separately, have the same documents, special tokens and pre-tokens
        as together.

        Args:
            text: any text.
            start: the smallest allowed index; the text before it is still used as context.

        Returns:
            The index; 0 if there is none.
        """
        # The pattern is searched from the end. It finds characters that begin a pre-token in any
        # context. The end of the text is left out, since it may be the start of a special token.
        known = len(text) - max(self.longest - 1, 0)
        found = _CUT.search(text, start, max(known, start))
        cut = found.start() if found else 0
        while cut and (begins := self._specials_across(text, cut)):
            cut = min(begins)
        return cut if cut > start else 0

    def _specials_across(self, text: str, place: int) -> list[int]:
        """Return the start indices of the special tokens that `place` would cut in two."""
        if not self.longest:
            return []
        first = max(0, place - self.longest + 1)
        found = self._special_anywhere.finditer(text, first, place + self.longest - 1)
        return [m.start() for m in found if m.start() < place < m.end(1)]


def count_pretokens(
    input_path: str | os.PathLike[str],
    special_tokens: Sequence[str] = (),
    num_processes: int | None = None,
) -> Counter[bytes]:
    """Count the pre-tokens of a file; special tokens are not counted.

    The bytes of the file are not normalised: line ends are kept, and a byte that is not valid UTF-8
    counts as a separate symbol. The file is read in pieces, so the memory depends on the number of
    different pre-tokens, not on the size of the file. The counts do not depend on the number of
    processes.

    Args:
        input_path: a text file in UTF-8.
        special_tokens: strings at which documents end.
        num_processes: number of shares of the work; there are no more processes than cores. None
            means one share for each core, or fewer for a small file. The processes are spawned, so
            a program that uses several must have its main part under
            `if __name__ == "__main__":`.
    """
    size = os.path.getsize(input_path)
    if num_processes is None:
        num_processes = min(os.cpu_count() or 1, size // _BYTES_FOR_EACH_PROCESS)
    num_processes = max(num_processes, 1)
    step = min(_CHUNK_BYTES, size // num_processes + 1)
    spans = list(_spans(input_path, special_tokens, step))
    shares = [spans[i::num_processes] for i in range(min(num_processes, len(spans)))]
    if len(shares) <= 1:
        counts = _count(input_path, special_tokens, spans)
    else:
        counts = Counter()
        workers = min(len(shares), os.cpu_count() or 1)
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            paths, specials = [input_path] * len(shares), [special_tokens] * len(shares)
            for found in pool.map(_count, paths, specials, shares):
                counts.update(found)
    return Counter({_bytes(pretoken): count for pretoken, count in counts.items()})


def _count(
    path: str | os.PathLike[str], special_tokens: Sequence[str], spans: Sequence[tuple[int, int]]
) -> Counter[str]:
    """Count the pre-tokens of some spans of a file."""
    splitter = Splitter(special_tokens)
    counts: Counter[str] = Counter()
    with open(path, "rb") as file:
        for start, end in spans:
            file.seek(start)
            text = _text(file.read(end - start))
            different: Counter[str] = Counter()
            for document in splitter.split(text)[::2]:
                different.update(words(document))
            for word, count in different.items():
                for pretoken in pretokens(word):
                    counts[pretoken] += count
    return counts


def _spans(
    path: str | os.PathLike[str], special_tokens: Sequence[str], step: int
) -> Iterator[tuple[int, int]]:
    """Divide a file into spans of little more than `step` bytes that can be counted separately."""
    splitter = Splitter(special_tokens)
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        start = 0
        while start < size:
            end = _cut_behind(file, start + step, size, splitter)
            yield start, end
            start = end


def _cut_behind(file: BufferedReader, offset: int, size: int, splitter: Splitter) -> int:
    """Find an offset after `offset` at which the file may be split, in a window that grows."""
    edge = 4  # the window may cut a character, whose bytes then decode as other characters
    length = _WINDOW_BYTES + 4 * splitter.longest
    while offset + length < size:
        file.seek(offset)
        text = _text(file.read(length))[:-edge]
        if cut := splitter.last_cut(text, edge + splitter.longest):
            return offset + len(_bytes(text[:cut]))
        length *= 2
    return size


def _text(data: bytes) -> str:
    """Decode UTF-8; each byte that is invalid becomes a surrogate, and is restored by `_bytes`."""
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
