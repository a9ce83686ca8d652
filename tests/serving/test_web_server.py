"""Slow, cut off and malformed connections: what they get, and that nobody else waits for them."""

import subprocess
import sys
import threading
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest

from judgeweb import body_receiver, connections, wsgi_bridge
from judgeweb.connections import read_network
from tests.helpers.running_product import ROOT, environment_for
from tests.serving.web_server import Environ, StartResponse, WebServer, running_web_server

HOST = "Host: a\r\n"
LARGE = 5_000_000


class Stream:
    """A response that is written while it is sent."""

    streaming = True

    def __init__(self, blocks: Generator[bytes, None, None]) -> None:
        self.blocks = blocks

    def __iter__(self) -> Iterator[bytes]:
        return self.blocks

    def close(self) -> None:
        self.blocks.close()


class Endless:
    """Blocks for ever; says how many were taken, and when nobody takes more."""

    def __init__(self) -> None:
        self.taken = 0
        self.is_over = threading.Event()

    def blocks(self) -> Generator[bytes, None, None]:
        try:
            while True:
                self.taken += 1
                yield b"x" * 65536
        finally:
            self.is_over.set()


def broken() -> Generator[bytes, None, None]:
    yield b"the first part"
    raise RuntimeError("the rest cannot be read")


ENDLESS: list[Endless] = []


def application(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    if path == "/unchanged":
        start_response("304 Not Modified", [])
        return []
    if path == "/endless":
        ENDLESS.append(Endless())
        start_response("200 OK", [])
        return Stream(ENDLESS[-1].blocks())
    if path == "/broken":
        start_response("200 OK", [])
        return Stream(broken())
    content = b"y" * LARGE if path == "/large" else path.encode()
    start_response("200 OK", [("Content-Length", str(len(content)))])
    return [content]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    """One thread for all requests: what holds it holds everybody."""
    ENDLESS.clear()
    with running_web_server(tmp_path, application) as running:
        yield running


def request(path: str, *headers: str, method: str = "GET") -> str:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: a", *headers, "", ""])


# ---- deadlines ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sent", ["", "GET / HTTP/1.1\r\n", "\r\n\r\n"])
def test_a_connection_without_a_whole_head_is_closed_after_15_seconds(server: WebServer, sent: str) -> None:
    client = server.connect(sent)
    assert server.answers()  # and so its own first bytes were read, too
    server.sweep(connections.HEAD_SECONDS - 1)
    client.send("G")
    server.sweep(connections.HEAD_SECONDS + 1)
    assert client.read_response()[0] in (0, 408)
    assert client.is_closed()


def test_a_byte_now_and_then_does_not_put_the_deadline_off(server: WebServer) -> None:
    client = server.connect("GET / HTTP/1.1\r\nX-Slow: ")
    for _ in range(3):
        client.send("x")
        assert server.answers()
    server.sweep(connections.HEAD_SECONDS + 1)
    assert client.read_response()[0] == 408


def test_a_connection_that_is_kept_outlasts_the_proxys_and_the_browsers_own_time(server: WebServer) -> None:
    client = server.connect(request("/first"))
    assert client.read_response()[2] == b"/first"
    server.sweep(75)
    assert client.send(request("/second")).read_response()[2] == b"/second"


def test_a_slow_head_on_a_kept_connection_has_the_same_deadline(server: WebServer) -> None:
    client = server.connect(request("/first"))
    client.read_response()
    client.send("GET /second")
    assert server.answers()
    server.sweep(connections.HEAD_SECONDS + 1)
    assert client.is_closed()


def test_slow_bodies_hold_no_thread(server: WebServer) -> None:
    for _ in range(5):
        server.connect(request("/", "Content-Length: 100", method="POST")).send("a")
    assert server.answers()


def test_a_body_below_the_least_rate_is_refused(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_receiver, "BODY_SECONDS", 0.0)
    client = server.connect(request("/", "Content-Length: 100", method="POST"))
    status, headers, _ = client.read_response()
    assert (status, headers["connection"]) == (408, "close")
    assert server.seen == []


def test_slow_readers_hold_no_thread_and_are_cut_off(server: WebServer) -> None:
    slow = [server.connect(request("/large")) for _ in range(5)]
    assert server.answers()
    server.sweep(connections.UNREAD_SECONDS + 1)
    for client in slow:
        _, headers = client.read_head()
        assert len(client.file.read()) < int(headers["content-length"])


# ---- limits ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "head",
    [
        f"GET /{'a' * 40_000} HTTP/1.1\r\n{HOST}\r\n",
        f"GET / HTTP/1.1\r\n{HOST}X: {'a' * 40_000}\r\n\r\n",
        "GET / HTTP/1.1\r\n" + "X: a\r\n" * 10_000 + "\r\n",
        f"GET / HTTP/1.1\r\n{HOST}X: {'a' * 40_000}",
    ],
)
def test_a_head_that_is_too_large_is_refused(server: WebServer, head: str) -> None:
    assert server.connect(head).read_response()[0] == 431
    assert server.seen == []


