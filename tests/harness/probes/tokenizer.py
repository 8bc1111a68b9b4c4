"""Probes of the tokenizer and its training.

Arguments describe a vocabulary briefly, so that saved cases stay small. It consists of the tokens
in `first`, the 256 single bytes, the merged tokens, and the tokens in `last`; their ids count from
zero in this order.

Lines of Python and memory are counted in the submission's process, where a dishonest submission
could forge the numbers.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from tests.harness.plain import Plain
from tests.harness.probes.symbols import resolve
from tests.harness.recipes import scratch_file

Pair = tuple[bytes, bytes]

_BYTES = {bytes([i]) for i in range(256)}
_gettrace, _settrace = sys.gettrace, sys.settrace  # bound before the submission is loaded


def bpe_training(
    adapters: ModuleType,
    input_path: str,
    vocab_size: int,
    special_tokens: Sequence[str] = (),
    options: dict[str, Plain] | None = None,
) -> dict[str, Plain]:
    """Train on a file; return the merges in order, the sorted tokens, and a summary of the ids.

    Args:
        adapters: the adapters module of the submission.
        input_path: the path of the file.
        vocab_size: the number of tokens.
        special_tokens: the special tokens.
        options: further keyword arguments, such as `num_processes`.
    """
    vocab, merges = adapters.run_train_bpe(
        input_path=input_path,
        vocab_size=vocab_size,
        special_tokens=list(special_tokens),
        **options or {},
    )
    return {
        "merges": [tuple(pair) for pair in merges],
        "single bytes": sum(token in _BYTES for token in set(vocab.values())),
        "other tokens": sorted(token for token in vocab.values() if token not in _BYTES),
        "ids": (min(vocab), max(vocab), len(vocab)),
    }


def bpe_encoding(
    adapters: ModuleType,
    texts: Sequence[str],
    merges: Sequence[Pair],
    first: Sequence[bytes] = (),
    last: Sequence[bytes] = (),
    special_tokens: Sequence[str] | None = None,
) -> list[list[int]]:
    """Encode several texts with one tokenizer."""
    tokenizer = _tokenizer(adapters, merges, first, last, special_tokens)
    return [_ints(tokenizer.encode(text)) for text in texts]


def bpe_pieces(
    adapters: ModuleType,
    texts: Sequence[Sequence[str]],
    merges: Sequence[Pair],
    first: Sequence[bytes] = (),
    last: Sequence[bytes] = (),
    special_tokens: Sequence[str] | None = None,
) -> list[list[int]]:
    """Encode several texts with one tokenizer; each text is given in pieces."""
    tokenizer = _tokenizer(adapters, merges, first, last, special_tokens)
    return [_ints(tokenizer.encode_iterable(iter(pieces))) for pieces in texts]


def bpe_decoding(
    adapters: ModuleType,
    ids: Sequence[Sequence[int]],
    merges: Sequence[Pair],
    first: Sequence[bytes] = (),
    last: Sequence[bytes] = (),
    special_tokens: Sequence[str] | None = None,
) -> list[str]:
    """Decode several lists of ids with one tokenizer."""
    tokenizer = _tokenizer(adapters, merges, first, last, special_tokens)
    return [tokenizer.decode(list(some)) for some in ids]


def bpe_decoding_error(
    adapters: ModuleType, ids: Sequence[int], merges: Sequence[Pair]
) -> str | None:
    """Return the name of the exception that decoding raises; None if it raises none."""
    tokenizer = _tokenizer(adapters, merges)
    try:
        tokenizer.decode(list(ids))
    except Exception as error:  # noqa: BLE001 - its type is the observation
        return type(error).__name__
    return None


def bpe_arguments_after(
    adapters: ModuleType, text: str, merges: Sequence[Pair], special_tokens: Sequence[str]
) -> dict[str, Plain]:
    """Return the caller's vocabulary, merges and special tokens after a text was encoded."""
    vocab, pairs, specials = vocabulary(merges), list(merges), list(special_tokens)
    tokenizer = adapters.get_tokenizer(vocab, pairs, specials)
    tokenizer.decode(tokenizer.encode(text))
    return {"vocab": vocab, "merges": pairs, "special_tokens": specials}


