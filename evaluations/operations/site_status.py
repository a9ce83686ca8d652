"""The state of the site as the status page and the API show it."""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone

from evaluations.jobs.nudges import reach_broker
from evaluations.jobs.sweeper import list_jobs_set_aside
from evaluations.operations.findings import Finding, Health, problem_finding, warning_finding
from evaluations.operations.status import (
    Measures,
    describe_background,
    describe_broker,
    describe_disk,
    measure_background,
    worst_health,
)

BROKER_TIMEOUT_SECONDS: Final = 2
# The page refreshes itself in several browsers: the broker is asked once for all of them.
BROKER_ASKED_EVERY_SECONDS: Final = 15.0
JOBS_SHOWN: Final = 20


@dataclass
class BrokerAnswer:
    """What the broker last said to this process: its error, or nothing."""

    error: str = ""
    asked_at: float | None = None


BROKER_ANSWER: Final = BrokerAnswer()


@dataclass(frozen=True)
class SiteStatus:
    health: Health
    measured_at: datetime
    findings: list[Finding]
    measures: Measures


def build_site_status() -> SiteStatus:
    measures = measure_background()
    scheme = urlsplit(settings.CELERY_BROKER_URL).scheme
    findings = [*describe_background(measures), describe_broker(scheme, ask_broker())]
    if measures.disk_free_bytes is None:
        findings.append(
            problem_finding("disk", f"{settings.DATA_DIR} cannot be read.", "Mount it, or fix the permissions.")
        )
    else:
        findings.append(describe_disk(measures.disk_free_bytes))
    findings += describe_jobs_set_aside()
    return SiteStatus(worst_health(findings), timezone.now(), findings, measures)


def describe_jobs_set_aside() -> list[Finding]:
    return [
        warning_finding(
            "jobs",
            f"{job}: {job.reason}",
            f"Then run: manage.py retry_job {job.kind} {job.subject}",
        )
        for job in list_jobs_set_aside()[:JOBS_SHOWN]
    ]


def ask_broker() -> str:
    """The broker's error, or an empty text if it answers."""
    last = BROKER_ANSWER
    if last.asked_at is None or time.monotonic() - last.asked_at > BROKER_ASKED_EVERY_SECONDS:
        try:
            reach_broker(BROKER_TIMEOUT_SECONDS)
        except Exception as error:  # noqa: BLE001 - each broker has its own errors, and any of them is the answer
            last.error = error_in_one_line(error)
        else:
            last.error = ""
        last.asked_at = time.monotonic()
    return last.error


def error_in_one_line(error: Exception) -> str:
    line = " ".join(str(error).split()) or type(error).__name__
    return line.rstrip(".")
