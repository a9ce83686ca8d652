"""One connection to the web server: what it may send, how slowly, and how many there may be."""

import time
from functools import lru_cache
from typing import Any, Final, cast

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from evaluations.web.client_address import format_network, parse_address

# Each process: what one holds of a request while it comes in is some 64 KB.
CONNECTIONS_PER_PROCESS: Final = 1000
# An office behind one address has room. A proxy is one address, and limits its own clients.
CONNECTIONS_PER_ADDRESS: Final = 400
HEAD_SECONDS: Final = 15.0
HEAD_BYTES: Final = 32 * 1024
# In this time a reader takes at least the 48 KB between two signs of the transport, or is gone.
UNREAD_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 15.0


def build_answer(status: str, sentence: str, header: str = "") -> bytes:
    """A whole response, after which the connection is closed."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {len(sentence) + 1}\r\n{header}"
    return f"{head}connection: close\r\n\r\n{sentence}\n".encode()


OVERDUE: Final = build_answer("408 Request Timeout", "The request did not come in time.")
HEAD_TOO_LARGE: Final = build_answer("431 Request Header Fields Too Large", "The headers are too large.")
FULL: Final = build_answer("503 Service Unavailable", "Too many connections are open. Try again.", "retry-after: 5\r\n")


class HeadTooLarge(Exception):
    pass


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with deadlines and limits. The server's sweep ends what is overdue."""

    head_began: float | None = None  # no whole head has come in since
    head_bytes = 0  # received since then, in any form
    head_fields_bytes = 0  # of the request that is being read
    idle_since = 0.0
    write_paused_since: float | None = None
    closing_since: float | None = None
    is_lost = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.head_began = self.idle_since = time.monotonic()
        if not self.make_room():
            transport.write(FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        super().connection_lost(exc)

    def make_room(self) -> bool:
        """End the connection that has waited longest for a request where there are too many; False if none waits."""
        others = [cast(Connection, other) for other in self.connections if other is not self]
        if not settings.BEHIND_HTTPS and self.client:
            network = read_network(self.client[0])
            neighbors = [other for other in others if other.client and read_network(other.client[0]) == network]
            if len(neighbors) >= CONNECTIONS_PER_ADDRESS:
                return end_longest_waiting(neighbors)
        return len(others) < CONNECTIONS_PER_PROCESS or end_longest_waiting(others)

    def data_received(self, data: bytes) -> None:
        if self.is_idle() and self.head_began is None:
            self.head_began = time.monotonic()
        if self.head_began is not None:
            self.head_bytes += len(data)
        super().data_received(data)
        if self.head_began is not None and self.head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.answer_and_close(HEAD_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {"judgeweb": {"connection": self}}
        self.head_fields_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self.count_head_bytes(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self.count_head_bytes(len(name) + len(value) + 4)

    def count_head_bytes(self, number: int) -> None:
        self.head_fields_bytes += number
        if self.head_fields_bytes > HEAD_BYTES:
            raise HeadTooLarge

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.head_began, self.head_bytes = None, 0

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.idle_since = time.monotonic()

    def send_400_response(self, msg: str) -> None:
        if self.head_fields_bytes > HEAD_BYTES:
            self.answer_and_close(HEAD_TOO_LARGE)
        elif self.is_idle() or (self.cycle.more_body and not self.cycle.response_started and not self.pipeline):
            super().send_400_response(msg)
        else:  # in the middle of a response, or behind it
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.write_paused_since = time.monotonic()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.write_paused_since = None

    def is_idle(self) -> bool:
        return self.cycle is None or (self.cycle.response_complete and not self.pipeline)

    def answer_and_close(self, answer: bytes) -> None:
        self.transport.write(answer)
        self.transport.close()

    def end_if_overdue(self, now: float) -> None:
        if self.transport.is_closing():
            if self.closing_since is None:
                self.closing_since = now
            elif now - self.closing_since > CLOSE_SECONDS:
                self.transport.abort()
        elif self.write_paused_since is not None and now - self.write_paused_since > UNREAD_SECONDS:
            self.transport.abort()
        elif self.head_began is not None and now - self.head_began > HEAD_SECONDS:
            if self.head_bytes and self.cycle is None:
                self.answer_and_close(OVERDUE)
            else:
                self.transport.close()


@lru_cache(maxsize=4096)
def read_network(address: str) -> str:
    """What is limited: an IPv4 address, or an IPv6 network, within which a client takes any address."""
    parsed = parse_address(address)
    return format_network(parsed) if parsed else address


def end_longest_waiting(connections: list[Connection]) -> bool:
    """End the connection without a whole request that has been so for longest; False if all are at work."""
    waiting = [other for other in connections if other.is_idle() and not other.transport.is_closing()]
    if not waiting:
        return False
    longest = min(waiting, key=lambda other: other.head_began or other.idle_since)
    longest.transport.abort()
    return True
