"""The states of a background job, and the kinds that several packages name."""

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
# What a job that is set aside was to do is not done either.
UNFINISHED_JOB_STATES: Final = (*OPEN_JOB_STATES, JobState.SET_ASIDE)

# Kinds of jobs that one part of the product enqueues and another works on.
CHECK_ENDPOINT: Final = "check_endpoint"  # of a pending test of an endpoint
COUNT_LABELS: Final = "count_labels"  # of an import's votes
COUNT_PROGRESS: Final = "count_progress"  # of an evaluation: how much is judged and reviewed
FILL_QUEUE: Final = "fill_queue"
INDEX_IMPORT: Final = "index_import"  # for the search
PLAN_RUN: Final = "plan_run"
RENDER_AHEAD: Final = "render_ahead"  # the HTML of texts that reviewers meet first
SENT_EXPORT_JOB: Final = "send_export"  # a file that the web process itself sends
