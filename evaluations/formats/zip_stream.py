"""Files sent as a ZIP while it is made; the same files give the same bytes."""

import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

BLOCK_BYTES: Final = 256 * 1024
BEFORE_ALL_FILES: Final = (1980, 1, 1, 0, 0, 0)  # the first moment that a ZIP knows
PACKED: Final = (".parquet", ".gz", ".zst", ".zip")
READABLE: Final = 0o644 << 16


class PendingBytes:
    """What has been written and not been sent yet. It cannot go back, so a ZIP keeps its sums behind each file."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def write(self, block: bytes) -> int:
        self._bytes += block
        return len(block)

    def flush(self) -> None:
        """Nothing is kept back."""

    def taken(self) -> bytes:
        block = bytes(self._bytes)
        self._bytes.clear()
        return block


def stream_zip(files: Iterable[tuple[str, Path | bytes]]) -> Iterator[bytes]:
    """``files``: the name of each in the ZIP, with where it lies or what is in it. What is packed already is stored."""
    waiting = PendingBytes()
    with zipfile.ZipFile(waiting, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for name, content in files:
            told = zipfile.ZipInfo(name, BEFORE_ALL_FILES)
            told.external_attr = READABLE
            if not name.endswith(PACKED):
                told.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(told, "w", force_zip64=True) as member:
                for block in read_blocks(content):
                    member.write(block)
                    yield waiting.taken()
            yield waiting.taken()
    yield waiting.taken()


def read_blocks(content: Path | bytes) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            yield block
