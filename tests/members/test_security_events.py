"""Sign-ins, refusals and ends are on record, for the person and for site administrators."""

import io
import re
from datetime import timedelta
from typing import Any, Final

import pytest
from django.conf import LazySettings
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluations.audit import security
from evaluations.audit.security import delete_old_security_events, record_security_event
from evaluations.domain.roles import Scope
from evaluations.domain.security import SECURITY_EVENT_TEXTS, SecurityEventKind
from evaluations.members.services import create_sign_in_link, create_token, disable_account
from evaluations.models.sign_ins import SecurityEvent
from evaluations.models.users import ApiToken, SignInLink, User
from tests.factories.evaluations import make_user
from tests.helpers.api_client import ApiClient, token_for
from tests.helpers.browser_client import sign_in_client

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

PASSWORD: Final = "a long pass phrase"
CLIENT: Final[dict[str, Any]] = {"REMOTE_ADDR": "192.0.2.7", "headers": {"User-Agent": "Firefox/140.0 (Linux)"}}


@pytest.fixture
def ada() -> User:
    return make_user("ada", password=PASSWORD)


def kinds_of(user: User) -> list[str]:
    return list(SecurityEvent.objects.filter(user=user).order_by("pk").values_list("kind", flat=True))


def try_password(username: str, password: str) -> None:
    Client().post(reverse("sign_in"), {"username": username, "password": password}, **CLIENT)


def test_every_kind_has_a_text() -> None:
    assert set(SECURITY_EVENT_TEXTS) == set(SecurityEventKind)


def test_good_and_bad_sign_ins_are_recorded_with_address_and_browser(ada: User) -> None:
    try_password("ada", "wrong")
    try_password("ada", PASSWORD)
    Client().post(reverse("sign_in_link", args=[create_sign_in_link(ada, by=None)]), **CLIENT)
    assert kinds_of(ada) == ["sign_in_failed", "signed_in", "link_made", "signed_in_by_link"]
    event = SecurityEvent.objects.get(kind="sign_in_failed")
    assert (event.address, event.user_agent) == ("192.0.2.7", "Firefox/140.0 (Linux)")


def test_what_was_typed_as_an_unknown_name_is_kept_nowhere() -> None:
    """People type their password into the wrong field."""
    try_password("my secret pass phrase", "x")
    event = SecurityEvent.objects.get()
    assert (event.user, event.detail) == (None, "unknown username")
    assert "secret" not in str(SecurityEvent.objects.values().get())


def test_ends_and_changes_are_recorded(ada: User) -> None:
    client = sign_in_client(ada)
    token_for(ada)
    sent = {"password": "an even longer phrase", "again": "an even longer phrase"}
    client.post(reverse("account_password"), {**sent, "present": "wrong"})
    client.post(reverse("account_password"), {**sent, "present": PASSWORD})
    client.post(reverse("sessions_end"))
    disable_account(ada, by=make_user("admin"))
    assert kinds_of(ada) == [
        "token_made",
        "password_refused",
        "tokens_revoked",
        "password_set",
        "sessions_ended",
        "account_disabled",
    ]
    assert SecurityEvent.objects.latest("pk").by == User.objects.get(username="admin")


def test_a_token_that_comes_from_a_new_address_is_recorded_once(ada: User) -> None:
    token = token_for(ada)
    for address in ("192.0.2.7", "192.0.2.8", "192.0.2.7", "2001:db8::1", "2001:db8::2"):
        Client().get("/api/v1/me", headers={"Authorization": f"Bearer {token}"}, REMOTE_ADDR=address)
    events = SecurityEvent.objects.filter(kind=SecurityEventKind.TOKEN_NEW_ADDRESS).order_by("pk")
    assert list(events.values_list("address", flat=True)) == ["192.0.2.7", "192.0.2.8", "2001:db8::/64"]
    assert ApiToken.objects.get().last_address == "2001:db8::/64"


