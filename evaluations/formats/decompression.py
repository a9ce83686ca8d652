"""Decompression of gzip and zstd, and decoding of UTF-16, within a limit."""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import FileLimits
from evaluations.formats.record_streams import BLOCK_BYTES, MB, file_from_pieces, read_pieces


class BorrowedFile:
    """A file lent to a library, which cannot close it."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read
        self.seek = file.seek
        self.tell = file.tell

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
# A frame that carries no data; what packs with several threads begins with one.
SKIPPED_ZSTD: Final = tuple(bytes([number, 0x2A, 0x4D, 0x18]) for number in range(0x50, 0x60))

WIDE: Final = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class UnpackingMeter:
    """The number of bytes that may still be decompressed from one file."""

    def __init__(self, name: str, limits: FileLimits) -> None:
        self.name = name
        self._limit = limits.unpacked_bytes
        self._left = limits.unpacked_bytes

    def count(self, number: int) -> None:
        self._left -= number
        if self._left < 0:
            raise InputRefused(
                f"{self.name} is larger than {self._limit // MB:,} MB when unpacked, the limit of this site "
                "(JUDGEWEB_MAX_UNPACKED_MB). Split it, or ask for a higher limit."
            )

    def broken(self, packed_as: str) -> InputRefused:
        unpacked = (self._limit - self._left) / MB
        return InputRefused(
            f"{self.name} is damaged or truncated: its {packed_as} data breaks off after {unpacked:,.1f} MB. "
            "Copy or pack it again."
        )


def is_compressed(head: bytes) -> bool:
    return head.startswith((GZIP, ZSTD, *SKIPPED_ZSTD))


def decompress(file: BinaryIO, head: bytes, meter: UnpackingMeter) -> BinaryIO:
    if head.startswith(GZIP):
        pieces = read_pieces(gzip.GzipFile(fileobj=file, mode="rb").read)
        return file_from_pieces(meter_pieces(pieces, meter, "gzip", (zlib.error, gzip.BadGzipFile, EOFError)))
    return decompress_zstd(file, meter)


def meter_pieces(
    pieces: Iterator[bytes], meter: UnpackingMeter, packed_as: str, broken: tuple[type[Exception], ...]
) -> Iterator[bytes]:
    """Count the pieces; ``broken`` are the errors that mean that the compressed data is damaged."""
    while True:
        try:
            piece = next(pieces, b"")
        except broken:
            raise meter.broken(packed_as) from None
        if not piece:
            return
        meter.count(len(piece))
        yield piece


def decompress_zstd(file: BinaryIO, meter: UnpackingMeter) -> BinaryIO:
    import pyarrow as pa  # noqa: PLC0415 - heavy, and seldom needed

    stream = pa.CompressedInputStream(pa.PythonFile(BorrowedFile(file), mode="r"), "zstd")
    return file_from_pieces(meter_pieces(read_pieces(stream.read), meter, "zstd", (OSError, pa.ArrowException)))


def is_utf16_or_utf32(head: bytes) -> bool:
    return head.startswith(tuple(WIDE))


def decode_to_utf8(file: BinaryIO, head: bytes, name: str) -> BinaryIO:
    """UTF-16 or UTF-32 with a byte order mark, as UTF-8."""
    encoding = next(encoding for mark, encoding in WIDE.items() if head.startswith(mark))
    decoder = codecs.getincrementaldecoder(encoding)()
    passed = 0

    def pieces() -> Iterator[bytes]:
        nonlocal passed
        ended = False
        while not ended:
            more = file.read(BLOCK_BYTES // 4)
            ended = not more
            try:
                text = decoder.decode(more, final=ended)
            except UnicodeDecodeError:
                raise InputRefused(
                    f"{name} starts as {encoding.upper()} and is broken after about {passed / MB:,.1f} MB. "
                    "Save it as UTF-8."
                ) from None
            passed += len(more)
            if text:
                yield text.encode()

    return file_from_pieces(pieces())
