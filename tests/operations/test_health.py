import logging
from unittest.mock import patch

import pytest
from django.db import OperationalError
from django.test import Client

from evaluations.judges.calls.worker_registry import record_heartbeat
from evaluations.models.jobs import Worker
from evaluations.operations import views

pytestmark = pytest.mark.any_database


@pytest.mark.django_db
def test_health_says_ok_to_anybody(client: Client) -> None:
    record_heartbeat("here", host="here", pid=1, version="1")
    answer = client.get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok\n")


@pytest.mark.django_db
def test_health_tells_where_no_worker_is_running(client: Client) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok\nno worker is running\n")


def test_health_says_so_when_the_database_does_not_answer(client: Client) -> None:
    with patch.object(Worker.objects, "alive", side_effect=OperationalError("gone")):
        answer = client.get("/healthz")
    assert (answer.status_code, answer.content) == (503, b"the database is not responding\n")


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/readyz", "/workz"])
def test_a_503_that_answers_a_monitor_is_not_logged(
    client: Client, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    with patch.object(views, "has_waiting_migrations", return_value=True):
        assert client.get(address).status_code == 503
    assert caplog.messages == []


def test_an_error_in_the_answer_to_a_monitor_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with patch.object(views, "measure_background", side_effect=ValueError("odd")):
        assert Client(raise_request_exception=False).get("/workz").status_code == 500
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
