"""Byte-pair encoding: again and again, the most frequent pair of tokens becomes a token.

A merge changes few words. So the counts of pairs are kept, and only those next to a merge are
updated, in place of counting everything anew.
"""

import os
from collections.abc import Sequence


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
    raise NotImplementedError("train_bpe: handout §4.2")
