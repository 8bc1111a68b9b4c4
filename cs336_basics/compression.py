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
    raise NotImplementedError("compression_ratio: handout §5.7")
