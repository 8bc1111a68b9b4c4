"""Compression: how much text a token stands for."""

from collections.abc import Sequence


def compression_ratio(text: str, token_ids: Sequence[int]) -> float:
    """Bytes of the text in UTF-8 for each of its tokens.

    Args:
        text: what was encoded.
        token_ids: what it became.

    Raises:
        ValueError: there are no tokens.
    """
    if not token_ids:
        raise ValueError("there are no tokens, so no ratio of bytes to tokens")
    return len(text.encode("utf-8")) / len(token_ids)
