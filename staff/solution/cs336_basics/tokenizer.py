"""The tokenizer: it encodes text as token ids, and decodes ids as text."""

import heapq
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Self

from cs336_basics.pretokenization import Splitter, pretokens, words
from cs336_basics.tokenizer_files import (
    read_hugging_face,
    read_tokenizer,
    write_hugging_face,
    write_tokenizer,
)

_BLOCK = 1 << 18  # characters that `encode` takes at a time
_MEMO_ENTRIES = 1 << 17
_NONE = (-1, -1)
_MEMO_LENGTH = 32  # characters; longer words hardly come again


class Tokenizer:
    """Byte-pair encoding with a given vocabulary and merges.

    Text is split into pre-tokens, and these into their UTF-8 bytes. In each pre-token, the pair of
    neighbouring tokens that training merged first is merged first. This repeats until no pair is
    left that training merged (Sennrich et al. 2016). A special token in the text always becomes one
    id. If several special tokens begin at the same index, the longest is taken.

    Args:
        vocab: the bytes of each id; the dict is copied and does not change.
        merges: pairs of tokens, in the order in which training made them.
        special_tokens: strings that are one token each. Those that are not in the vocabulary are
            added to it, with the ids after its greatest.

    Attributes:
        vocab: the bytes of each id, including the special tokens.
        merges: the given merges.
        special_tokens: the given special tokens, without repetitions.

    Raises:
        ValueError: the vocabulary lacks a token of a merge or the token that the merge makes, or a
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
        self.vocab = dict(vocab)
        self.merges = list(merges)
        self.special_tokens = list(dict.fromkeys(special_tokens or ()))
        ids = {token: token_id for token_id, token in self.vocab.items()}
        for special in self.special_tokens:
            if special.encode() not in ids:
                ids[special.encode()] = new = max(self.vocab, default=-1) + 1
                self.vocab[new] = special.encode()
        self._byte_ids = {byte: ids[bytes([byte])] for byte in range(256) if bytes([byte]) in ids}
        self._special_ids = {special: ids[special.encode()] for special in self.special_tokens}
        self._ranks = _ranks(self.merges, ids)
        self._splitter = Splitter(self.special_tokens)
        self._of_pretoken = _Memo(self._encode_pretoken)
        self._of_word = _Memo(self._encode_word)

    def encode(self, text: str) -> list[int]:
        """Turn text into token ids.

        A text that was decoded with `surrogateescape` is encoded as its original bytes.

        Raises:
            KeyError: the vocabulary lacks a single byte that the text needs.
            UnicodeEncodeError: the text holds half of a surrogate pair.
        """
        blocks = (text[i : i + _BLOCK] for i in range(0, len(text), _BLOCK))
        return list(self.encode_iterable(blocks))

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        """Yield the token ids of a text that comes in pieces, such as the lines of an open file.

        The ids are those of `encode("".join(iterable))`, wherever the pieces end: inside a word, a
        special token, or white space. A piece is read only when its ids are requested. Only text
        that the next token may depend on is kept in memory.
        """
        return chain.from_iterable(self._encoded(iterable))

    def decode(self, ids: Iterable[int]) -> str:
        """Turn token ids into text; bytes that are not valid UTF-8 become U+FFFD.

        Raises:
            KeyError: an id is not in the vocabulary.
        """
        return b"".join(map(self.vocab.__getitem__, ids)).decode("utf-8", "replace")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tokenizer to a file, in the form that `write_tokenizer` describes."""
        write_tokenizer(path, self.vocab, self.merges, self.special_tokens)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a tokenizer from a file that `save` wrote.

        Raises:
            ValueError: the file does not have that form.
        """
        return cls(*read_tokenizer(path))

    def save_hugging_face(self, path: str | os.PathLike[str]) -> None:
        """Write a `tokenizer.json` that the `tokenizers` and `transformers` packages read."""
        write_hugging_face(path, self.vocab, self.merges, self.special_tokens)

    @classmethod
    def load_hugging_face(cls, path: str | os.PathLike[str]) -> Self:
        """Read the `tokenizer.json` of a tokenizer that works like this class, such as GPT-2's.

        Raises:
            ValueError: the file is not a `tokenizer.json`, or its tokenizer works differently.
        """
        return cls(*read_hugging_face(path))

    def _encoded(self, pieces: Iterable[str]) -> Iterator[Iterable[int]]:
        """Yield the ids in portions; the text after the last possible split is held for later.

        The held text is searched again only after its length has doubled. Otherwise a long word
        that comes letter by letter would be searched at every letter.
        """
        held: list[str] = []
        length = enough = 0
        for piece in pieces:
            held.append(piece)
            length += len(piece)
            if length > enough:
                text = "".join(held)
                cut = self._splitter.last_cut(text)
                yield from self._encode_text(text[:cut])
                held = [text[cut:]]
                length -= cut
                enough = 2 * length
        yield from self._encode_text("".join(held))

    def _encode_text(self, text: str) -> Iterator[Iterable[int]]:
        for i, part in enumerate(self._splitter.split(text)):
            if i % 2:
                yield (self._special_ids[part],)
            else:
                yield chain.from_iterable(map(self._of_word.__getitem__, words(part)))

    def _encode_word(self, word: str) -> list[int]:
        return list(chain.from_iterable(map(self._of_pretoken.__getitem__, pretokens(word))))

    def _encode_pretoken(self, pretoken: str) -> list[int]:
        """Merge with a heap of `(rank, place)`; the tokens of the pre-token form a linked list."""
        data = pretoken.encode("utf-8", "surrogateescape")
        tokens = list(map(self._byte_ids.__getitem__, data))
        end = len(tokens)
        before, after = list(range(-1, end - 1)), list(range(1, end + 1))
        ranks = self._ranks
        heap = [
            (ranks[pair][0], place) for place, pair in enumerate(pairwise(tokens)) if pair in ranks
        ]
        heapq.heapify(heap)
        while heap:
            rank, place = heapq.heappop(heap)
            gone = after[place]
            if gone == end or ranks.get((tokens[place], tokens[gone]), _NONE)[0] != rank:
                continue  # merged with another neighbour in the meantime
            tokens[place] = ranks[tokens[place], tokens[gone]][1]
            tokens[gone] = -1
            after[place] = right = after[gone]
            if right < end:
                before[right] = place
                if found := ranks.get((tokens[place], tokens[right])):
                    heapq.heappush(heap, (found[0], place))
            if place and (found := ranks.get((tokens[before[place]], tokens[place]))):
                heapq.heappush(heap, (found[0], before[place]))
        return [token for token in tokens if token >= 0]


def _ranks(
    merges: Sequence[tuple[bytes, bytes]], ids: Mapping[bytes, int]
) -> dict[tuple[int, int], tuple[int, int]]:
    """Return, for each pair of ids that is merged, the rank of the merge and the new id."""
    try:
        return {
            (ids[first], ids[second]): (rank, ids[first + second])
            for rank, (first, second) in enumerate(merges)
        }
    except KeyError as error:
        raise ValueError(f"merges need {error.args[0]!r}, which the vocabulary lacks") from None


class _Memo(dict[str, list[int]]):
    """A cache of the ids of short strings; it is emptied when it is full."""

    def __init__(self, encode: Callable[[str], list[int]]) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, text: str) -> list[int]:
        ids = self._encode(text)
        if len(text) <= _MEMO_LENGTH:
            if len(self) >= _MEMO_ENTRIES:
                self.clear()
            self[text] = ids
        return ids
