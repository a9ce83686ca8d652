"""How background work stands, measured once for the doctor, the status page, `/workz`, `/metrics` and the API.

Every question is answered from a small table or a partial index, so that it costs the same at any size of the site.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Greatest, Now

from evaluations.domain.events import DeliveryState
from evaluations.domain.jobs import PLAN_RUN, SENT_EXPORT_JOB, JobState
from evaluations.domain.judges import CallState, RunState
from evaluations.models.clock import read_clock
from evaluations.models.jobs import Job, Lease, Worker
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.webhooks import Delivery, OutboxEntry
from evaluations.operations.findings import Finding, Findings, Health, ok_finding, problem_finding, warning_finding

GIGABYTE: Final = 1024**3
LITTLE_SPACE: Final = 5 * GIGABYTE
NO_SPACE: Final = GIGABYTE
# Workers sweep every few seconds.
LATE_SWEEP_SECONDS: Final = 60.0
# Work that waits for so long while nothing is worked on stands still.
STANDSTILL_SECONDS: Final = 300.0
LATE_WEBHOOK: Final = timedelta(minutes=5)
MOST_COUNTED: Final = 1000
SWEEP_LEASE: Final = "sweep"
# In the errors of RabbitMQ and Redis.
REFUSED_BY_BROKER: Final = ("access_refused", "authentication required", "invalid username-password pair")
START_A_WORKER: Final = "Start everything with make run, or only a worker with make worker."


@dataclass(frozen=True)
class WorkerMeasure:
    name: str
    version: str
    started_at: datetime
    seen_seconds: float
    in_flight: int


@dataclass(frozen=True)
class Measures:
    """Seconds are by the database's clock; None where there is nothing to measure. Counts end at ``MOST_COUNTED``."""

    workers: list[WorkerMeasure]
    sweep_seconds: float | None
    due_jobs: int
    oldest_job_seconds: float | None
    running_jobs: int
    jobs_set_aside: int
    calls_in_flight: int
    oldest_call_seconds: float | None
    oldest_plan_seconds: float | None
    overdue_webhooks: int
    disk_free_bytes: int | None

    @property
    def is_working(self) -> bool:
        return self.running_jobs > 0 or self.calls_in_flight > 0


def measure_background() -> Measures:
    now = read_clock()
    due = Job.objects.due()
    return Measures(
        workers=[
            WorkerMeasure(str(row), row.version, row.started_at, seconds_since(row.seen_at, now) or 0.0, row.in_flight)
            for row in Worker.objects.alive().order_by("name")
        ],
        sweep_seconds=seconds_since(find_last_sweep(), now),
        due_jobs=due[:MOST_COUNTED].count(),
        oldest_job_seconds=seconds_since(find_oldest_due_job(), now),
        running_jobs=count_jobs_at_work(),
        jobs_set_aside=Job.objects.filter(state=JobState.SET_ASIDE)[:MOST_COUNTED].count(),
        calls_in_flight=Call.all_rows.filter(lease_until__gt=Now())[:MOST_COUNTED].count(),
        oldest_call_seconds=find_oldest_waiting_call(now),
        oldest_plan_seconds=seconds_since(find_oldest_planned_run(), now),
        overdue_webhooks=count_overdue_webhooks(),
        disk_free_bytes=read_free_space(),
    )


def seconds_since(moment: datetime | None, now: datetime) -> float | None:
    return None if moment is None else max((now - moment).total_seconds(), 0.0)


def count_jobs_at_work() -> int:
    """How many jobs workers are at. A file that a web process sends, or sent before it died, is no sign of a worker."""
    running = Job.objects.filter(state=JobState.RUNNING, lease_until__gt=Now())
    return running.exclude(kind=SENT_EXPORT_JOB)[:MOST_COUNTED].count()


def find_last_sweep() -> datetime | None:
    return Lease.objects.filter(name=SWEEP_LEASE).values_list("ended_at", flat=True).first()


def find_oldest_due_job() -> datetime | None:
    since = Greatest("queued_at", Coalesce("not_before", "queued_at"))
    return Job.objects.due().annotate(since=since).order_by("since").values_list("since", flat=True).first()