def test_links_and_tokens_that_open_nothing_any_more_are_recorded_once(ada: User) -> None:
    links = [reverse("sign_in_link", args=[create_sign_in_link(ada, by=None)]) for _ in range(2)]
    Client().post(links[0], **CLIENT)
    SignInLink.objects.filter(used_at=None).update(expires_at=timezone.now())
    for link in (links[0], links[0], links[1]):
        assert Client().post(link, **CLIENT).status_code == 410
    tokens = [create_token(ada, name=name, scopes=[Scope.READ], days=7)[1] for name in ("expired", "revoked")]
    ApiToken.objects.filter(name="expired").update(expires_at=timezone.now())
    ApiToken.objects.filter(name="revoked").update(revoked_at=timezone.now())
    for token in (*tokens, *tokens):
        asked = Client().get("/api/v1/me", headers={"Authorization": f"Bearer {token}"}, REMOTE_ADDR="192.0.2.7")
        assert asked.status_code == 401
    details = SecurityEvent.objects.filter(user=ada, kind="sign_in_failed").order_by("pk")
    assert [re.sub(r" \(.*\)", "", detail) for detail in details.values_list("detail", flat=True)] == [
        "This sign-in link was already used. Each link works once.",
        "This sign-in link has expired.",
        "The API token expired has expired.",
        "The API token revoked was revoked.",
    ]


def test_a_new_administrator_is_recorded(ada: User) -> None:
    call_command("sign_in_link", "ada", "--superuser", stdout=io.StringIO())
    assert kinds_of(ada) == ["policy_changed", "link_made"]


def test_a_person_sees_their_own_events_and_no_others(ada: User) -> None:
    try_password("ada", "wrong")
    record_security_event(SecurityEventKind.SIGNED_IN, make_user("grace"), detail="of grace")
    page = sign_in_client(ada).get(reverse("account")).content.decode()
    assert "Sign-in failed" in page
    assert "Firefox on Linux" in page
    assert "of grace" not in page
    asking = ApiClient(token_for(ada))
    items = asking.get("/me/security-events").json()["items"]
    assert [item["kind"] for item in items] == ["token_new_address", "token_made", "sign_in_failed"]
    assert asking.get("/security-events").status_code == 404


def test_an_administrator_sees_all_and_finds_those_of_one_account(ada: User) -> None:
    try_password("ada", "wrong")
    try_password("nobody", "wrong")
    administrator = make_user("admin", is_superuser=True)
    client = sign_in_client(administrator)
    page = client.get(reverse("security_events")).content.decode()
    assert page.count("Sign-in failed") == 2
    one = client.get(reverse("security_events", query={"account": "Ada"})).content.decode()
    assert one.count("Sign-in failed") == 1
    assert "No events" in client.get(reverse("security_events", query={"account": "nobody"})).content.decode()
    (item,) = ApiClient(token_for(administrator)).get("/security-events?account=ada").json()["items"]
    assert (item["account"]["username"], item["address"]) == ("ada", "192.0.2.7")


def test_a_long_record_goes_on_after_the_last_row_seen(ada: User) -> None:
    for number in range(60):
        record_security_event(SecurityEventKind.SIGNED_IN, ada, detail=f"number {number:02}")
    client = sign_in_client(make_user("admin", is_superuser=True))
    page = client.get(reverse("security_events", query={"account": "ada"})).content.decode()
    assert ("number 59" in page, "number 09" in page) == (True, False)
    after = SecurityEvent.objects.get(detail="number 10").pk
    page = client.get(reverse("security_events", query={"account": "ada", "after": after})).content.decode()
    assert ("number 10" in page, "number 09" in page) == (False, True)


def test_the_record_does_not_grow_for_ever(ada: User, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        record_security_event(SecurityEventKind.SIGNED_IN, ada, detail=str(number))
    old = timezone.now() - timedelta(days=settings.SECURITY_EVENT_DAYS + 1)
    SecurityEvent.objects.filter(detail="0").update(created_at=old)
    delete_old_security_events()
    assert SecurityEvent.objects.count() == 5
    monkeypatch.setattr(security, "MAX_EVENTS", 3)
    delete_old_security_events()
    assert sorted(SecurityEvent.objects.values_list("detail", flat=True)) == ["3", "4", "5"]
