"""Parts of a file that somebody asks for who was interrupted: the header Range of RFC 9110."""

import re
from collections.abc import Iterator
from typing import BinaryIO, Final

RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
BLOCK_BYTES: Final = 256 * 1024


def range_in(asked: str, if_range: str | None, *, size: int, tag: str) -> tuple[int, int] | None:
    """First and last byte; the first beyond the last where there is nothing to send. None: no range, or another file's.

    What is no range that we read is no range at all, as the standard has it. ``size``: of the file, in bytes;
    ``tag``: what its ETag holds.
    """
    found = RANGE.fullmatch(asked.replace(" ", ""))
    if found is None or if_range not in (None, f'"{tag}"'):
        return None
    start, end = found.groups()
    if start and end and int(end) < int(start):
        return None
    if start:
        return int(start), min(int(end), size - 1) if end else size - 1
    if not end:
        return None
    return (max(0, size - int(end)), size - 1) if int(end) else (size, size - 1)


def blocks(file: BinaryIO, first: int, length: int) -> Iterator[bytes]:
    """So many bytes from there on; the file is closed after them."""
    with file:
        file.seek(first)
        while length > 0 and (block := file.read(min(BLOCK_BYTES, length))):
            length -= len(block)
            yield block
