"""A stored file as an answer that an interrupted download can go on with: ranges, and a tag that says which file."""

from typing import BinaryIO, cast

from django.core.files import File
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from evaluations.domain import blocks, range_in


def ranged(
    request: HttpRequest, file: "File[bytes]", *, size: int, tag: str, name: str, content_type: str
) -> HttpResponseBase:
    """All of the file, or the one range that was asked for; closes it. Several ranges are answered with all of it."""
    headers = {
        "Accept-Ranges": "bytes",
        "ETag": f'"{tag}"',
        "Content-Disposition": content_disposition_header(True, name) or "",
    }
    wanted = range_in(request.headers.get("Range", ""), request.headers.get("If-Range"), size=size, tag=tag)
    if wanted is None or request.method == "HEAD":
        first, status = 0, 200
        last = size - 1
    else:
        first, last, status = *wanted, 206
        if first > last:
            file.close()
            return HttpResponse(status=416, headers={**headers, "Content-Range": f"bytes */{size}"})
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    headers["Content-Length"] = str(last - first + 1)
    if request.method == "HEAD":
        file.close()
        return HttpResponse(content_type=content_type, headers=headers)
    return StreamingHttpResponse(
        blocks(cast(BinaryIO, file), first, last - first + 1), status=status, content_type=content_type, headers=headers
    )
