"""Compression: the number of bytes of text per token."""

from collections.abc import Sequence


def compression_ratio(text: str, token_ids: Sequence[int]) -> float:
    """Compute the number of UTF-8 bytes of a text per token.

    Args:
        text: the text.
        token_ids: the ids of its tokens.

    Raises:
        ValueError: there are no tokens.
    """
    if not token_ids:
        raise ValueError("there are no tokens, so no ratio of bytes to tokens")
    return len(text.encode("utf-8")) / len(token_ids)
