"""Messages about jobs: each is a nudge that may be lost or come twice, for the row is the truth."""

from typing import Any, Final

from celery import current_app
from django.db import transaction

WORK_ON_JOB: Final = "evaluations.tasks.work_on_job"  # by name, so that senders need not import the worker's code


def nudge_job(job_id: int, *, expires: float | None = None) -> None:
    """Tell a worker of the job once the rows are committed; a message that cannot be sent is logged."""

    def send() -> None:
        send_job_message(job_id, expires)

    transaction.on_commit(send, robust=True)


def send_job_message(job_id: int, expires: float | None = None) -> None:
    options: dict[str, Any] = {} if expires is None else {"expires": expires}
    current_app.send_task(WORK_ON_JOB, (job_id,), **options)
