"""What a file is packed in – gzip, zstd, UTF-16 – taken off while it is read, never more than was allowed."""

import codecs
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from evaluations.domain import InputRefused, Limits
from evaluations.formats.lending import Lent
from evaluations.formats.streams import BLOCK_BYTES, MB, from_pieces, pieces_of

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


class Meter:
    """How much more may be unpacked of one file, whatever it is packed in."""

    def __init__(self, name: str, limits: Limits) -> None:
        self.name = name
        self._limit = limits.unpacked_bytes
        self._left = limits.unpacked_bytes

    def count(self, number: int) -> None:
        self._left -= number
        if self._left < 0:
            raise InputRefused(
                f"{self.name} holds more than {self._limit // MB:,} MB when it is unpacked, the most that is read here "
                "(JUDGEWEB_MAX_UNPACKED_MB): split it, or have the limit raised."
            )

    def broken(self, packed_as: str) -> InputRefused:
        unpacked = (self._limit - self._left) / MB
        return InputRefused(
            f"{self.name} is damaged or cut off: its {packed_as} data breaks after {unpacked:,.1f} MB were unpacked. "
            "Copy or pack it again."
        )


def is_compressed(head: bytes) -> bool:
    return head.startswith((GZIP, ZSTD, *SKIPPED_ZSTD))


def unpacked(file: BinaryIO, head: bytes, meter: Meter) -> BinaryIO:
    """A compressed file as what it holds."""
    return gunzipped(file, meter) if head.startswith(GZIP) else unzstd(file, meter)


def metered(
    pieces: Iterator[bytes], meter: Meter, packed_as: str, broken: tuple[type[Exception], ...]
) -> Iterator[bytes]:
    """The same pieces, counted; ``broken`` are the errors that say that what is packed is damaged."""
    while True:
        try:
            piece = next(pieces, b"")
        except broken:
            raise meter.broken(packed_as) from None
        if not piece:
            return
        meter.count(len(piece))
        yield piece


def gunzipped(file: BinaryIO, meter: Meter) -> BinaryIO:
    return from_pieces(metered(inflated(file), meter, "gzip", (zlib.error, EOFError)))


def inflated(file: BinaryIO) -> Iterator[bytes]:
    """All members one after another; as with gzip itself, zeros may follow the last."""
    waiting = file.read(BLOCK_BYTES)
    while waiting:
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        while not member.eof:
            if piece := member.decompress(waiting, BLOCK_BYTES):
                yield piece
            waiting = member.unconsumed_tail or (b"" if member.eof else file.read(BLOCK_BYTES))
            if not waiting and not member.eof:
                if piece := member.flush():
                    yield piece
                if not member.eof:
                    raise EOFError
        waiting = (member.unused_data or file.read(BLOCK_BYTES)).lstrip(b"\x00")
        while not waiting and (more := file.read(BLOCK_BYTES)):
            waiting = more.lstrip(b"\x00")


def unzstd(file: BinaryIO, meter: Meter) -> BinaryIO:
    import pyarrow as pa  # noqa: PLC0415 - heavy, and seldom needed

    stream = pa.CompressedInputStream(pa.PythonFile(Lent(file), mode="r"), "zstd")
    return from_pieces(metered(pieces_of(stream.read), meter, "zstd", (OSError, pa.ArrowException)))


def is_wide(head: bytes) -> bool:
    return head.startswith(tuple(WIDE))


def narrowed(file: BinaryIO, head: bytes, name: str) -> BinaryIO:
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
                    f"{name} begins as {encoding.upper()} and is broken about {passed / MB:,.1f} MB on: "
                    "save it as UTF-8."
                ) from None
            passed += len(more)
            if text:
                yield text.encode()

    return from_pieces(pieces())
