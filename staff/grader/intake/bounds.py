"""These readers limit how many bytes an archive can make the grader unpack or keep in memory."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO, Protocol, Self

from tests.harness.errors import SubmissionError

MAX_RATIO = 200
"""The largest allowed ratio of unpacked to packed bytes."""
_RATIO_FROM = 5_000_000
"""Below this number of unpacked bytes, the ratio is ignored: a harmless table of zeros has a large
one."""
_MAX_AT_ONCE = 8_000_000
"""The most bytes of one read. A zip's list of members is read at once, and the zip states its size.
"""


class Content(Protocol):
    """A stream that can be read and closed."""

    def read(self, size: int, /) -> bytes:
        """Read up to `size` bytes."""
        ...

    def close(self) -> None:
        """Close the stream."""
        ...


class Counted(io.BufferedIOBase):
    """A file that counts the bytes read from it, and limits the bytes of one read."""

    def __init__(self, file: BinaryIO, head: bytes) -> None:
        self._file = file
        self.head = head
        self.consumed = 0

    def read(self, size: int | None = -1) -> bytes:
        """Read up to `size` bytes.

        Raises:
            ValueError: the size is larger than any submission needs; the archive's header asks
                for it.
        """
        if size is not None and size > _MAX_AT_ONCE:
            raise ValueError("its list of members is larger than any submission's")
        chunk = self._file.read(_MAX_AT_ONCE if size is None or size < 0 else size)
        self.consumed += len(chunk)
        return chunk

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the position in the file."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the position in the file."""
        return self._file.tell()

    def seekable(self) -> bool:
        """Return True, since this is a regular file."""
        return True

    def readable(self) -> bool:
        """Return True, since the file is open for reading."""
        return True


class Unpacked:
    """The output of a decompressor, whose size is compared with the size of the input.

    Args:
        content: the output.
        name: the name of the archive, for messages.
        packed: returns the number of bytes that the decompressor has read so far.
    """

    def __init__(self, content: Content, name: str, packed: Callable[[], int]) -> None:
        self._content = content
        self._name = name
        self._packed = packed
        self._size = 0

    def __enter__(self) -> Self:
        """Return this object."""
        return self

    def __exit__(self, *_: object) -> None:
        self._content.close()

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes.

        Raises:
            SubmissionError: the output is more than `MAX_RATIO` times as large as the input.
        """
        chunk = self._content.read(size)
        self._size += len(chunk)
        if self._size > _RATIO_FROM and self._size > MAX_RATIO * self._packed():
            raise SubmissionError(
                f"{self._name} unpacks to more than {MAX_RATIO} times its size; "
                "hand in only your code"
            )
        return chunk
