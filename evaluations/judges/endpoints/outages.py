"""An endpoint that answered before and no longer does is set aside for the site, and probed until it is back.

Probes are free: the list of models, or any answer where there is none. A job makes them, one at a time.
"""

import random
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import AttemptOutcome, CallState, RunState
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.jobs.nudges import WorkerTask, nudge
from evaluations.jobs.queue import enqueue_job, hasten_jobs
from evaluations.judges.endpoints.selectors import server_for_endpoint
from evaluations.models.jobs import Job
from evaluations.models.judges import Endpoint, EndpointCheck
from evaluations.models.runs import Attempt, Call, Run

PROBE_ENDPOINT: Final = "probe_endpoint"
FIRST_PROBE_SECONDS: Final = 1.0
MAX_PROBE_SECONDS: Final = 4 * 3600.0
MAX_LOST_PROBES: Final = 1_000  # a probe holds nothing that could kill a worker
REASON_LENGTH: Final = 500


def has_endpoint_answered(endpoint: Endpoint) -> bool:
    """Whether it is known to work: a request or a test of it was answered."""
    answered = Attempt.objects.filter(run__judge__endpoint=endpoint, outcome=AttemptOutcome.ANSWERED)
    return (
        answered.exists()
        or EndpointCheck.objects.filter(endpoint=endpoint, result__request_shape__isnull=False)
        .exclude(result__request_shape=None)
        .exists()
    )


def has_answered_since_probe(endpoint: Endpoint) -> bool:
    """Whether a request was answered after the last probe that ended an outage. Before it nothing is proved."""
    if endpoint.probed_up_at is None:
        return True
    answered = Attempt.objects.filter(run__judge__endpoint=endpoint, outcome=AttemptOutcome.ANSWERED)
    newest = answered.order_by("-pk").values_list("created_at", flat=True).first()
    return newest is not None and newest > endpoint.probed_up_at


@transaction.atomic
def set_endpoint_aside(endpoint: Endpoint, reason: str) -> None:
    """Send nothing more to the endpoint, from any worker, until a probe finds it up. The first reason is kept."""
    row = Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint.pk)
    if row.down_since is not None:
        return
    # One that answers probes and no requests is asked ever more rarely.
    probes = 0 if has_answered_since_probe(row) else row.failed_probes + 1
    wait = probe_wait(probes)
    columns = {"down_since": Now(), "down_reason": reason[:REASON_LENGTH], "failed_probes": probes}
    Endpoint.objects.filter(pk=row.pk).update(**columns, next_probe_at=Now() + wait)
    enqueue_probe(row.pk, wait)
    record_event("set aside", row, user=None, evaluation=None, after={"reason": reason[:REASON_LENGTH]})


def probe_wait(failed_probes: int) -> timedelta:
    """How long to wait before the next probe: one second at first, then twice as long each time, with some chance."""
    seconds = min(FIRST_PROBE_SECONDS * 2.0 ** min(failed_probes, 30), MAX_PROBE_SECONDS)
    return timedelta(seconds=seconds * random.uniform(0.8, 1.2))


def enqueue_probe(endpoint_id: int, wait: timedelta) -> None:
    job = enqueue_job(PROBE_ENDPOINT, endpoint_id, evaluation=None)
    Job.objects.filter(pk=job.pk).update(not_before=Now() + wait)


def probe_endpoint(claim: JobClaim) -> bool:
    """Probe an endpoint that is set aside; done once it answers."""
    from evaluations.llm.client import find_connection_problem  # noqa: PLC0415 - openai takes half a second to import

    endpoint = Endpoint.objects.filter(pk=claim.job.subject, down_since__isnull=False).first()
    if endpoint is None:
        return True
    if not find_connection_problem(server_for_endpoint(endpoint), is_refusal_fine=True):
        end_outage(endpoint)
        return True
    failed = endpoint.failed_probes + 1
    claim.pause = probe_wait(failed)
    Endpoint.objects.filter(pk=endpoint.pk).update(failed_probes=failed, next_probe_at=Now() + claim.pause)
    return False


register_job_kind(JobKind(PROBE_ENDPOINT, probe_endpoint, attempts=MAX_LOST_PROBES))


@transaction.atomic
def end_outage(endpoint: Endpoint) -> None:
    """Let requests go to the endpoint again, and wake the runs that wait for it."""
    columns = {"down_since": None, "down_reason": "", "next_probe_at": None, "probed_up_at": Now()}
    if not Endpoint.objects.filter(pk=endpoint.pk, down_since__isnull=False).update(**columns):
        return
    record_event("answers again", endpoint, user=None, evaluation=None)
    running = Run.objects.filter(judge__endpoint=endpoint, state=RunState.RUNNING).order_by("pk")
    run_ids = list(running.values_list("pk", flat=True))
    waiting = Call.all_rows.filter(run__in=run_ids, state=CallState.PENDING, not_before__gt=Now())
    waiting.update(not_before=None)
    for run_id in run_ids:
        nudge(WorkerTask.WORK_RUN, run_id)


def probe_now(endpoint: Endpoint) -> None:
    """Probe an endpoint that is set aside at once, because somebody asks for it."""
    if Endpoint.objects.filter(pk=endpoint.pk, down_since__isnull=False).update(next_probe_at=Now()):
        hasten_jobs(PROBE_ENDPOINT, [endpoint.pk])


def probe_endpoint_of_run(run: Run) -> None:
    if run.judge.endpoint is None or run.judge.endpoint.down_since is None:
        raise InputRefused("The endpoint of this run is not down, so there is nothing to retry.")
    probe_now(run.judge.endpoint)


def restore_lost_probes() -> None:
    """Enqueue the probes of endpoints that are set aside without one, as after a restored database."""
    probed = Job.objects.open().filter(kind=PROBE_ENDPOINT).values("subject")
    for pk in Endpoint.objects.filter(down_since__isnull=False).exclude(pk__in=probed).values_list("pk", flat=True):
        enqueue_probe(pk, timedelta())


def describe_outage(endpoint: Endpoint | None) -> str:
    """One sentence about an endpoint that does not answer, with times in the reader's zone; "" if it does."""
    if endpoint is None or endpoint.down_since is None:
        return ""
    since = timezone.localtime(endpoint.down_since)
    day = "" if since.date() == timezone.localdate() else f"{since:%-d %b}, "
    seconds = (endpoint.next_probe_at - timezone.now()).total_seconds() if endpoint.next_probe_at else 0.0
    return f"{endpoint.name} has not answered since {day}{since:%H:%M}; next try {describe_wait(seconds)}."


def describe_wait(seconds: float) -> str:
    """
    >>> describe_wait(40.4), describe_wait(-3), describe_wait(600), describe_wait(9000)
    ('in 40 s', 'in a moment', 'in 10 min', 'in 2.5 h')
    """
    if seconds < 1:
        return "in a moment"
    if seconds < 120:
        return f"in {seconds:.0f} s"
    return f"in {seconds / 60:.0f} min" if seconds < 7200 else f"in {seconds / 3600:.1f} h"
