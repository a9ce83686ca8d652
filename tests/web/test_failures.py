"""A database that is away and a disk that is full: one sentence, and when to come back."""

import errno
import io
import logging
import sqlite3
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.contrib.auth.decorators import login_not_required
from django.core.handlers.wsgi import WSGIRequest
from django.db.backends.postgresql.base import DatabaseWrapper as Postgres
from django.db.backends.sqlite3.base import DatabaseWrapper as Sqlite
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory, override_settings
from django.urls import path

from evaluations.api.middleware import ProblemMiddleware
from evaluations.web.error_views import server_error
from evaluations.web.failures import is_database_away, is_disk_full
from evaluations.web.middleware import UploadLimitMiddleware
from evaluations.web.request_bodies import BODY_REFUSAL, BodyRefusal
from evaluations.web.sessions import SessionStore
from tests.factories.evaluations import make_user

handler500 = server_error

LOCKED = sqlite3.OperationalError("database is locked")
FULL = sqlite3.OperationalError("database or disk is full")
NO_CONNECTION = psycopg.OperationalError("connection refused")


def wrapped(error: Exception) -> Exception:
    """The error as Django raises it."""
    wrapper = Sqlite if isinstance(error, sqlite3.Error) else Postgres
    try:
        with wrapper({}).wrap_database_errors:
            raise error
    except Exception as raised:  # noqa: BLE001 - whichever it is
        return raised


def view(error: Exception) -> Callable[[HttpRequest], HttpResponse]:
    def answer(request: HttpRequest) -> HttpResponse:
        raise wrapped(error)

    return login_not_required(answer)


urlpatterns = [
    path("locked", view(LOCKED)),
    path("api/v1/locked", view(LOCKED)),
    path("away", view(NO_CONNECTION)),
    path("full", view(FULL)),
    path("api/v1/full", view(OSError(errno.ENOSPC, "No space left on device"))),
]


@pytest.fixture
def visitor() -> Client:
    return Client(raise_request_exception=False)


@pytest.mark.parametrize(
    "error",
    [
        LOCKED,
        sqlite3.OperationalError("unable to open database file"),
        NO_CONNECTION,
        psycopg.InterfaceError("connection already closed"),
        psycopg.errors.AdminShutdown("terminating connection"),
        psycopg.errors.CannotConnectNow("the database system is starting up"),
        psycopg.errors.TooManyConnections("sorry, too many clients already"),
        psycopg.errors.IdleInTransactionSessionTimeout("terminating connection due to idle-in-transaction timeout"),
        psycopg.errors.ReadOnlySqlTransaction("cannot execute UPDATE in a read-only transaction"),
    ],
)
def test_a_database_that_may_answer_again_is_away(error: Exception) -> None:
    assert is_database_away(wrapped(error))
    assert not is_disk_full(wrapped(error))


@pytest.mark.parametrize(
    "error",
    [
        sqlite3.OperationalError("no such table: x"),
        sqlite3.IntegrityError("UNIQUE constraint failed"),
        psycopg.errors.QueryCanceled("canceling statement due to statement timeout"),
        psycopg.errors.UndefinedColumn("column x does not exist"),
        psycopg.errors.InFailedSqlTransaction("current transaction is aborted"),
        psycopg.errors.DataCorrupted("invalid page in block 0"),
        ValueError("odd"),
    ],
)
def test_a_fault_of_ours_is_neither_an_absence_nor_a_full_disk(error: Exception) -> None:
    assert not is_database_away(wrapped(error))
    assert not is_disk_full(wrapped(error))


@pytest.mark.parametrize(
    "error", [FULL, psycopg.errors.DiskFull("could not extend file"), OSError(errno.ENOSPC, "No space left on device")]
)
def test_a_full_disk_is_told_from_other_failures(error: Exception) -> None:
    assert is_disk_full(wrapped(error))
    assert not is_database_away(wrapped(error))


def test_an_error_that_another_one_hides_is_found() -> None:
    outer = RuntimeError("the page cannot be built")
    outer.__context__ = wrapped(LOCKED)
    assert is_database_away(outer)


@pytest.mark.parametrize("page", ["/locked", "/away"])
@override_settings(ROOT_URLCONF="tests.web.test_failures")
def test_a_page_without_its_database_says_when_to_come_back(visitor: Client, page: str) -> None:
    answer = visitor.get(page)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "The database is not responding." in answer.content.decode()
    assert 'href="/"' in answer.content.decode()


