"""An OpenAI-compatible server that costs as little as can be, since it shares the cores with what is measured.

    python benchmarks/fast_server.py [--port 8139] [--latency 0.2] [--per-second 50] [--at-once 20]

It speaks just enough HTTP/1.1, answers every question of one rubric with the same bytes, and keeps
a limit where one is given: so many requests a second (over a sliding second, or with ``--burst`` a
bucket that holds so many), or so many at once. `GET /stats` tells what it did and what that cost.
"""

import argparse
import asyncio
import json
import resource
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.helpers.llm_server import Question, verdict_reply

END_OF_HEAD: Final = b"\r\n\r\n"
ASKED_FORM: Final = b'"response_format"'


@dataclass
class Limits:
    """What this server takes. Without a number it takes everything."""

    per_second: float | None = None
    burst: int | None = None
    at_once: int | None = None
    retry_after: float | None = None
    lately: deque[float] = field(default_factory=deque)
    level: float = 0.0
    filled_at: float = 0.0

    def takes(self, now: float, in_flight: int) -> bool:
        if self.at_once is not None and in_flight >= self.at_once:
            return False
        if self.per_second is None:
            return True
        return self.has_drop(now) if self.burst else self.has_place(now)

    def has_place(self, now: float) -> bool:
        while self.lately and self.lately[0] <= now - 1:
            self.lately.popleft()
        if len(self.lately) >= (self.per_second or 0):
            return False
        self.lately.append(now)
        return True

    def has_drop(self, now: float) -> bool:
        capacity = float(self.burst or 0)
        gained = (now - self.filled_at) * (self.per_second or 0) if self.filled_at else capacity
        self.level, self.filled_at = min(capacity, self.level + gained), now
        if self.level < 1:
            return False
        self.level -= 1
        return True


@dataclass
class Server:
    latency: float
    limits: Limits
    late_refusals: bool = False
    in_flight: int = 0
    most_in_flight: int = 0
    answered: int = 0
    refused: int = 0
    connections: int = 0
    replies: dict[bytes, bytes] = field(default_factory=dict)

    def reply_to(self, body: bytes) -> bytes:
        """The same bytes for every question that asks for the same form."""
        form = body[body.rfind(ASKED_FORM) :] if ASKED_FORM in body else b""
        if form not in self.replies:
            self.replies[form] = completion(json.loads(body))
        return self.replies[form]

    def stats(self) -> dict[str, Any]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        names = ("answered", "refused", "most_in_flight", "connections")
        return {name: getattr(self, name) for name in names} | {"cpu_seconds": used.ru_utime + used.ru_stime}

    def forget(self) -> None:
        self.answered = self.refused = self.most_in_flight = self.connections = 0


def completion(body: dict[str, Any]) -> bytes:
    message = {"role": "assistant", "content": verdict_reply(Question(body, {}, 1)), "refusal": None}
    tokens = sum(len(sent["content"]) for sent in body["messages"]) // 4
    return response(
        200,
        {
            "id": "chatcmpl-benchmark",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20},
        },
    )


def response(status: int, body: Any, head: str = "") -> bytes:
    encoded = json.dumps(body).encode()
    first = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(encoded)}\r\n{head}\r\n"
    return first.encode() + encoded


class Connection(asyncio.Protocol):
    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self.loop = loop
        self.held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections += 1

    def data_received(self, data: bytes) -> None:
        self.held += data
        while (end := self.held.find(END_OF_HEAD)) >= 0:
            body_at = end + len(END_OF_HEAD)
            whole = body_at + content_length(self.held[:end])
            if len(self.held) < whole:
                return
            head, body, self.held = self.held[:end], self.held[body_at:whole], self.held[whole:]
            self.answer(head, body)

    def answer(self, head: bytes, body: bytes) -> None:
        server = self.server
        if head.startswith(b"POST"):
            self.complete(body)
        elif head.startswith(b"GET /stats"):
            self.write(response(200, server.stats()))
            server.forget()
        else:
            self.write(response(404, {"error": {"message": "not here"}}))

    def complete(self, body: bytes) -> None:
        server = self.server
        if not server.limits.takes(self.loop.time(), server.in_flight):
            server.refused += 1
            self.loop.call_later(server.latency if server.late_refusals else 0.001, self.write, self.too_many())
            return
        server.in_flight += 1
        server.most_in_flight = max(server.most_in_flight, server.in_flight)
        self.loop.call_later(server.latency, self.end, server.reply_to(body))

    def too_many(self) -> bytes:
        after = self.server.limits.retry_after
        head = "" if after is None else f"Retry-After: {after:g}\r\n"
        return response(429, {"error": {"message": "too many requests", "code": "rate_limit_exceeded"}}, head)

    def end(self, reply: bytes) -> None:
        self.server.in_flight -= 1
        self.server.answered += 1
        self.write(reply)

    def write(self, reply: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(reply)


def content_length(head: bytes) -> int:
    at = head.lower().find(b"content-length:")
    return int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0


async def serve(port: int, server: Server, ready: Callable[[int], None] = lambda port: None) -> None:
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: Connection(server, loop), "127.0.0.1", port, backlog=1024)
    ready(listening.sockets[0].getsockname()[1])
    await listening.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8139)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--per-second", type=float)
    parser.add_argument("--burst", type=int, help="a bucket that holds so many, instead of a sliding second")
    parser.add_argument("--at-once", type=int)
    parser.add_argument("--retry-after", type=float)
    parser.add_argument("--late-refusals", action="store_true", help="a 429 takes as long as an answer")
    options = parser.parse_args()
    limits = Limits(options.per_second, options.burst, options.at_once, options.retry_after)
    asyncio.run(serve(options.port, Server(options.latency, limits, options.late_refusals)))
