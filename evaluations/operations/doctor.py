"""Checks of every part of the installation, with advice for each problem."""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain.errors import InputRefused
from evaluations.domain.jobs import JobState
from evaluations.domain.judges import OPEN_CALL_STATES
from evaluations.judges.endpoints.key_encryption import NOT_READABLE, is_key_readable
from evaluations.judges.endpoints.outages import describe_outage
from evaluations.judges.endpoints.selectors import latest_model, server_for_endpoint
from evaluations.llm.client import find_connection_problem
from evaluations.models.clock import read_clock
from evaluations.models.jobs import Job
from evaluations.models.judges import Endpoint
from evaluations.models.migration_history import refusal_of_other_version
from evaluations.models.runs import Call
from evaluations.models.webhooks import OutboxEntry
from evaluations.operations.findings import Finding, Findings, Health, ok_finding, problem_finding, warning_finding
from evaluations.operations.site_status import describe_jobs_set_aside, error_in_one_line
from evaluations.operations.sql import read_durability_setting, read_server_version
from evaluations.operations.status import describe_background, describe_broker, describe_disk, measure_background

MAX_CLOCK_DIFFERENCE_SECONDS: Final = 5
OVERDUE: Final = timedelta(minutes=2)
LOCAL_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]", "::1")


def run_checks(reach_broker: Callable[[], None]) -> Findings:
    """Check every part in turn. ``reach_broker`` raises if the broker does not answer."""
    yield from check_settings()
    yield from check_disk()
    yield from check_broker(reach_broker)
    try:
        findings = list(check_database())
    except DatabaseError as error:
        yield problem_finding(
            "database", f"Not responding: {error_in_one_line(error)}.", "Check DATABASE_URL, and start it."
        )
        return
    yield from findings
    if all(finding.health is not Health.PROBLEM for finding in findings):
        yield from check_workers()
        yield from check_jobs()
        yield from check_endpoints()


def check_settings() -> Findings:
    host = urlsplit(settings.ADDRESS).hostname or ""
    if settings.DEBUG and host not in LOCAL_HOSTS:
        yield problem_finding(
            "settings", f"JUDGEWEB_DEBUG is on at {settings.ADDRESS}: error pages show source code.", "Remove it."
        )
    elif not settings.BEHIND_HTTPS and host not in LOCAL_HOSTS:
        yield warning_finding(
            "settings",
            f"{settings.ADDRESS} has no encryption: passwords and links can be intercepted.",
            "Put a proxy with a certificate in front of it, and set JUDGEWEB_ADDRESS=https://….",
        )
    else:
        yield ok_finding("settings", f"judgeweb {settings.VERSION} at {settings.ADDRESS}")
    if settings.BEHIND_HTTPS and not settings.TRUSTED_PROXIES:
        yield warning_finding(
            "settings",
            "Client addresses are unknown, so sign-in throttling works by username only.",
            "Set JUDGEWEB_TRUSTED_PROXIES to the networks of the proxy, such as 127.0.0.1/32.",
        )
    for key in (settings.DATA_DIR / "secret_key", settings.ENCRYPTION_KEY_FILE):
        if key.exists() and stat.S_IMODE(key.stat().st_mode) & 0o077:
            yield warning_finding("settings", f"Other accounts on this machine can read {key}.", f"chmod 600 {key}")
    if settings.DATA_DIR.exists() and settings.DATA_DIR.stat().st_mode & 0o077:
        yield warning_finding(
            "settings",
            f"{settings.DATA_DIR} is readable by other accounts on this machine.",
            f"chmod 700 {settings.DATA_DIR}",
        )
    if not settings.DEBUG and not (settings.STATIC_ROOT / "staticfiles.json").exists():
        yield problem_finding("settings", "The static files were not collected.", "Run: manage.py make_ready")


def check_disk() -> Findings:
    folder = settings.DATA_DIR
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        yield problem_finding(
            "disk", f"Cannot write to {folder}: {error.strerror}.", "Free disk space, or fix the permissions."
        )
        return
    yield describe_disk(shutil.disk_usage(folder).free)


