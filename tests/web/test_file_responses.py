"""An interrupted download goes on where it stopped, and never with the bytes of another file."""

import io

import pytest
from django.core.files import File
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import RequestFactory

from evaluations.web.file_responses import file_response

CONTENT = b"0123456789"


def answered(method: str = "GET", **headers: str) -> HttpResponseBase:
    request = RequestFactory().generic(
        method, "/", headers={name.replace("_", "-"): told for name, told in headers.items()}
    )
    return file_response(
        request, File(io.BytesIO(CONTENT)), size=10, tag="abc", name="f.jsonl", content_type="text/plain"
    )


def body(response: HttpResponseBase) -> bytes:
    assert isinstance(response, StreamingHttpResponse)
    return b"".join(response.streaming_content)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "sent", "told"),
    [
        ("bytes=0-3", b"0123", "bytes 0-3/10"),
        ("bytes=4-", b"456789", "bytes 4-9/10"),
        ("bytes=-3", b"789", "bytes 7-9/10"),
        ("bytes=8-99", b"89", "bytes 8-9/10"),
        ("bytes=-99", CONTENT, "bytes 0-9/10"),
    ],
)
def test_a_range_is_sent_and_told(asked: str, sent: bytes, told: str) -> None:
    response = answered(Range=asked)
    assert (response.status_code, body(response)) == (206, sent)
    assert (response["Content-Range"], response["Content-Length"]) == (told, str(len(sent)))


@pytest.mark.parametrize("asked", ["", "bytes=0-1,4-5", "lines=1-2", "bytes=-", "bytes=a-b", "bytes=5-4"])
def test_what_is_no_range_is_answered_with_all_of_it(asked: str) -> None:
    response = answered(Range=asked)
    assert (response.status_code, body(response), response["Content-Length"]) == (200, CONTENT, "10")
    assert response["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize("asked", ["bytes=10-", "bytes=-0"])
def test_a_range_beyond_the_end_is_refused_with_the_size(asked: str) -> None:
    response = answered(Range=asked)
    assert (response.status_code, response["Content-Range"]) == (416, "bytes */10")


def test_a_range_of_another_file_is_answered_with_all_of_this_one() -> None:
    assert answered(Range="bytes=4-", If_Range='"other"').status_code == 200
    assert answered(Range="bytes=4-", If_Range='"abc"').status_code == 206


def test_a_head_tells_size_and_tag_and_sends_nothing() -> None:
    response = answered("HEAD")
    assert (response["Content-Length"], response["ETag"]) == ("10", '"abc"')
    assert not response.streaming
