"""The bodies of requests on their way in: small ones to memory, others to disk, and unwanted ones not read."""

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from evaluations.domain.disk_space import is_no_space_left
from evaluations.web.request_bodies import BODY_FILE, BODY_REFUSAL, BodyRefusal

SMALL_BYTES: Final = 64 * 1024
WRITE_BYTES: Final = 256 * 1024
ASKED_BYTES: Final = 16 * 1024 * 1024  # how often a body of unknown length asks whether there is room for it
# A body may take this long, and a second more for each of so many bytes that have come in.
BODY_SECONDS: Final = 20.0
BYTES_PER_SECOND: Final = 4096


class ClientGone(Exception):
    pass


class TooSlow(Exception):
    pass


@dataclass
class ReceivedBody:
    """A body in whole, or the reason why it was not read."""

    size: int
    file: BinaryIO = field(default_factory=BytesIO)
    path: str = ""
    refusal: BodyRefusal | None = None

    @property
    def environ(self) -> dict[str, Any]:
        environ: dict[str, Any] = {"wsgi.input": self.file, "CONTENT_LENGTH": str(self.size)}
        if self.path:
            environ[BODY_FILE] = self.file
        if self.refusal:
            environ[BODY_REFUSAL] = self.refusal
        return environ

    def close(self) -> None:
        """Remove the file, unless it was kept under another name."""
        with suppress(OSError):  # on a full disk closing fails as well
            self.file.close()
        if self.path:
            with suppress(FileNotFoundError):
                os.unlink(self.path)


class BodyReceiver:
    """Receives one body."""

    def __init__(
        self,
        receive: Callable[[], Awaitable[Any]],
        scratch: Path,
        disk: Executor,
        refuse: Callable[[int | None], Awaitable[BodyRefusal | None]],
    ) -> None:
        self.receive_event, self.scratch, self.disk, self.refuse = receive, scratch, disk, refuse
        self.began = time.monotonic()
        self.size = 0
        self.more = True

    async def receive(self, length: int, *, is_chunked: bool) -> ReceivedBody:
        if not length and not is_chunked:
            return ReceivedBody(0)
        if length > SMALL_BYTES and (refusal := await self.refuse(length)):
            return ReceivedBody(length, refusal=refusal)
        start = bytearray()
        while self.more and len(start) <= SMALL_BYTES:
            start += await self.next_block()
        if not self.more:
            return ReceivedBody(len(start), BytesIO(bytes(start)))
        if not length and (refusal := await self.refuse(None)):
            return ReceivedBody(self.size, refusal=refusal)
        return await self.spool(start, asks=not length)

    async def next_block(self) -> bytes:
        allowed = BODY_SECONDS + self.size / BYTES_PER_SECOND - (time.monotonic() - self.began)
        try:
            async with asyncio.timeout(max(allowed, 0)):
                event = await self.receive_event()
        except TimeoutError:
            raise TooSlow from None
        if event["type"] != "http.request":
            raise ClientGone
        self.more = event["more_body"]
        block: bytes = event["body"]
        self.size += len(block)
        return block

    async def spool(self, start: bytearray, *, asks: bool) -> ReceivedBody:
        """Write the body to a file. ``asks``: whether its length is unknown, so that room is looked for on the way."""
        in_thread = asyncio.get_running_loop().run_in_executor
        waiting, asked = start, self.size
        body = ReceivedBody(0)
        try:
            body = await in_thread(self.disk, self.make_file)
            while self.more or waiting:
                if len(waiting) >= WRITE_BYTES or not self.more:
                    await in_thread(self.disk, body.file.write, bytes(waiting))
                    waiting.clear()
                if asks and self.size - asked > ASKED_BYTES:
                    asked = self.size
                    if refusal := await self.refuse(self.size):
                        body.close()
                        return ReceivedBody(self.size, refusal=refusal)
                if self.more:
                    waiting += await self.next_block()
            await in_thread(self.disk, body.file.seek, 0)
        except OSError as error:
            body.close()
            if not is_no_space_left(error):
                raise
            return ReceivedBody(self.size, refusal=BodyRefusal.NO_ROOM)
        except BaseException:
            body.close()
            raise
        body.size = self.size
        return body

    def make_file(self) -> ReceivedBody:
        file = tempfile.NamedTemporaryFile(prefix="body-", dir=self.scratch, delete=False)  # noqa: SIM115 - ReceivedBody
        return ReceivedBody(0, cast(BinaryIO, file), file.name)
