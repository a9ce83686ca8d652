"""The jobs of batches: each is claimed while its file is sent, and looked at again until its server has ended it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.jobs.queue import hasten_jobs
from evaluations.models.runs import Batch, Run

POLL_BATCH: Final = "poll_batch"
LEASE: Final = timedelta(minutes=15)  # longer than any upload may take, its repetitions included


def register_batch_jobs(step: Callable[[JobClaim], bool]) -> None:
    """Register the jobs that poll batches. The step is an argument, because its module takes half a second to import.

    A server may still take in what a killed worker sent, so the whole lease is waited for.
    """
    register_job_kind(JobKind(POLL_BATCH, step, lease=LEASE, keeps_whole_lease=True))


def look_at_batches_now(run: Run) -> None:
    """A cancelled run does not wait for the next look at its batches."""
    hasten_jobs(POLL_BATCH, Batch.objects.filter(run=run).values_list("pk", flat=True))
