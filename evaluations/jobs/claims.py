"""Claims of jobs, by the database's clock."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Greatest, Now

from evaluations.domain.jobs import JobState
from evaluations.jobs.kinds import JobClaim, get_kind
from evaluations.models.jobs import Job, process_name

FAULT_PAUSE: Final = timedelta(seconds=30)


def claim_job(job_id: int, *, until: float | None = None) -> JobClaim | None:
    """Claim the job for this process; None if it is over, not due yet, or claimed by another."""
    job = Job.objects.due().filter(pk=job_id).first()
    if job is None:
        return None  # without a transaction: on SQLite even one that only reads keeps all writers waiting
    kind, me = get_kind(job.kind), process_name()
    if kind.per_worker is not None:
        mine = Job.objects.filter(kind=job.kind, state=JobState.RUNNING, claimed_by=me, lease_until__gt=Now())
        if mine.count() >= kind.per_worker:
            return None
    progress = {"position": 0, "begun_at": Now()} if kind.starts_over else {"begun_at": Coalesce("begun_at", Now())}
    is_claimed = update_due_job(
        job_id,
        state=JobState.RUNNING,
        claim=uuid.uuid4(),
        claimed_by=me,
        lease_until=Now() + kind.lease,
        heartbeat_at=Now(),
        not_before=None,
        attempts=F("attempts") + 1,
        **progress,
    )
    return JobClaim(Job.objects.select_related("evaluation").get(pk=job_id), until) if is_claimed else None


def update_due_job(job_id: int, **columns: Any) -> bool:
    """Update the job if it is still due. PostgreSQL skips a row that is locked.

    The heartbeat of its worker may be part of a longer transaction.
    """
    if not connection.features.has_select_for_update_skip_locked:
        return bool(Job.objects.due().filter(pk=job_id).update(**columns))
    with transaction.atomic():
        is_free = Job.objects.due().skipping_locked().filter(pk=job_id).first() is not None
        return is_free and bool(Job.objects.filter(pk=job_id).update(**columns))


def find_own_claim(kind: str, subject: int) -> JobClaim | None:
    """The claim of a job that this process created and claimed at once."""
    job = Job.objects.filter(kind=kind, subject=subject, state=JobState.RUNNING, claimed_by=process_name()).first()
    return JobClaim(job) if job else None


def release_claim(
    claim: JobClaim, *, reason: str = "", pause: timedelta = timedelta(), keeps_attempt: bool = False
) -> bool:
    """Release the job for the next worker. Return whether this process still held it."""
    not_before = Now() + pause if pause else None
    attempts = F("attempts") if keeps_attempt else Greatest(F("attempts") - 1, 0)
    columns = {"reason": reason, "not_before": not_before, "queued_at": Now(), "attempts": attempts}
    return update_claimed_job(claim, JobState.WAITING, **columns)


def end_claim(claim: JobClaim, state: JobState = JobState.DONE, reason: str = "") -> bool:
    """End the job. Return whether this process still held it."""
    return update_claimed_job(claim, state, reason=reason, finished_at=Now())


def update_claimed_job(claim: JobClaim, state: JobState, **columns: Any) -> bool:
    mine = Job.objects.filter(pk=claim.job.pk, claim=claim.job.claim, state=JobState.RUNNING)
    return bool(mine.update(state=state, claim=None, claimed_by="", lease_until=None, **columns))