def bpe_pulls(
    adapters: ModuleType, pieces: Sequence[str], merges: Sequence[Pair], special_tokens: list[str]
) -> dict[str, int]:
    """Count the pieces that `encode_iterable` has read after the call, and at its first id.

    `encode_iterable` may return an iterable or an iterator.
    """
    taken = 0

    def counting() -> Iterator[str]:
        nonlocal taken
        for piece in pieces:
            taken += 1
            yield piece

    tokenizer = _tokenizer(adapters, merges, (), (), special_tokens)
    ids = iter(tokenizer.encode_iterable(counting()))
    made = taken
    next(ids)
    return {"made": made, "first": taken}


def bpe_memory(
    adapters: ModuleType, piece: str, times: int, merges: Sequence[Pair], special_tokens: list[str]
) -> int:
    """Return the peak of memory, in bytes, while `times` copies of a piece are encoded."""
    tokenizer = _tokenizer(adapters, merges, (), (), special_tokens)
    tokenizer.encode(piece)  # caches that are kept between texts do not count
    tracemalloc.start()
    try:
        for _ in tokenizer.encode_iterable(piece for _ in range(times)):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bpe_training_work(
    adapters: ModuleType, input_path: str, vocab_sizes: Sequence[int]
) -> list[int]:
    """Count the lines of Python that run while a tokenizer of each size is trained on a file."""

    def train(vocab_size: int) -> object:
        return adapters.run_train_bpe(
            input_path=input_path, vocab_size=vocab_size, special_tokens=[]
        )

    return [lines_run(train, vocab_size) for vocab_size in vocab_sizes]


def bpe_encoding_work(
    adapters: ModuleType, texts: Sequence[str], merges: Sequence[Pair], *, by_letter: bool = False
) -> list[int]:
    """Count the lines of Python that run while a new tokenizer encodes each text.

    Args:
        adapters: the adapters module of the submission.
        texts: the texts.
        merges: the merges of the tokenizers.
        by_letter: pass the text to `encode_iterable`, one character at a time.
    """

    def encode(tokenizer: Any, text: str) -> object:
        return list(tokenizer.encode_iterable(iter(text))) if by_letter else tokenizer.encode(text)

    return [lines_run(encode, _tokenizer(adapters, merges), text) for text in texts]


def bpe_files(
    symbol: str,
    methods: tuple[str, str],
    texts: Sequence[str],
    merges: Sequence[Pair],
    special_tokens: list[str],
) -> dict[str, Plain]:
    """Write a tokenizer to a file, read it again, and encode texts with both.

    Args:
        symbol: the class, as `package.module:Name`.
        methods: the name of the method that writes, and of the method that reads.
        texts: the texts to encode.
        merges: the merges of the tokenizer.
        special_tokens: its special tokens, which are not in its vocabulary.
    """
    kind = resolve(symbol)
    before = kind(vocabulary(merges), list(merges), special_tokens)
    path = scratch_file(".json")
    getattr(before, methods[0])(path)
    after = getattr(kind, methods[1])(path)
    return {
        "before": [_ints(before.encode(text)) for text in texts],
        "after": [_ints(after.encode(text)) for text in texts],
        "decoded": [after.decode(after.encode(text)) for text in texts],
        "content": Path(path).read_bytes(),
    }


def bpe_reading(symbol: str, method: str, path: str, texts: Sequence[str]) -> list[list[int]]:
    """Encode texts with a tokenizer that is read from a file."""
    tokenizer = getattr(resolve(symbol), method)(path)
    return [_ints(tokenizer.encode(text)) for text in texts]


def vocabulary(
    merges: Sequence[Pair], first: Sequence[bytes] = (), last: Sequence[bytes] = ()
) -> dict[int, bytes]:
    """Return the described vocabulary; a token that two merges make occurs once."""
    made = dict.fromkeys(one + other for one, other in merges)
    return dict(enumerate([*first, *(bytes([i]) for i in range(256)), *made, *last]))


def lines_run(function: Callable[..., object], *arguments: object) -> int:
    """Count the lines of Python that a call runs, in all files; each run gives the same count."""
    count = 0

    def local(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    before = _gettrace()
    _settrace(lambda *_: local)
    try:
        function(*arguments)
    finally:
        _settrace(before)
    return count


def _tokenizer(
    adapters: ModuleType,
    merges: Sequence[Pair],
    first: Sequence[bytes] = (),
    last: Sequence[bytes] = (),
    special_tokens: Sequence[str] | None = None,
) -> Any:
    specials = None if special_tokens is None else list(special_tokens)
    return adapters.get_tokenizer(vocabulary(merges, first, last), list(merges), specials)


def _ints(ids: Any) -> list[int]:
    return [int(token_id) for token_id in ids]
