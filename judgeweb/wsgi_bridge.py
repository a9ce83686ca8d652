"""Between the event loop and Django: a request takes a thread when it is in whole, and gives it back with its response.

Slow clients cost memory or disk. What is written while it is sent, an export, keeps one of a few threads of its own.
"""

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from evaluations.web.request_bodies import BodyRefusal
from judgeweb.body_receiver import BodyReceiver, ClientGone, ReceivedBody, TooSlow
from judgeweb.wsgi_environ import build_environ

STREAMS: Final = 4
MOST_WAITING_STREAMS: Final = 16
BLOCK_BYTES: Final = 64 * 1024
# What a refused client may still send before it is cut off: a browser that is sending reads no response.
LINGER_SECONDS: Final = 30.0
SAFE_METHODS: Final = ("GET", "HEAD")

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[Any]]
Environ = dict[str, Any]
# Runs in a thread: why the body of these many bytes (None: unknown) is not wanted, or None.
RefuseBody = Callable[[Environ, int | None], BodyRefusal | None]

logger = logging.getLogger(__name__)


@dataclass
class WsgiResponse:
    status: int
    headers: list[tuple[bytes, bytes]]
    content: bytes = b""
    blocks: Any = None  # what is written while it is sent
    file: "StoredFile | None" = None
    context: contextvars.Context | None = None


class StoredFile:
    """``wsgi.file_wrapper``: a file that the event loop has read block by block, whenever its client took the last."""

    def __init__(self, file: Any, block_bytes: int = BLOCK_BYTES) -> None:
        self.file, self.block_bytes = file, max(block_bytes, BLOCK_BYTES)

    def read(self) -> bytes:
        return cast(bytes, self.file.read(self.block_bytes))

    def close(self) -> None:
        self.file.close()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.read, b"")


