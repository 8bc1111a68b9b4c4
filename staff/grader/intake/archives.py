"""The sources for zips and tars do not trust the sizes in an archive's headers.

They count the bytes while they unpack them, and keep only a limited number in memory at once.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, BinaryIO, Self, cast

from staff.grader.intake.bounds import Content, Counted, Unpacked
from staff.grader.intake.names import inside, quoted
from staff.grader.intake.sources import FILE, FOLDER, MAX_LISTED, Source, kind
from tests.harness.errors import SubmissionError

ENDINGS = (
    *(".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tbz2", ".tbz", ".txz", ".tar", ".zip"),
    *(".gz", ".bz2", ".xz"),
)
MAX_ARCHIVE = 100_000_000
"""The most bytes of the archive itself."""
MAX_TAR = 200_000_000
"""The most bytes of an uncompressed tar."""
_MAX_HEADER = 65_536
"""The most bytes of a tar's extension header, which holds a long name or a table of attributes."""
_EXTENSIONS = (
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
)
_CHUNK = 1 << 16
_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)
"""The errors that the readers raise if an archive is damaged, encrypted, or of a rare format."""
_PACKED: dict[bytes, Callable[[BinaryIO], Content]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}


def archive(path: Path) -> Source:
    """Return the source for an archive, whose format is recognised by its content.

    Raises:
        SubmissionError: the file can't be opened, is too large, or is not an archive.
    """
    name = quoted(path.name)[1:-1]
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise SubmissionError(f"{name} can't be opened: {error.strerror}") from error
    file = os.fdopen(fd, "rb")
    try:
        _check_file(name, os.fstat(fd))
        head = file.read(512)
        file.seek(0)
        ending = path.suffix.lower()
        if _packing(head) or head[257:262] == b"ustar" or ending == ".tar":
            return TarSource(name, file, head)
        if head[:2] == b"PK" or ending == ".zip":
            return ZipSource(name, file, head)
    except BaseException:
        file.close()
        raise
    file.close()
    raise SubmissionError(
        f"{name} is neither a folder nor a zip nor a tar (.tar, .tar.gz, .tar.bz2, .tar.xz); "
        "hand in one of these"
    )


@dataclass
class _Node:
    """A member of an archive, or a folder that holds members."""

    what: str
    """The kind: `FILE`, `FOLDER`, `a link`, …"""
    member: object = None
    twice: bool = False
    """Whether the archive holds two members with this path."""
    inner: dict[str, _Node] = field(default_factory=dict)


