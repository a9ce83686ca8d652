"""Who may send a large body, and where there is room for it."""

from io import BytesIO
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError
from django.test import Client

from evaluations.domain import disk_space
from evaluations.models.users import User
from evaluations.web.request_bodies import BodyRefusal
from judgeweb import body_admission
from judgeweb.body_admission import refuse_body
from tests.helpers.api_client import token_for

pytestmark = pytest.mark.django_db
LARGE = 1_000_000


@pytest.fixture(autouse=True)
def one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's own connection, in its transaction, is not closed as if it were old."""
    monkeypatch.setattr(body_admission, "close_old_connections", lambda: None)


def environ(**headers: str) -> dict[str, Any]:
    return {"REQUEST_METHOD": "POST", "PATH_INFO": "/e/study/data", "wsgi.input": BytesIO(), **headers}


@pytest.fixture
def cookie(client: Client, owner: User, settings: LazySettings) -> str:
    client.force_login(owner)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def test_nobody_sends_a_large_body_without_signing_in(settings: LazySettings) -> None:
    assert refuse_body(environ(), LARGE) == BodyRefusal.SIGNED_OUT
    unknown = environ(HTTP_COOKIE=f"{settings.SESSION_COOKIE_NAME}=unknown")
    assert refuse_body(unknown, LARGE) == BodyRefusal.SIGNED_OUT
    assert refuse_body(environ(HTTP_AUTHORIZATION="Bearer jw_unknown"), LARGE) == BodyRefusal.SIGNED_OUT


def test_a_session_and_a_token_may(cookie: str, owner: User) -> None:
    assert refuse_body(environ(HTTP_COOKIE=cookie), LARGE) is None
    assert refuse_body(environ(HTTP_AUTHORIZATION=f"Bearer {token_for(owner)}"), None) is None


def test_a_session_of_a_disabled_account_may_not(cookie: str, owner: User) -> None:
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert refuse_body(environ(HTTP_COOKIE=cookie), LARGE) == BodyRefusal.SIGNED_OUT


def test_more_than_an_upload_may_have_is_refused_whoever_sends_it(cookie: str, settings: LazySettings) -> None:
    settings.MAX_UPLOAD_BYTES = LARGE
    assert refuse_body(environ(HTTP_COOKIE=cookie), 3 * LARGE) == BodyRefusal.TOO_LARGE
    assert refuse_body(environ(), 3 * LARGE) == BodyRefusal.TOO_LARGE


def test_the_reserve_of_the_disk_stays_free(
    cookie: str, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DISK_RESERVE_BYTES = 10 * LARGE
    monkeypatch.setattr(disk_space, "count_free_bytes", lambda folder: 11 * LARGE)
    asked = environ(HTTP_COOKIE=cookie)
    assert refuse_body(asked, LARGE) is None
    assert refuse_body(asked, LARGE + 1) == BodyRefusal.NO_ROOM
    form = {**asked, "CONTENT_TYPE": "multipart/form-data; boundary=x"}  # its file is written out of it
    assert refuse_body(form, LARGE) == BodyRefusal.NO_ROOM


def test_without_a_database_nobody_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(request: object) -> bool:
        raise OperationalError

    monkeypatch.setattr(body_admission, "is_signed_in", fail)
    assert refuse_body(environ(), LARGE) == BodyRefusal.NO_DATABASE