class WsgiBridge:
    """An ASGI application that runs a WSGI application in a bounded number of threads."""

    def __init__(self, wsgi: Callable[..., Any], refuse_body: RefuseBody, scratch: Path, *, threads: int) -> None:
        self.wsgi, self.refuse_body, self.scratch, self.threads = wsgi, refuse_body, scratch, threads
        self.requests = ThreadPoolExecutor(threads, thread_name_prefix="request")
        self.streams = ThreadPoolExecutor(STREAMS, thread_name_prefix="stream")
        self.files = ThreadPoolExecutor(2, thread_name_prefix="file")
        self.open_streams = 0
        self.began: dict[int, float] = {}  # of the requests at work, by thread

    def is_stuck(self, now: float, seconds: float) -> bool:
        """Whether every thread has been at the same request for so long."""
        began = list(self.began.values())
        return bool(seconds) and len(began) >= self.threads and all(now - moment > seconds for moment in began)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        connection = scope["extensions"]["judgeweb"]["connection"]
        environ = build_environ(scope)
        receiver = BodyReceiver(receive, self.scratch, self.files, lambda size: self.ask_admission(environ, size))
        try:
            body = await receiver.receive(environ.pop("judgeweb.length"), is_chunked=environ.pop("judgeweb.chunked"))
        except ClientGone:
            return
        except TooSlow:
            await send_text(send, 408, "The request did not come in time.", [(b"connection", b"close")])
            return
        await self.answer(environ, body, connection, receive, send)

    async def ask_admission(self, environ: Environ, size: int | None) -> BodyRefusal | None:
        return await asyncio.get_running_loop().run_in_executor(self.requests, self.refuse_body, environ, size)

    async def answer(self, environ: Environ, body: ReceivedBody, connection: Any, receive: Receive, send: Send) -> None:
        environ.update(body.environ)
        environ["wsgi.file_wrapper"] = StoredFile
        loop = asyncio.get_running_loop()
        response = await loop.run_in_executor(self.requests, self.run, environ, body, connection)
        if response is None:
            return
        if body.refusal:
            response.headers.append((b"connection", b"close"))
        if response.blocks is not None:
            await self.send_stream(response, connection, send)
            return
        await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
        if response.file is not None:
            await self.send_file(response.file, connection, send)
            return
        await send({"type": "http.response.body", "body": response.content, "more_body": body.refusal is not None})
        if body.refusal:
            await discard_body(receive)
            await send({"type": "http.response.body", "body": b""})

    def run(self, environ: Environ, body: ReceivedBody, connection: Any) -> WsgiResponse | None:
        """Run the application in this thread; None where nobody waits for the page any more."""
        thread = threading.get_ident()
        self.began[thread] = time.monotonic()
        try:
            if connection.is_lost and environ["REQUEST_METHOD"] in SAFE_METHODS:
                return None
            return run_wsgi(self.wsgi, environ)
        finally:
            body.close()
            del self.began[thread]

    async def send_stream(self, response: WsgiResponse, connection: Any, send: Send) -> None:
        loop = asyncio.get_running_loop()
        context = response.context or contextvars.copy_context()
        if self.open_streams >= STREAMS + MOST_WAITING_STREAMS:
            await loop.run_in_executor(self.requests, context.run, close_quietly, response.blocks)
            sentence = "Too many exports are being sent. Try again in a minute."
            await send_text(send, 503, sentence, [(b"retry-after", b"60")])
            return
        self.open_streams += 1
        try:
            pump = Pump(response, connection, send, loop)
            await loop.run_in_executor(self.streams, context.run, pump.run)
        finally:
            self.open_streams -= 1

    async def send_file(self, file: StoredFile, connection: Any, send: Send) -> None:
        loop = asyncio.get_running_loop()
        try:
            while not connection.is_lost and (block := await loop.run_in_executor(self.files, file.read)):
                await send({"type": "http.response.body", "body": block, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await loop.run_in_executor(self.files, close_quietly, file)

    def close(self) -> None:
        for pool in (self.requests, self.streams, self.files):
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass
class Pump:
    """Sends a response from a thread, and waits there while its client takes nothing."""

    response: WsgiResponse
    connection: Any
    send: Send
    loop: asyncio.AbstractEventLoop

    def run(self) -> None:
        try:
            start = {"type": "http.response.start", "status": self.response.status, "headers": self.response.headers}
            self.wait(start)
            for block in self.response.blocks:
                if self.connection.is_lost:
                    return
                self.wait({"type": "http.response.body", "body": block, "more_body": True})
            self.wait({"type": "http.response.body", "body": b""})
        finally:
            close_quietly(self.response.blocks)

    def wait(self, message: dict[str, Any]) -> None:
        asyncio.run_coroutine_threadsafe(cast(Any, self.send(message)), self.loop).result()


def run_wsgi(wsgi: Callable[..., Any], environ: Environ) -> WsgiResponse:
    started: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
        started[:] = [int(status.split(" ", 1)[0]), headers]

    iterable = wsgi(environ, start_response)
    status, headers = started
    encoded = [(name.lower().encode("latin-1"), value.strip().encode("latin-1")) for name, value in headers]
    if isinstance(iterable, StoredFile):
        return WsgiResponse(status, encoded, file=iterable)
    if getattr(iterable, "streaming", False):
        return WsgiResponse(status, encoded, blocks=iterable, context=contextvars.copy_context())
    try:
        content = b"".join(iterable)
    finally:
        close_quietly(iterable)
    return WsgiResponse(status, encoded, content)


def close_quietly(closable: Any) -> None:
    """Close what has been sent: it is too late to respond with an error."""
    if hasattr(closable, "close"):
        try:
            closable.close()
        except Exception:
            logger.exception("A response could not be closed.")


async def discard_body(receive: Receive) -> None:
    """Let a refused client send for a while, so that it reads the response instead of a broken connection."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while (event := await receive())["type"] == "http.request" and event["more_body"]:
                pass


async def send_text(send: Send, status: int, sentence: str, headers: list[tuple[bytes, bytes]]) -> None:
    body = f"{sentence}\n".encode()
    always = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*always, *headers]})
    await send({"type": "http.response.body", "body": body})
