"""Jobs are worked on in tests, and workers die at them."""

from datetime import timedelta

from django.db.models import F
from django.db.models.functions import Now

from evaluations.jobs.nudges import WorkerTask
from evaluations.jobs.runner import work_for_a_while
from evaluations.jobs.sweeper import put_back_lost_jobs
from evaluations.models.jobs import Job

Nudges = list[tuple[WorkerTask, tuple[int, ...]]]


def nudged_jobs(nudges: Nudges) -> list[int]:
    return [job_id for task, ids in nudges if task == WorkerTask.WORK_ON_JOB for job_id in ids]


def job_about(kind: str, subject: int) -> Job:
    return Job.objects.get(kind=kind, subject=subject)


def waiting(*kinds: str) -> list[int]:
    """What jobs of these kinds that wait for a worker are about."""
    return list(Job.objects.due().filter(kind__in=kinds).order_by("pk").values_list("subject", flat=True))


def work_once(kind: str, subject: int, *, seconds: float = 20.0) -> bool:
    """One step by a worker; whether more is left."""
    return work_for_a_while(job_about(kind, subject).pk, seconds=seconds)


def work_all(kind: str) -> None:
    """Everything of this kind that waits, by a worker."""
    for job in Job.objects.due().filter(kind=kind).order_by("pk"):
        while work_for_a_while(job.pk):
            pass


def hold_by_dead_worker(kind: str, subject: int) -> None:
    """The job as a worker left it that was killed, whose lease has run out."""
    jobs = Job.objects.filter(kind=kind, subject=subject)
    jobs.update(
        state="running",
        claimed_by="elsewhere:1",
        heartbeat_at=Now() - timedelta(hours=2),
        lease_until=Now() - timedelta(hours=1),
        begun_at=Now(),
        attempts=F("attempts") + 1,
    )


def kill_worker_at(kind: str, subject: int) -> None:
    """A worker claims the job and dies, and a sweep finds it."""
    hold_by_dead_worker(kind, subject)
    put_back_lost_jobs()
