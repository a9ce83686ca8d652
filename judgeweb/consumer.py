"""The part of a worker that listens to the broker. Nothing that the broker does or sends ends it."""

import logging
import time
from collections.abc import Callable
from typing import Any, Final

from celery.worker.consumer import Consumer
from kombu.message import Message

RESTART_SECONDS: Final = 1.0
# A broker that refuses a password does so at once, and Celery would try again dozens of times a second.
REPEATED_SECONDS: Final = 3.0

logger = logging.getLogger(__name__)


class LastingConsumer(Consumer):
    """Celery's consumer, which starts again after errors that end Celery's own.

    Garbage instead of a message, a password that is refused for a while, and a broker that closes a channel
    raise errors that are not those of a lost connection. Garbage has left its queue by then.
    """

    failed_at = float("-inf")  # by the clock of this process

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Workers tell each other nothing: rows say who is alive. Their queues would be shared with other applications.
        super().__init__(*args, **{**kwargs, "without_gossip": True, "without_mingle": True})

    def start(self) -> None:
        while True:
            try:
                super().start()
                return
            except Exception as error:  # noqa: BLE001 - a worker ends when it is told to, and for nothing else
                logger.warning("The connection to the broker starts again after %s", in_one_line(error))
                self.start_again(error)

    def on_connection_error_before_connected(self, exc: Exception) -> None:
        logger.warning("The broker takes no connection: %s", in_one_line(exc))
        self.rest_if_repeated()

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        super().on_connection_error_after_connected(exc)
        self.rest_if_repeated()

    def rest_if_repeated(self) -> None:
        """Connect again at once after one error, and a while later after several in a row."""
        if time.monotonic() - self.failed_at < 2 * REPEATED_SECONDS:
            time.sleep(REPEATED_SECONDS)
        self.failed_at = time.monotonic()

    def start_again(self, error: Exception) -> None:
        if self.connection:
            self.on_connection_error_after_connected(error)
        self.on_close()
        self._cancel_connection_timer_entries()  # type: ignore[attr-defined]  # its stubs are of an earlier version
        self.blueprint.restart(self)
        time.sleep(RESTART_SECONDS)

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Callable[[Message], None]:
        """Drop a message that Celery cannot make a task of: put back, it would come again for ever."""
        handle: Callable[[Message], None] = super().create_task_handler(*args, **kwargs)
        lost_connection = (*self.conninfo.connection_errors, *self.conninfo.channel_errors)  # type: ignore[attr-defined]

        def handle_or_drop(message: Message) -> None:
            try:
                handle(message)
            except lost_connection:
                raise
            except Exception as error:  # noqa: BLE001 - anything may have been put into the queue
                logger.warning("A message that is no task was dropped: %s", in_one_line(error))
                message.reject()

        return handle_or_drop


def in_one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
