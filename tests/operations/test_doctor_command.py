"""``manage.py doctor``."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django.fixtures import Settings

from evaluations.models.jobs import Worker

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture(autouse=True)
def _made_ready(settings: Settings) -> None:
    settings.DEBUG = True  # static files are not collected for tests


def test_what_is_to_be_mended_ends_with_a_line_and_another_status() -> None:
    told = StringIO()
    with pytest.raises(CommandError, match=r"1 problem needs fixing\."):
        call_command("doctor", stdout=told)
    assert "PROBLEM  workers: No worker is running" in told.getvalue()
    assert "         → Start everything with make run" in told.getvalue()
    assert "ok       broker: " in told.getvalue()


def test_it_says_the_same_to_programs(settings: Settings) -> None:
    now = timezone.now()
    Worker.objects.create(name="here:1", host="here", pid=1, version=settings.VERSION, started_at=now, seen_at=now)
    told = StringIO()
    call_command("doctor", json=True, stdout=told)
    findings = json.loads(told.getvalue())
    assert {one["health"] for one in findings} <= {"ok", "warning"}
    assert {"part", "health", "summary", "advice"} == set(findings[0])
