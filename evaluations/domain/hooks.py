"""The words of webhooks: what is told to other programs, what became of it, and when it is tried again."""

from enum import StrEnum
from typing import Final


class HookKind(StrEnum):
    """What a webhook can be told of."""

    RUN_FINISHED = "run.finished"
    RUN_STOPPED = "run.stopped"
    ROUND_REVIEWED = "round.reviewed"
    DISAGREEMENT_OPENED = "disagreement.opened"
    TEST = "test"


# Those that a person chooses among; a test comes to whoever asks for one.
CHOSEN_KINDS: Final = tuple(kind for kind in HookKind if kind is not HookKind.TEST)


class DeliveryState(StrEnum):
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
# After the first try, and so on: about two days in all.
RETRY_SECONDS: Final = (30, 2 * MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, 16 * HOUR, 24 * HOUR)
LONGEST_PAUSE_SECONDS: Final = 10 * MINUTE


def next_try_seconds(tries: int) -> int | None:
    """How long to wait after so many tries that failed; None once it is given up."""
    return RETRY_SECONDS[tries - 1] if tries <= len(RETRY_SECONDS) else None


def pause_seconds(failures: int) -> int:
    """How long a receiver that failed so often in a row is left alone, whatever waits for it."""
    return min(RETRY_SECONDS[min(failures, len(RETRY_SECONDS)) - 1], LONGEST_PAUSE_SECONDS)
