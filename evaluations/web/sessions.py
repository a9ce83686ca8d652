"""Sessions of browsers: where they are stored, when they end, and from where they come."""

import contextlib
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user
from django.contrib.auth.middleware import AuthenticationMiddleware as DjangoAuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.middleware import SessionMiddleware as DjangoSessionMiddleware
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.functional import SimpleLazyObject

from evaluations.audit.security import act_from, get_client
from evaluations.models.sign_ins import Session, find_session
from evaluations.models.transactions import limit_write_wait
from evaluations.models.users import User
from evaluations.web.client_address import read_client_address

# A page of a signed-in person writes no more often than this that they are there.
SEEN_AGAIN_AFTER: Final = timedelta(minutes=5)
USER_AGENT_CHARACTERS: Final = 200
USE_WAIT_MILLISECONDS: Final = 200
# A key of a session: its person may set a new password without the old one, as long as the sign-in is recent.
SIGNED_IN_BY_LINK: Final = "signed in by link"
RECENT_SIGN_IN: Final = timedelta(minutes=30)


class SessionStore(DatabaseStore):
    """Sessions in our own table. One that was idle for too long is as if it had expired."""

    # The row, if the session was loaded.
    row: Session | None = None
    address: str = ""
    user_agent: str = ""

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def _get_session_from_db(self) -> Session | None:
        now = timezone.now()
        row = find_session(self.session_key, now) if self.session_key else None
        if row is not None and row.last_seen_at <= now - timedelta(hours=settings.SESSION_IDLE_HOURS):
            row = None
        if row is None:
            self._session_key = None
        self.row = row
        return row

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        row = super().create_model_instance(data)
        assert isinstance(row, Session)
        row.user_id = int(data[SESSION_KEY]) if SESSION_KEY in data else None
        row.address, row.user_agent = self.address, self.user_agent
        return row

    def note_use(self) -> None:
        """Write that the session is in use, if that was not written in the last minutes."""
        now = timezone.now()
        if self.row is not None and self.session_key == self.row.pk and self.row.last_seen_at <= now - SEEN_AGAIN_AFTER:
            stale = Session.objects.filter(pk=self.row.pk, last_seen_at=self.row.last_seen_at)
            # The page is ready: a database that is busy or read-only must not take it from the person.
            with contextlib.suppress(DatabaseError), limit_write_wait(USE_WAIT_MILLISECONDS):
                stale.update(last_seen_at=now, address=self.address, user_agent=self.user_agent)


class SessionMiddleware(DjangoSessionMiddleware):
    """Django's, with the address and the browser of each session."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        agent = "".join(filter(str.isprintable, request.headers.get("User-Agent", "")))[:USER_AGENT_CHARACTERS]
        with act_from(read_client_address(request), agent):
            return super().__call__(request)  # type: ignore[return-value]  # the server is never asynchronous here

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        store, client = get_store(request), get_client()
        store.address, store.user_agent = client.address, client.user_agent

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        store = get_store(request)
        if store.accessed and not store.is_empty():
            store.note_use()
        return super().process_response(request, response)


class AuthenticationMiddleware(DjangoAuthenticationMiddleware):
    """Django's, without reading the user a second time after the session."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        user: Any = SimpleLazyObject(lambda: get_user_of_session(request))
        request.user = user


def get_user_of_session(request: HttpRequest) -> User | AnonymousUser:
    """The user who is signed in. Where anything differs from the nearly only case, Django decides."""
    row = get_session_row(request)
    user = row.user if row is not None else None
    if user is not None and is_user_of_session(user, request.session):
        return user
    return get_user(request)


def is_user_of_session(user: User, session: SessionBase) -> bool:
    """Whether the session signs in this user, by the checks that `django.contrib.auth.get_user` makes."""
    return (
        user.is_active
        and session.get(SESSION_KEY) == str(user.pk)
        and session.get(BACKEND_SESSION_KEY) in settings.AUTHENTICATION_BACKENDS
        and constant_time_compare(session.get(HASH_SESSION_KEY) or "", user.get_session_auth_hash())
    )


def get_store(request: HttpRequest) -> SessionStore:
    store = request.session
    assert isinstance(store, SessionStore)
    return store


def get_session_row(request: HttpRequest) -> Session | None:
    """The stored session of a signed-in person."""
    store = get_store(request)
    store.get(SESSION_KEY)  # loads it
    return store.row


def has_signed_in_recently(request: HttpRequest) -> bool:
    row = get_session_row(request)
    return row is not None and row.created_at > timezone.now() - RECENT_SIGN_IN