def find_oldest_waiting_call(now: datetime) -> float | None:
    """How long calls of a run may have been sent and none was, of the run that has waited longest."""
    calls = Call.all_rows.filter(run=OuterRef("pk"))
    due = calls.filter(Q(not_before__isnull=True) | Q(not_before__lte=Now()), state=CallState.PENDING)
    runs = Run.objects.with_ready_endpoint().filter(
        Exists(due), ~Exists(calls.filter(state=CallState.RUNNING, lease_until__gt=Now())), state=RunState.RUNNING
    )
    endpoint = ("judge__endpoint__paused_until", "judge__endpoint__probed_up_at")
    last_attempt = Attempt.objects.filter(run=OuterRef("pk")).order_by("-pk").values("created_at")[:1]
    first_wait = calls.filter(state=CallState.PENDING).order_by("pk").values("not_before")[:1]
    # When each run last asked something or could begin to: the latest of these.
    moments = runs.order_by("pk").values_list(
        *("created_at", "started_at", "resumed_at", *endpoint), Subquery(last_attempt), Subquery(first_wait)
    )
    moves = [max(moment for moment in row if moment is not None) for row in moments[:MOST_COUNTED]]
    return seconds_since(min(moves), now) if moves else None


def find_oldest_planned_run() -> datetime | None:
    """When the oldest run began that is to be planned and that nobody plans."""
    planning = Job.objects.filter(kind=PLAN_RUN, subject=OuterRef("pk"), state=JobState.RUNNING, lease_until__gt=Now())
    runs = Run.objects.filter(~Exists(planning), state=RunState.PLANNING).order_by("pk")
    return runs.values_list("created_at", flat=True).first()


def count_overdue_webhooks() -> int:
    """Messages that should have been made or sent some time ago, to receivers that are neither stopped nor paused."""
    deadline = Now() - LATE_WEBHOOK
    is_free = Q(webhook__paused_until__isnull=True) | Q(webhook__paused_until__lte=deadline)
    late = Delivery.objects.filter(
        is_free, state=DeliveryState.WAITING, not_before__lt=deadline, webhook__stopped_at__isnull=True
    )
    notes = OutboxEntry.objects.filter(created_at__lt=deadline)
    return late[:MOST_COUNTED].count() + notes[:MOST_COUNTED].count()


def read_free_space() -> int | None:
    try:
        return shutil.disk_usage(settings.DATA_DIR).free
    except OSError:
        return None


def find_standstill(measures: Measures) -> Iterator[str]:
    """Why background work stands still; nothing if it goes on or there is none to do."""
    if not measures.workers:
        yield "no worker is running"
        return
    if (age := sweep_age(measures)) > LATE_SWEEP_SECONDS:
        yield f"the last sweep was {format_age(age)} ago"
    if measures.is_working:
        return
    for what, seconds in (
        ("a job has waited", measures.oldest_job_seconds),
        ("calls have waited", measures.oldest_call_seconds),
        ("a run has waited to be planned", measures.oldest_plan_seconds),
    ):
        if seconds is not None and seconds > STANDSTILL_SECONDS:
            yield f"{what} for {format_age(seconds)}"


def sweep_age(measures: Measures) -> float:
    """Seconds since the last sweep. A site that never swept is as late as its oldest worker is old."""
    if measures.sweep_seconds is not None:
        return measures.sweep_seconds
    now = read_clock()
    return max(((now - worker.started_at).total_seconds() for worker in measures.workers), default=0.0)


def describe_background(measures: Measures) -> Findings:
    """The measures in sentences, each with advice where something is wrong."""
    yield from describe_workers(measures)
    yield describe_sweep(measures)
    yield describe_waiting("queue", describe_queue(measures), measures.oldest_job_seconds, measures)
    yield describe_waiting("calls", describe_calls(measures), measures.oldest_call_seconds, measures)
    if (seconds := measures.oldest_plan_seconds) is not None:
        yield describe_waiting("runs", f"a run has waited to be planned for {format_age(seconds)}", seconds, measures)
    if measures.overdue_webhooks:
        yield warning_finding(
            "webhooks",
            f"{format_count(measures.overdue_webhooks, 'message')} should have been sent {format_age(300)} ago.",
            "Check the worker's log, and the receivers on the Webhooks pages.",
        )