def check_broker(reach_broker: Callable[[], None]) -> Findings:
    scheme = urlsplit(settings.CELERY_BROKER_URL).scheme
    error = ""
    try:
        reach_broker()
    except Exception as refused:  # noqa: BLE001 - each broker has its own errors, and any of them is the finding
        error = error_in_one_line(refused)
    yield describe_broker(scheme, error)


def check_database() -> Findings:
    version, mode = read_server_version(), read_durability_setting()
    name = "SQLite" if settings.USES_SQLITE else "PostgreSQL"
    if mode.lower() not in ("wal", "utf8"):
        problem = f"journal is {mode}, not WAL" if settings.USES_SQLITE else f"encoding is {mode}, not UTF8"
        yield warning_finding(
            "database", f"Its {problem}.", "Keep SQLite on a local disk; create a PostgreSQL database with UTF8."
        )
    if refusal := refusal_of_other_version():
        yield problem_finding("database", refusal, "")
        return
    if waiting := count_waiting_migrations():
        yield problem_finding("database", f"{waiting} migrations are not applied.", "Run: manage.py make_ready")
        return
    yield ok_finding("database", f"{name} {version}, every migration is applied")
    yield from check_clocks()


def count_waiting_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def has_waiting_migrations() -> bool:
    return count_waiting_migrations() > 0


def check_clocks() -> Findings:
    """Compare the clocks: leases use the database's, pages this machine's."""
    difference = abs((timezone.now() - read_clock()).total_seconds())
    if difference > MAX_CLOCK_DIFFERENCE_SECONDS:
        yield warning_finding(
            "database", f"Its clock is {difference:.0f} seconds off from this machine's.", "Synchronize both with NTP."
        )


def check_workers() -> Findings:
    measures = measure_background()
    yield from describe_background(measures)
    if not measures.workers:
        return
    if overdue := list(find_overdue_work()):
        yield problem_finding(
            "workers",
            f"{', '.join(overdue)} is overdue by minutes: the workers are stuck.",
            "Check the worker's log, and restart the workers.",
        )


def find_overdue_work() -> Iterator[str]:
    """Find work that a sweep should have resumed by now."""
    deadline = Now() - OVERDUE
    if calls := Call.all_rows.filter(state__in=OPEN_CALL_STATES, lease_until__lt=deadline).count():
        yield f"{calls} calls"
    if jobs := Job.objects.filter(state=JobState.RUNNING, lease_until__lt=deadline).count():
        yield f"{jobs} jobs"
    if entries := OutboxEntry.objects.filter(created_at__lt=deadline).count():
        yield f"{entries} notes for webhooks"


def check_jobs() -> Findings:
    yield from describe_jobs_set_aside()


def check_endpoints() -> Findings:
    for endpoint in Endpoint.objects.order_by("name"):
        part = f"endpoint {endpoint.name}"
        if not is_key_readable(endpoint):
            yield problem_finding(part, *NOT_READABLE.split(". ", 1))
            continue
        problem = find_connection_problem(server_for_endpoint(endpoint))
        if outage := describe_outage(endpoint):
            yield warning_finding(part, outage, f"Start it. {endpoint.down_reason}")
            continue
        if problem:
            yield warning_finding(part, problem, f"Check {endpoint.base_url}, and the environment of the workers.")
        else:
            yield check_endpoint_answer(endpoint, part)


def check_endpoint_answer(endpoint: Endpoint, part: str) -> Finding:
    """Ask the model that its judges use one question. Without a judge, reaching the server is enough."""
    from evaluations.judges.endpoints.checks import find_model_problem  # noqa: PLC0415 - openai is slow to import

    model = latest_model(endpoint)
    if not model:
        return ok_finding(part, f"{endpoint.base_url} responds; no judge uses it yet")
    try:
        problem = find_model_problem(endpoint, model)
    except InputRefused as refused:  # its daily budget does not cover the question
        return warning_finding(part, f"{model} was not tested", str(refused))
    if problem:
        return problem_finding(
            part, f"{model} did not answer: {problem}", f"Run: manage.py check_endpoint “{endpoint.name}”"
        )
    return ok_finding(part, f"{model} responds")
