"""Files sent as a ZIP while it is made; the same files give the same bytes."""

import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from evaluations.formats.record_streams import read_pieces

BEFORE_ALL_FILES: Final = (1980, 1, 1, 0, 0, 0)  # the earliest time that a ZIP can store
PACKED: Final = (".parquet", ".gz", ".zst", ".zip")
READABLE: Final = 0o644 << 16


class PendingBytes:
    """A file whose bytes are taken as they are written. It is not seekable: a ZIP has checksums after each member."""

    closed = False

    def __init__(self) -> None:
        self._bytes = bytearray()

    def write(self, block: bytes) -> int:
        self._bytes += block
        return len(block)

    def flush(self) -> None:
        """Nothing is buffered elsewhere."""

    def close(self) -> None:
        """The bytes that are left are taken afterwards."""

    def take(self) -> bytes:
        block = bytes(self._bytes)
        self._bytes.clear()
        return block


def stream_zip(files: Iterable[tuple[str, Path | bytes]]) -> Iterator[bytes]:
    """A ZIP of these files: the name of each, with its path or its bytes. Compressed files are stored as they are."""
    waiting = PendingBytes()
    with zipfile.ZipFile(waiting, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files:
            entry = zipfile.ZipInfo(name, BEFORE_ALL_FILES)
            entry.external_attr = READABLE
            if not name.endswith(PACKED):
                entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as member:
                for block in read_blocks(content):
                    member.write(block)
                    yield waiting.take()
            yield waiting.take()
    yield waiting.take()


def read_blocks(content: Path | bytes) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        yield from read_pieces(file.read)
