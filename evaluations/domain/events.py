"""The verbs of events that several packages name, and what webhooks send."""

from enum import StrEnum
from typing import Final


class WebhookKind(StrEnum):
    RUN_FINISHED = "run.finished"
    RUN_STOPPED = "run.stopped"
    QUEUE_REVIEWED = "queue.reviewed"
    DISAGREEMENT_OPENED = "disagreement.opened"
    TEST = "test"


# The kinds that users select; a test is sent on request.
SELECTABLE_WEBHOOK_KINDS: Final = tuple(kind for kind in WebhookKind if kind is not WebhookKind.TEST)


class DeliveryState(StrEnum):
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


MINUTE: Final = 60
HOUR: Final = 60 * MINUTE

# After the first try, and so on: about two days in all.
DELIVERY_RETRY_SECONDS: Final = (30, 2 * MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, 16 * HOUR, 24 * HOUR)
MAX_DELIVERY_PAUSE_SECONDS: Final = 10 * MINUTE


def next_delivery_seconds(tries: int) -> int | None:
    """Seconds until the next try after this many failed tries; None once the delivery is given up."""
    return DELIVERY_RETRY_SECONDS[tries - 1] if tries <= len(DELIVERY_RETRY_SECONDS) else None


def delivery_pause_seconds(failures: int) -> int:
    """Seconds without any delivery to a receiver that failed this often in a row."""
    return min(DELIVERY_RETRY_SECONDS[min(failures, len(DELIVERY_RETRY_SECONDS)) - 1], MAX_DELIVERY_PAUSE_SECONDS)


SAW_VERDICTS: Final = "saw verdicts"
DOWNLOADED: Final = "downloaded"