def describe_workers(measures: Measures) -> Findings:
    if not measures.workers:
        yield problem_finding(
            "workers",
            "No worker is running, so no background work is done.",
            START_A_WORKER,
        )
        return
    names = ", ".join(f"{worker.name} since {worker.started_at:%Y-%m-%d %H:%M}" for worker in measures.workers)
    yield ok_finding("workers", f"{len(measures.workers)} running: {names}")
    if old := [worker.name for worker in measures.workers if worker.version != settings.VERSION]:
        yield warning_finding("workers", f"{', '.join(old)} runs a different version of judgeweb.", "Restart it.")


def describe_sweep(measures: Measures) -> Finding:
    if (age := sweep_age(measures)) > LATE_SWEEP_SECONDS:
        if not measures.workers:
            return warning_finding("sweep", f"The last sweep was {format_age(age)} ago.", START_A_WORKER)
        advice = "Check the worker's log, and restart the workers."
        return problem_finding("sweep", f"The last sweep was {format_age(age)} ago: the workers are stuck.", advice)
    return ok_finding(
        "sweep", "none yet" if measures.sweep_seconds is None else f"the last one was {format_age(age)} ago"
    )


def describe_queue(measures: Measures) -> str:
    if measures.oldest_job_seconds is None:
        return "no job waits"
    jobs, age = format_count(measures.due_jobs, "job"), format_age(measures.oldest_job_seconds)
    return f"{jobs} {'waits' if measures.due_jobs == 1 else 'wait'}, the oldest for {age}"


def describe_calls(measures: Measures) -> str:
    flying = f"{measures.calls_in_flight} in flight"
    if measures.oldest_call_seconds is None:
        return f"{flying}, no run waits for a worker"
    return f"{flying}, a run has waited for a worker for {format_age(measures.oldest_call_seconds)}"


def describe_waiting(part: str, summary: str, seconds: float | None, measures: Measures) -> Finding:
    if seconds is None or seconds <= STANDSTILL_SECONDS:
        return ok_finding(part, summary)
    sentence = f"{summary[0].upper()}{summary[1:]}."
    if not measures.workers:
        return warning_finding(part, sentence, START_A_WORKER)
    advice = "Check the worker's log, and restart the workers or start more."
    build = warning_finding if measures.is_working else problem_finding
    return build(part, sentence, advice)


def describe_disk(free: int) -> Finding:
    summary = f"{free / GIGABYTE:.1f} GB are free for {settings.DATA_DIR}"
    if free >= LITTLE_SPACE:
        return ok_finding("disk", summary)
    build = problem_finding if free < NO_SPACE else warning_finding
    return build("disk", f"Only {summary}.", "Free disk space: runs stop and imports fail once the disk is full.")


def describe_broker(scheme: str, error: str) -> Finding:
    """``error`` is empty if the broker answers."""
    if not error:
        return ok_finding("broker", f"{scheme} answers")
    if any(words in error.lower() for words in REFUSED_BY_BROKER):
        return problem_finding("broker", f"{scheme} refuses the username or password.", "Check CELERY_BROKER_URL.")
    return problem_finding("broker", f"{scheme} does not answer: {error}.", "Check CELERY_BROKER_URL.")


def worst_health(findings: list[Finding]) -> Health:
    found = {finding.health for finding in findings}
    return next((health for health in (Health.PROBLEM, Health.WARNING) if health in found), Health.OK)


def format_count(count: int, noun: str) -> str:
    number = f"{count} or more" if count >= MOST_COUNTED else str(count)
    return f"{number} {noun}{'' if count == 1 else 's'}"


def format_age(seconds: float) -> str:
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return format_unit(int(seconds // size), unit)
    return format_unit(int(seconds), "second")


def format_unit(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"
