"""Responses with a stored file or a range of it."""

import re
from collections.abc import Iterator
from typing import BinaryIO, Final, cast

from django.core.files import File
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

RANGE_HEADER: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)

BLOCK_BYTES: Final = 256 * 1024


def parse_range(header: str, if_range: str | None, *, size: int, tag: str) -> tuple[int, int] | None:
    """The first and last byte, with first > last if nothing is left to send; None without a range of this file.

    Other ranges are ignored, as the standard demands. ``size`` is in bytes; ``tag``: the file's ETag.
    """
    match = RANGE_HEADER.fullmatch(header.replace(" ", ""))
    if match is None or if_range not in (None, f'"{tag}"'):
        return None
    start, end = match.groups()
    if start and end and int(end) < int(start):
        return None
    if start:
        return int(start), min(int(end), size - 1) if end else size - 1
    if not end:
        return None
    return (max(0, size - int(end)), size - 1) if int(end) else (size, size - 1)


class FileRange:
    """``length`` bytes of a file from ``first`` on, block by block."""

    def __init__(self, file: BinaryIO, first: int, length: int) -> None:
        self.file, self.left = file, length
        file.seek(first)

    def read(self, size: int = BLOCK_BYTES) -> bytes:
        block = self.file.read(min(size, self.left))
        self.left -= len(block)
        return block

    def close(self) -> None:
        self.file.close()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.read, b"")


def file_response(
    request: HttpRequest, file: "File[bytes]", *, size: int, tag: str, name: str, content_type: str
) -> HttpResponseBase:
    """Respond with the file, or the range requested, and close it. A request for several ranges gets the whole file."""
    headers = {
        "Accept-Ranges": "bytes",
        "ETag": f'"{tag}"',
        "Content-Disposition": content_disposition_header(True, name) or "",
    }
    byte_range = parse_range(request.headers.get("Range", ""), request.headers.get("If-Range"), size=size, tag=tag)
    if byte_range is None or request.method == "HEAD":
        first, status = 0, 200
        last = size - 1
    else:
        first, last, status = *byte_range, 206
        if first > last:
            file.close()
            return HttpResponse(status=416, headers={**headers, "Content-Range": f"bytes */{size}"})
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    headers["Content-Length"] = str(last - first + 1)
    if request.method == "HEAD":
        file.close()
        return HttpResponse(content_type=content_type, headers=headers)
    part = FileRange(cast(BinaryIO, file), first, last - first + 1)
    response = StreamingHttpResponse(part, status=status, content_type=content_type, headers=headers)
    # As Django's FileResponse has it: a web server that can reads the file without a thread for each client.
    response.file_to_stream, response.block_size = part, BLOCK_BYTES  # type: ignore[attr-defined]
    return response
