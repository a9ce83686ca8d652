"""Messages as files in a folder, for a product on one machine without a broker.

Kombu's own transport opens a message's file under its last name and then writes it: a worker that reads
in between, or after the writer was killed in between, gets half a message, and the worker ends
with an error that it does not survive. Here a file has its name once it is whole.
"""

import fcntl
import json
import logging
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty
from typing import Any, Final

from kombu.transport import filesystem
from kombu.transport.filesystem import exchange_queue_t

ABANDONED_AFTER_SECONDS: Final = 3600.0

logger = logging.getLogger(__name__)


def write_whole(path: Path, content: object) -> None:
    """Write a file that readers find whole or not at all."""
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4()}.unfinished")
    try:
        unfinished.write_text(json.dumps(content))
        os.replace(unfinished, path)
    except BaseException:
        with suppress(FileNotFoundError):
            unfinished.unlink()
        raise


def take(path: Path) -> bytes | None:
    """Remove a message and return its content; None if another process was faster."""
    taken = path.with_name(f"{path.name}.taken")
    try:
        path.rename(taken)
    except FileNotFoundError:
        return None
    content = taken.read_bytes()
    taken.unlink()
    return content


def tidy_folder(folder: Path) -> None:
    """Remove what killed processes did not finish writing, and put back what they had taken but not read.

    Both last for a moment only while a process lives. The time of a file's last change is that of its renaming, too.
    """
    long_ago = time.time() - ABANDONED_AFTER_SECONDS
    for path in [*folder.rglob("*.unfinished"), *folder.glob("*.taken")]:
        with suppress(FileNotFoundError):
            if path.stat().st_ctime > long_ago:
                continue
            if path.suffix == ".taken":
                path.rename(path.with_suffix(""))
            else:
                path.unlink()


class Channel(filesystem.Channel):
    """Kombu's channel, with messages and queue tables that are written whole."""

    def _put(self, queue: str, payload: object, **options: object) -> None:  # type: ignore[override]
        path = Path(self.data_folder_out, f"{time.monotonic_ns() // 1_000_000}_{uuid.uuid4()}.{queue}.msg")
        write_whole(path, payload)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        """The oldest message. One that nobody can read is left out: rows are the truth, a sweep sends another."""
        for path in sorted(Path(self.data_folder_in).glob("*.msg")):
            if path.name.partition(".")[2] == f"{queue}.msg" and (content := take(path)) is not None:
                try:
                    return json.loads(content)
                except ValueError as error:
                    logger.warning("The message %s cannot be read and is left out: %s", path, error)
        raise Empty

    def get_table(self, exchange: str) -> list[exchange_queue_t]:  # type: ignore[override]
        try:
            return super().get_table(exchange)
        except ValueError:  # cut off by a kill, in a version before this one
            return []

    def _queue_bind(self, exchange: str, routing_key: str | None, pattern: str | None, queue: str | None) -> None:
        bound = exchange_queue_t(routing_key or "", pattern or "", queue or "")
        with self.one_at_a_time():
            table = self.get_table(exchange)
            if bound not in table:
                write_whole(Path(self.control_folder, f"{exchange}.exchange"), [bound, *table])

    @contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        self.control_folder.mkdir(exist_ok=True)
        with Path(self.control_folder, "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class Transport(filesystem.Transport):
    Channel = Channel
