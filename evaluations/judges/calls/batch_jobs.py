"""The jobs of batches: each is claimed while its file is sent, and polled until the server has ended it."""

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

    The whole lease is kept, since a server may still be receiving what a killed worker sent.
    """
    register_job_kind(JobKind(POLL_BATCH, step, lease=LEASE, keeps_whole_lease=True))


def poll_batches_now(run: Run) -> None:
    """Poll the run's batches now, without waiting for their next turn."""
    hasten_jobs(POLL_BATCH, Batch.objects.filter(run=run).values_list("pk", flat=True))
