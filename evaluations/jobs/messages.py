"""Messages about jobs: each is a nudge that may be lost or come twice, for the row is the truth."""

import logging
from functools import partial
from typing import Any

from celery import shared_task
from celery.contrib.django.task import DjangoTask
from django.db import transaction

logger = logging.getLogger(__name__)


def nudge_job(job_id: int, *, expires: float | None = None) -> None:
    """Tell a worker of the job once the rows are committed; a message that cannot be sent is logged."""
    transaction.on_commit(partial(send_job_message, job_id, expires), robust=True)


def send_job_message(job_id: int, expires: float | None = None) -> None:
    options: dict[str, Any] = {} if expires is None else {"expires": expires}
    work_on_job.apply_async((job_id,), **options)


@shared_task(base=DjangoTask)
def work_on_job(job_id: int) -> None:
    """Work on a job for a while; another message follows where more is left."""
    from evaluations.jobs.runner import work_for_a_while  # noqa: PLC0415 - the runner sends messages too

    work_for_a_while(job_id)
