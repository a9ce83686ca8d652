"""Measures for Prometheus: requests of the web processes, and background work as the database has it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from django.conf import settings
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from evaluations.domain.judges import CallState, RunState
from evaluations.domain.money import NANO_PER_USD
from evaluations.models.jobs import CallTotal
from evaluations.models.runs import Call, Run
from evaluations.operations.status import MOST_COUNTED, Measures, find_standstill, measure_background

BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

# A million would take a second of PostgreSQL at each scrape.
MOST_WAITING_CALLS: Final = 100_000

# In the memory of this process; in files that all web processes share where there are several.
REQUESTS_REGISTRY: Final = CollectorRegistry()
REQUESTS: Final = Counter(
    "judgeweb_http_requests", "Requests answered.", ("route", "method", "status"), registry=REQUESTS_REGISTRY
)
LATENCY: Final = Histogram(
    "judgeweb_http_request_duration_seconds",
    "Seconds from the request to its answer.",
    ("route", "method"),
    buckets=BUCKETS,
    registry=REQUESTS_REGISTRY,
)


class BackgroundCollector(Collector):
    """Asks the database at each scrape."""

    def collect(self) -> Iterator[Metric]:
        measures = measure_background()
        yield from collect_measures(measures)
        yield from collect_call_totals()
        yield collect_waiting_calls()


def collect_measures(measures: Measures) -> Iterator[Metric]:
    """Gauges; what cannot be measured now has none."""
    gauges: tuple[tuple[str, str, float | None], ...] = (
        ("workers", "Workers alive.", len(measures.workers)),
        ("sweep_age_seconds", "Seconds since the last sweep.", measures.sweep_seconds),
        ("jobs_due", f"Jobs that wait for a worker, counted up to {MOST_COUNTED}.", measures.due_jobs),
        ("queue_age_seconds", "How long the oldest due job has waited.", measures.oldest_job_seconds or 0),
        ("jobs_running", "Jobs that a worker has claimed.", measures.running_jobs),
        ("jobs_set_aside", "Jobs whose worker died twice.", measures.jobs_set_aside),
        (
            "calls_in_flight",
            f"Calls that a worker has claimed, counted up to {MOST_COUNTED}.",
            measures.calls_in_flight,
        ),
        ("calls_age_seconds", "How long a run has waited for a worker.", measures.oldest_call_seconds or 0),
        ("plan_age_seconds", "How long a run has waited to be planned.", measures.oldest_plan_seconds or 0),
        ("webhooks_overdue", "Webhook messages that are overdue.", measures.overdue_webhooks),
        ("disk_free_bytes", "Free space for the data folder.", measures.disk_free_bytes),
        ("background_stands_still", "1 where /workz answers 503.", float(any(find_standstill(measures)))),
    )
    for name, text, value in gauges:
        if value is not None:
            yield GaugeMetricFamily(f"judgeweb_{name}", text, value)


def collect_call_totals() -> Iterator[Metric]:
    """Sums of all requests to LLM servers since this site began to count them."""
    totals = list(CallTotal.objects.order_by("outcome"))
    for name, column, text, unit in (
        ("llm_requests", "requests", "Requests to LLM servers.", 1),
        ("llm_tokens_in", "tokens_in", "Tokens sent.", 1),
        ("llm_tokens_out", "tokens_out", "Tokens received.", 1),
        ("llm_cost_usd", "cost", "Their cost, where the price is known.", NANO_PER_USD),
        ("llm_latency_seconds", "latency_ms", "Total seconds waited for their answers.", 1000),
    ):
        family = CounterMetricFamily(f"judgeweb_{name}", text, labels=["outcome"])
        for total in totals:
            family.add_metric([total.outcome], getattr(total, column) / unit)
        yield family


def collect_waiting_calls() -> Metric:
    """The calls of active runs by state, from their index alone."""
    text = f"Unfinished calls of active runs, counted up to {MOST_WAITING_CALLS}."
    family = GaugeMetricFamily("judgeweb_calls", text, labels=["state"])
    active = Run.objects.filter(state__in=[RunState.PLANNING, RunState.RUNNING]).values("pk")
    for state in (CallState.PENDING, CallState.RUNNING):
        calls = Call.all_rows.filter(run__in=active, state=state)
        family.add_metric([state.value], calls[:MOST_WAITING_CALLS].count())
    return family


def build_metrics() -> bytes:
    registry = CollectorRegistry()
    registry.register(BackgroundCollector())
    if settings.METRICS_DIR is None:
        return generate_latest(REQUESTS_REGISTRY) + generate_latest(registry)
    multiprocess.MultiProcessCollector(registry, path=str(settings.METRICS_DIR))  # type: ignore[no-untyped-call]
    with locked(settings.METRICS_DIR, fcntl.LOCK_SH):
        return generate_latest(registry)


def take_over_counts(folder: Path) -> None:
    """Continue the files of a process that has ended, before this one counts: otherwise each start would leave two."""
    with locked(folder, fcntl.LOCK_EX):
        for kind in ("counter", "histogram"):
            own = folder / f"{kind}_{os.getpid()}.db"
            files = [] if own.exists() else folder.glob(f"{kind}_*.db")
            if left := next((file for file in files if not is_running(int(file.stem.partition("_")[2]))), None):
                left.rename(own)


@contextmanager
def locked(folder: Path, operation: int) -> Iterator[None]:
    """No file changes its name while a scrape adds them up: one would be counted twice or not at all."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, operation)
        yield


def is_running(pid: int) -> bool:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, 0)
        return True
    return False
