"""The product's web server in a thread of the tests, with an application of theirs, and raw connections to it."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from evaluations.web.request_bodies import BODY_FILE, BodyRefusal
from judgeweb.web_worker import build_server, sweep_connections
from judgeweb.wsgi_bridge import WsgiBridge

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
WsgiApplication = Callable[[Environ, StartResponse], Iterable[bytes]]


class Client:
    """A connection on which a test says exactly what is sent."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.file = self.socket.makefile("rb")

    def send(self, text: str | bytes) -> "Client":
        self.socket.sendall(text.encode() if isinstance(text, str) else text)
        return self

    def read_head(self) -> tuple[int, dict[str, str]]:
        """The status and headers of a response; (0, {}) if the connection was closed instead."""
        line = self.file.readline()
        if not line:
            return 0, {}
        headers = {}
        while header := self.file.readline().strip():
            name, _, value = header.decode().partition(":")
            headers[name.lower()] = value.strip()
        return int(line.split()[1]), headers

    def read_response(self) -> tuple[int, dict[str, str], bytes]:
        status, headers = self.read_head()
        return status, headers, self.file.read(int(headers.get("content-length", 0)))

    def is_closed(self) -> bool:
        return not self.file.read()

    def close(self) -> None:
        self.file.close()
        self.socket.close()


@dataclass
class WebServer:
    server: uvicorn.Server
    bridge: WsgiBridge
    loop: asyncio.AbstractEventLoop
    port: int
    scratch: Path
    seen: list[Environ] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    refusals: dict[str, BodyRefusal] = field(default_factory=dict)
    clients: list[Client] = field(default_factory=list)

    def connect(self, text: str = "") -> Client:
        client = Client(self.port)
        self.clients.append(client)
        return client.send(text)

    def on_loop(self, run: Callable[[], Any]) -> Any:
        async def call() -> Any:
            return run()

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(10)

    def sweep(self, seconds_later: float) -> None:
        """As the sweep in so many seconds from now."""
        self.on_loop(lambda: sweep_connections(self.server, self.loop.time() + seconds_later))

    def answers(self) -> bool:
        """Whether a new connection gets its page."""
        return self.connect("GET /page HTTP/1.1\r\nHost: a\r\n\r\n").read_response()[0] == 200


@contextmanager
def running_web_server(scratch: Path, application: WsgiApplication, threads: int = 1) -> Iterator[WebServer]:
    """Serve an application, and remember what it was asked. /signed-out and the like refuse large bodies."""
    started = threading.Event()
    box: list[WebServer] = []

    def refuse(environ: Environ, size: int | None) -> BodyRefusal | None:
        return next((why for why in BodyRefusal if environ["PATH_INFO"] == f"/{why}"), None)

    def remember(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        body = environ["wsgi.input"].read()
        box[0].seen.append({**environ, "kept": BODY_FILE in environ})
        box[0].bodies.append(body)
        return application(environ, start_response)

    async def serve() -> None:
        bridge = WsgiBridge(remember, refuse, scratch, threads=threads)
        server = build_server(bridge, graceful_seconds=1)
        listener = socket.create_server(("127.0.0.1", 0))
        await server.startup(sockets=[listener])
        box.append(WebServer(server, bridge, asyncio.get_running_loop(), listener.getsockname()[1], scratch))
        started.set()
        await server.main_loop()
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await server.shutdown()
        bridge.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(20)
    try:
        yield box[0]
    finally:
        box[0].server.should_exit = True
        for client in box[0].clients:
            client.close()
        thread.join(20)
