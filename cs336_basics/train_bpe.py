"""Byte-pair encoding: training merges the most frequent pair of tokens, again and again.

A merge changes few words. The counts of pairs are therefore stored, and a merge updates only the
counts of the pairs next to it.
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
    raise NotImplementedError("train_bpe: handout §4.2")
