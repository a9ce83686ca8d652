"""The states of a background job."""

from enum import StrEnum
from typing import Final


class JobState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SET_ASIDE = "set_aside"  # it killed too many workers


OPEN_JOB_STATES: Final = (JobState.WAITING, JobState.RUNNING)

INDEX_IMPORT: Final = "index_import"

# Kinds of jobs: the labels of an import's votes, places in an evaluation's queue, the HTML of its texts.
COUNT_LABELS: Final = "count_labels"

FILL_QUEUE: Final = "fill_queue"

RENDER_AHEAD: Final = "render_ahead"