def test_one_connection_too_many_ends_the_one_that_has_waited_longest(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_PER_ADDRESS", 2)
    first, second = server.connect(), server.connect()
    second.send(request("/second")).read_response()
    assert server.answers()
    assert first.is_closed()
    assert second.send(request("/again")).read_response()[2] == b"/again"


def test_a_client_with_an_ipv6_network_of_its_own_is_one_address() -> None:
    assert read_network("2001:db8::1") == read_network("2001:db8::2:1")
    assert read_network("2001:db8::1") != read_network("2001:db8:0:1::1")
    assert read_network("::ffff:192.0.2.1") == read_network("192.0.2.1") != read_network("192.0.2.2")


def test_where_every_connection_is_at_work_one_more_is_told_to_come_back(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_PER_PROCESS", 1)
    server.connect(request("/endless")).read_head()
    status, headers, _ = server.connect().read_response()
    assert (status, "retry-after" in headers) == (503, True)


# ---- bodies ------------------------------------------------------------------------------------------------------
def post(path: str, size: int, *headers: str) -> str:
    return request(path, f"Content-Length: {size}", *headers, method="POST")


@pytest.mark.parametrize("why", ["signed_out", "too_large", "no_room", "no_database"])
def test_a_large_body_that_is_not_wanted_is_refused_before_it_is_read(server: WebServer, why: str) -> None:
    client = server.connect(post(f"/{why}", LARGE, "Expect: 100-continue"))
    status, headers, content = client.read_response()
    assert (status, headers["connection"], content) == (200, "close", f"/{why}".encode())
    assert server.bodies == [b""]
    assert server.seen[0]["judgeweb.body_refusal"] == why
    assert server.seen[0]["CONTENT_LENGTH"] == str(LARGE)


def test_a_client_that_sends_all_the_same_can_read_why_it_was_refused(server: WebServer) -> None:
    client = server.connect(post("/too_large", LARGE)).send(b"x" * LARGE)
    assert client.read_response()[2] == b"/too_large"
    assert client.is_closed()


def test_a_small_form_is_taken_from_anybody(server: WebServer) -> None:
    client = server.connect(post("/signed_out", 3, "Expect: 100-continue"))
    assert client.read_head()[0] == 100
    assert client.send("a=b").read_response()[0] == 200
    assert server.bodies == [b"a=b"]


def test_a_large_body_comes_in_one_file_that_is_gone_after_the_request(server: WebServer) -> None:
    client = server.connect(post("/page", LARGE)).send(b"x" * LARGE)
    assert client.read_response()[0] == 200
    assert server.bodies == [b"x" * LARGE]
    assert server.seen[0]["kept"]
    assert list(server.scratch.iterdir()) == []


def test_a_body_in_chunks_has_a_length_for_the_application(server: WebServer) -> None:
    chunked = request("/page", "Transfer-Encoding: chunked", method="POST")
    client = server.connect(f"{chunked}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    assert client.read_response()[0] == 200
    assert server.bodies == [b"abcde"]
    assert server.seen[0]["CONTENT_LENGTH"] == "5"
    assert "HTTP_TRANSFER_ENCODING" not in server.seen[0]


def test_a_body_of_unknown_length_is_refused_once_it_is_large(server: WebServer) -> None:
    client = server.connect(request("/signed_out", "Transfer-Encoding: chunked", method="POST"))
    client.send(f"{70_000:x}\r\n{'x' * 70_000}\r\n")
    assert client.read_response()[0] == 200
    assert server.bodies == [b""]


def test_a_client_gone_in_the_middle_of_its_body_leaves_nothing(server: WebServer) -> None:
    client = server.connect(post("/page", LARGE)).send(b"x" * 1_000_000)
    client.close()
    assert server.answers()
    assert [environ["PATH_INFO"] for environ in server.seen] == ["/page"]
    assert server.seen[0]["REQUEST_METHOD"] == "GET"


# ---- two readings of one request ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 3", "Content-Length: 4"),
        ("Content-Length: 3", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 3"),
        ("Content-Length: -1",),
        ("Content-Length: 3, 3",),
        ("Content-Length: +3",),
        ("Content-Length : 3",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding: chunked, identity",),
        ("X: a\rY: b",),
        (" folded: x",),
    ],
)
def test_a_request_that_two_servers_could_read_in_two_ways_is_refused(
    server: WebServer, headers: tuple[str, ...]
) -> None:
    client = server.connect(request("/page", *headers, method="POST") + "abcGET /smuggled HTTP/1.1\r\n\r\n")
    assert client.read_response()[0] == 400
    assert client.is_closed()
    assert all(environ["PATH_INFO"] != "/smuggled" for environ in server.seen)


def test_a_header_with_an_underscore_cannot_pass_for_another(server: WebServer) -> None:
    client = server.connect(request("/page", "X_Forwarded_Proto: https", "Content_Length: 5", "X-Real: yes"))
    assert client.read_response()[0] == 200
    assert "HTTP_X_FORWARDED_PROTO" not in server.seen[0]
    assert (server.seen[0]["CONTENT_LENGTH"], server.seen[0]["HTTP_X_REAL"]) == ("0", "yes")


def test_what_the_proxy_says_of_the_scheme_reaches_the_application(server: WebServer) -> None:
    server.connect(request("/page", "X-Forwarded-Proto: https")).read_response()
    assert server.seen[0]["HTTP_X_FORWARDED_PROTO"] == "https"


def test_an_address_reaches_the_application_byte_by_byte(server: WebServer) -> None:
    server.connect(request("/%C3%A9%FF%2F?q=%FF")).read_response()
    assert server.seen[0]["PATH_INFO"].encode("latin-1") == b"/\xc3\xa9\xff/"
    assert server.seen[0]["QUERY_STRING"] == "q=%FF"


# ---- responses ---------------------------------------------------------------------------------------------------
def test_requests_sent_at_once_are_answered_in_their_order(server: WebServer) -> None:
    client = server.connect("".join(request(f"/{number}") for number in range(5)))
    assert [client.read_response()[2] for _ in range(5)] == [b"/0", b"/1", b"/2", b"/3", b"/4"]


@pytest.mark.parametrize(("method", "path", "status"), [("HEAD", "/page", 200), ("GET", "/unchanged", 304)])
def test_a_response_without_a_body_leaves_the_connection_as_it_was(
    server: WebServer, method: str, path: str, status: int
) -> None:
    client = server.connect(request(path, method=method))
    assert client.read_head()[0] == status
    assert client.send(request("/next")).read_response()[2] == b"/next"


def test_a_stream_waits_for_its_reader_and_ends_with_it(server: WebServer) -> None:
    client = server.connect(request("/endless"))
    assert client.read_head()[0] == 200
    assert server.answers()  # it holds no thread of the pages
    client.close()
    assert ENDLESS[0].is_over.wait(10)
    assert ENDLESS[0].taken < 1000


def test_a_stream_that_breaks_off_looks_broken_to_its_reader(server: WebServer) -> None:
    client = server.connect(request("/broken"))
    client.read_head()
    assert b"the first part" in (content := client.file.read())
    assert not content.endswith(b"0\r\n\r\n")


def test_more_streams_than_may_wait_are_told_to_come_back(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wsgi_bridge, "MOST_WAITING_STREAMS", 0)
    for _ in range(wsgi_bridge.STREAMS):
        assert server.connect(request("/endless")).read_head()[0] == 200
    status, headers, _ = server.connect(request("/endless")).read_response()
    assert (status, headers["retry-after"]) == (503, "60")
    assert server.answers()


def test_a_process_is_stuck_only_where_every_thread_has_been_at_one_request_for_long(server: WebServer) -> None:
    bridge = server.bridge
    assert not bridge.is_stuck(now=100, seconds=60)
    bridge.began[1] = 50.0
    assert not bridge.is_stuck(now=100, seconds=60)
    assert bridge.is_stuck(now=111, seconds=60)
    assert not bridge.is_stuck(now=111, seconds=0)


def test_a_process_has_imported_all_pages_before_it_accepts_connections(tmp_path: Path) -> None:
    """The second process of a site would let its first requests wait for that while the first one is free."""
    script = "import judgeweb.wsgi, sys; sys.exit('evaluations.urls' not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment_for(tmp_path)).returncode == 0