class _Archive:
    """The base class of both kinds of archives: it keeps a tree of their members."""

    what = "archive"

    def __init__(self, name: str, file: BinaryIO, head: bytes) -> None:
        self.name = name
        self._file = Counted(file, head)
        self._stack = ExitStack()
        self._stack.callback(file.close)
        self._top = _Node(FOLDER)
        self._count = 0

    def __enter__(self) -> Self:
        """Read the list of members.

        Raises:
            SubmissionError: the archive is damaged, or a member leads out of it.
        """
        try:
            with self._readable():
                self._list()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def children(self, folder: str) -> dict[str, str]:
        """See `Source.children`."""
        return {name: node.what for name, node in sorted(self._node(folder).inner.items())}

    def read(self, file: str) -> Iterator[bytes]:
        """See `Source.read`."""
        node = self._node(file)
        if node.twice:
            raise SubmissionError(f"{self.name} holds {quoted(file)} twice; pack it again")
        with self._readable(), self._open(node.member) as content:
            while chunk := content.read(_CHUNK):
                yield chunk

    def _list(self) -> None:
        raise NotImplementedError

    def _open(self, member: object) -> IO[bytes]:
        raise NotImplementedError

    def _add(self, raw: str, what: str, member: object) -> None:
        """Put a member into the tree, with the folders above it."""
        self._count += 1
        if self._count > MAX_LISTED:
            raise SubmissionError(
                f"{self.name} holds more than {MAX_LISTED} entries; hand in only your code"
            )
        path = inside(raw, self.name)
        steps = path.split("/") if path else []
        node = self._top
        for i, step in enumerate(steps):
            kind_here = what if i == len(steps) - 1 else FOLDER
            known = step in node.inner
            node = node.inner.setdefault(step, _Node(kind_here))
            if node.what != kind_here:
                raise SubmissionError(
                    f"{self.name} holds {quoted('/'.join(steps[: i + 1]))} "
                    f"as {node.what} and as {kind_here}; pack it again"
                )
        if what != FOLDER and steps:
            node.twice = known
            node.member = member

    def _node(self, path: str) -> _Node:
        node = self._top
        for step in path.split("/") if path else []:
            node = node.inner[step]
        return node

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn an error of the readers into a `SubmissionError`, whose message is one line."""
        try:
            yield
        except _DAMAGED as error:
            why = str(error) or type(error).__name__
            raise SubmissionError(
                f"{self.name} is not a readable {self.what}: {quoted(why)[1:-1]}; pack it again"
            ) from error


class ZipSource(_Archive):
    """A zip, whose members are unpacked one by one when they are read."""

    what = "zip"

    def _list(self) -> None:
        self._zip = self._stack.enter_context(zipfile.ZipFile(cast(IO[bytes], self._file)))
        for member in self._zip.infolist():
            # Only a zip made on Unix has a mode here; elsewhere these bits mean something else.
            mode = member.external_attr >> 16 if member.create_system == 3 else 0
            plain = FOLDER if member.is_dir() else FILE
            unix = kind(mode) if stat.S_IFMT(mode) else plain
            self._add(member.filename, plain if unix in (FILE, FOLDER) else unix, member)

    def _open(self, member: object) -> IO[bytes]:
        start = self._file.consumed
        content = self._zip.open(cast(zipfile.ZipInfo, member))
        return cast(IO[bytes], Unpacked(content, self.name, lambda: self._file.consumed - start))


class TarSource(_Archive):
    """A tar, which is decompressed once into a temporary file without a name."""

    what = "tar"

    def _list(self) -> None:
        # The stack closes the files that are opened here.
        plain = cast(BinaryIO, self._stack.enter_context(TemporaryFile()))  # noqa: SIM115
        self._expand(plain)
        plain.seek(0)
        opened = tarfile.open(fileobj=plain, mode="r:", tarinfo=_Header)  # noqa: SIM115
        self._tar = self._stack.enter_context(opened)
        for member in self._tar:
            what = FOLDER if member.isdir() else "a device"
            if member.issym() or member.islnk():
                what = "a link"
            elif member.isreg():
                what = "a file with holes" if member.issparse() else FILE
            elif member.isfifo():
                what = "a pipe"
            self._add(member.name, what, member)
        plain.seek(self._tar.offset)
        # At a damaged header, the reader stops as it does at the end, where all bytes are zero.
        if any(plain.read(tarfile.BLOCKSIZE)):
            raise tarfile.ReadError("a header is damaged")

    def _expand(self, plain: BinaryIO) -> None:
        unpack = _packing(self._file.head)
        if unpack is None:
            content = cast(IO[bytes], self._file)
        else:
            packed = unpack(cast(BinaryIO, self._file))
            counted = Unpacked(packed, self.name, lambda: self._file.consumed)
            content = self._stack.enter_context(cast(IO[bytes], counted))
        size = 0
        while chunk := content.read(_CHUNK):
            size += len(chunk)
            if size > MAX_TAR:
                raise SubmissionError(
                    f"{self.name} is too large: it may unpack to at most "
                    f"{MAX_TAR // 1_000_000} MB; hand in only your code"
                )
            plain.write(chunk)

    def _open(self, member: object) -> IO[bytes]:
        content = self._tar.extractfile(cast(tarfile.TarInfo, member))
        if content is None:
            raise tarfile.ReadError("a member has no content")
        return content


class _Header(tarfile.TarInfo):
    """A tar header that rejects an extension of megabytes, since the reader holds it in memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Parse a header; see `tarfile.TarInfo.frombuf`."""
        header = super().frombuf(buf, encoding, errors)
        if header.size < 0 or (header.type in _EXTENSIONS and header.size > _MAX_HEADER):
            raise tarfile.ReadError("a header is larger than any name")
        return header


def _packing(head: bytes) -> Callable[[BinaryIO], Content] | None:
    return next((unpack for magic, unpack in _PACKED.items() if head.startswith(magic)), None)


def _check_file(name: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SubmissionError(f"{name} is {kind(status.st_mode)}; hand in a folder, a zip or a tar")
    if status.st_size == 0 and not name.lower().endswith(".zip"):
        raise SubmissionError(f"{name} is empty; hand in a folder, a zip or a tar with your code")
    if status.st_size > MAX_ARCHIVE:
        raise SubmissionError(
            f"{name} is too large: an archive may have at most {MAX_ARCHIVE // 1_000_000} MB; "
            "hand in only your code"
        )
