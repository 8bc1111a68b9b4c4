"""The tokenizer: text to token ids and back."""

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

    Text becomes pre-tokens, these become bytes in UTF-8, and in each pre-token the pair of
    neighbouring tokens that was merged first in training is merged first, until no pair is left
    that training merged (Sennrich et al. 2016). Special tokens are never cut, whatever stands
    around them; of several that begin at the same place, the longest is taken.

    Args:
        vocab: id → bytes; it is copied, and the caller's is left as it is.
        merges: pairs of tokens, in the order in which training made them.
        special_tokens: strings that are tokens as they stand. Those that the vocabulary lacks are
            appended to it, with the ids after its greatest.

    Attributes:
        vocab: id → bytes, special tokens included.
        merges: as they were given.
        special_tokens: without repetitions.

    Raises:
        ValueError: a merge makes a token, or is made of one, that the vocabulary lacks; or a
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

        A text that was decoded with `surrogateescape` gives the bytes that it was decoded from.

        Raises:
            KeyError: the vocabulary lacks a single byte that the text needs.
            UnicodeEncodeError: the text holds half of a surrogate pair.
        """
        blocks = (text[i : i + _BLOCK] for i in range(0, len(text), _BLOCK))
        return list(self.encode_iterable(blocks))

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        """Turn pieces of a text, such as the lines of an open file, into token ids one by one.

        The ids are those of `encode("".join(iterable))`, wherever the pieces end: inside a word, a
        special token, or white space. A piece is taken only when its ids are asked for, and no more
        text is kept than is needed to know the next token.
        """
        return chain.from_iterable(self._encoded(iterable))

    def decode(self, ids: Iterable[int]) -> str:
        """Turn token ids into text; bytes that are no valid UTF-8 become U+FFFD.

        Raises:
            KeyError: an id is not in the vocabulary.
        """
        return b"".join(map(self.vocab.__getitem__, ids)).decode("utf-8", "replace")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tokenizer to a file, in the form that `write_tokenizer` describes."""
        write_tokenizer(path, self.vocab, self.merges, self.special_tokens)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises:
            ValueError: the file is none of that form.
        """
        return cls(*read_tokenizer(path))

    def save_hugging_face(self, path: str | os.PathLike[str]) -> None:
        """Write a `tokenizer.json` that the `tokenizers` and `transformers` packages read."""
        write_hugging_face(path, self.vocab, self.merges, self.special_tokens)

    @classmethod
    def load_hugging_face(cls, path: str | os.PathLike[str]) -> Self:
        """Read a `tokenizer.json`, if it does what this class does: GPT-2's does, for example.

        Raises:
            ValueError: the file is no such tokenizer, or one that works differently.
        """
        return cls(*read_hugging_face(path))

    def _encoded(self, pieces: Iterable[str]) -> Iterator[Iterable[int]]:
        """Give the ids in portions, and keep the text back from its last cut on.

        What is kept is searched again when it has doubled, not at each piece: a long word may come
        letter by letter.
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
        """Merge with a heap of `(rank, place)`, over places that know their neighbours."""
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
    """For each pair of ids that merges: when, and into which id."""
    try:
        return {
            (ids[first], ids[second]): (rank, ids[first + second])
            for rank, (first, second) in enumerate(merges)
        }
    except KeyError as error:
        raise ValueError(f"merges need {error.args[0]!r}, which the vocabulary lacks") from None


class _Memo(dict[str, list[int]]):
    """Remembers the ids of short strings, and forgets all of them when there are too many."""

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
