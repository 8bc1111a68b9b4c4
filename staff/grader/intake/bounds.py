"""What an archive gives is counted, and what it asks for is bounded."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO, Protocol, Self

from tests.harness.errors import SubmissionError

MAX_RATIO = 200
_RATIO_FROM = 5_000_000
"""Below that many bytes a good ratio is no bomb: a table of zeros has one."""
_MAX_AT_ONCE = 8_000_000
"""Bytes. A zip's list of members is read in one piece, whose size the zip gives."""


class Content(Protocol):
    """What can be read and closed."""

    def read(self, size: int, /) -> bytes:
        """Read on."""
        ...

    def close(self) -> None:
        """Read no more."""
        ...


class Counted(io.BufferedIOBase):
    """A file that counts the bytes it gives, and gives no more at once than is sensible."""

    def __init__(self, file: BinaryIO, head: bytes) -> None:
        self._file = file
        self.head = head
        self.consumed = 0

    def read(self, size: int | None = -1) -> bytes:
        """Read; a reader that asks for much at once was told to by the archive."""
        if size is not None and size > _MAX_AT_ONCE:
            raise ValueError("its list of members is larger than any submission's")
        chunk = self._file.read(_MAX_AT_ONCE if size is None or size < 0 else size)
        self.consumed += len(chunk)
        return chunk

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go elsewhere in the file."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Say where in the file one is."""
        return self._file.tell()

    def seekable(self) -> bool:
        """It is a regular file."""
        return True

    def readable(self) -> bool:
        """It was opened for that."""
        return True


class Unpacked:
    """What comes out of a decompressor, held against what went in."""

    def __init__(self, content: Content, name: str, packed: Callable[[], int]) -> None:
        self._content = content
        self._name = name
        self._packed = packed
        self._size = 0

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        self._content.close()

    def read(self, size: int) -> bytes:
        """Read on.

        Raises:
            SubmissionError: far more comes out than went in.
        """
        chunk = self._content.read(size)
        self._size += len(chunk)
        if self._size > _RATIO_FROM and self._size > MAX_RATIO * self._packed():
            raise SubmissionError(
                f"{self._name} unpacks to more than {MAX_RATIO} times its size; "
                "hand in the code alone"
            )
        return chunk