@override_settings(ROOT_URLCONF="tests.web.test_failures")
def test_a_part_of_a_page_without_its_database_is_the_sentence_alone(visitor: Client) -> None:
    answer = visitor.get("/locked", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer.content.decode().startswith("<p")


@pytest.mark.parametrize(("address", "status", "code"), [("locked", 503, "unavailable"), ("full", 507, "disk_full")])
@override_settings(ROOT_URLCONF="tests.web.test_failures")
def test_a_program_gets_a_problem_document(visitor: Client, address: str, status: int, code: str) -> None:
    answer = visitor.get(f"/api/v1/{address}")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.get("Retry-After") == ("5" if status == 503 else None)


@override_settings(ROOT_URLCONF="tests.web.test_failures")
def test_a_full_disk_is_507_on_a_page(visitor: Client) -> None:
    answer = visitor.get("/full")
    assert answer.status_code == 507
    assert "Nothing was saved" in answer.content.decode()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is logged to stderr."""
    (handler,) = [handler for handler in logging.getLogger().handlers if handler.name == "stderr"]
    stream = io.StringIO()
    monkeypatch.setattr(handler, "stream", stream)
    return stream


@override_settings(ROOT_URLCONF="tests.web.test_failures")
def test_the_log_has_one_line_of_it_and_no_traceback(visitor: Client, log: io.StringIO) -> None:
    visitor.get("/locked")
    (line,) = log.getvalue().splitlines()
    assert line.endswith("Service Unavailable: /locked: database is locked")


def test_the_log_has_one_line_of_a_task_that_it_stopped(log: io.StringIO) -> None:
    """Celery's own message has the error in it; workers sweep every second, for as long as the database is away."""
    away = wrapped(psycopg.OperationalError("connection refused\n\tIs the server running?"))
    logging.getLogger("celery.app.trace").error("Task sweep raised unexpected: %r", away, exc_info=away)
    logging.getLogger("judgeweb.celery").error("Periodic work failed and goes on", exc_info=away)
    task, periodic = log.getvalue().splitlines()
    assert task.count("connection refused") == 1
    assert periodic.endswith("Periodic work failed and goes on: connection refused")


def test_the_log_keeps_the_traceback_of_all_other_errors(log: io.StringIO) -> None:
    logging.getLogger("celery.app.trace").error("Task sweep failed", exc_info=ValueError("unforeseen"))
    assert log.getvalue().splitlines()[-1] == "ValueError: unforeseen"


@pytest.mark.parametrize("address", ["/", "/e/study/", "/account"])
def test_a_session_that_cannot_be_read_is_503(
    visitor: Client, db: None, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    visitor.force_login(make_user())

    def fail(self: SessionStore) -> None:
        raise wrapped(NO_CONNECTION)

    monkeypatch.setattr(SessionStore, "_get_session_from_db", fail)
    answer = visitor.get(address)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")


def test_a_token_that_cannot_be_looked_up_is_503(visitor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> None:
        raise wrapped(psycopg.InterfaceError("connection already closed"))

    monkeypatch.setattr("evaluations.api.authentication.find_token", fail)
    answer = visitor.get("/api/v1/evaluations", headers={"Authorization": "Bearer jw_x"})
    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (503, "unavailable", "5")


def refused(why: BodyRefusal, address: str) -> HttpResponse:
    request: WSGIRequest = RequestFactory().post(address)
    request.META[BODY_REFUSAL] = why
    return ProblemMiddleware(UploadLimitMiddleware(lambda _: HttpResponse("went on")))(request)  # type: ignore[return-value]


def test_a_body_that_was_not_read_is_explained_by_its_reason() -> None:
    statuses = {why: refused(why, "/e/study/data").status_code for why in BodyRefusal}
    assert statuses == {"signed_out": 302, "too_large": 200, "no_room": 507, "no_database": 503}
    assert refused(BodyRefusal.SIGNED_OUT, "/e/study/data")["Location"] == "/sign-in?next=/e/study/data"


def test_a_part_of_a_page_whose_body_was_not_read_leads_to_the_sign_in_page_of_that_page(visitor: Client) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/e/study/review/7"}
    environ: Any = {BODY_REFUSAL: BodyRefusal.SIGNED_OUT}
    answer = visitor.post("/e/study/review/7/draft", headers=headers, **environ)
    assert (answer.status_code, answer["HX-Redirect"]) == (200, "/sign-in?next=/e/study/review/7")


def test_a_program_without_a_token_is_told_so_by_the_operation_itself() -> None:
    assert refused(BodyRefusal.SIGNED_OUT, "/api/v1/evaluations").content == b"went on"
    assert refused(BodyRefusal.NO_ROOM, "/api/v1/evaluations").status_code == 507
