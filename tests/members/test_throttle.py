"""How often a password may be tried, and that strangers cannot keep the right person out."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.contrib.auth.hashers import MD5PasswordHasher
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from evaluations.domain.security import SecurityEventKind
from evaluations.members.services import create_sign_in_link
from evaluations.models.sign_ins import SecurityEvent, Throttle
from evaluations.web.throttle import (
    FREE_TRIES_AT_NAME,
    FREE_TRIES_AT_NAME_FROM_ADDRESS,
    FREE_TRIES_AT_NAME_WITHOUT_ADDRESS,
    FREE_TRIES_FROM_ADDRESS,
    FREE_TRIES_FROM_DEVICE,
    FREE_TRIES_IN_SESSION,
    FREE_UNKNOWN_TOKENS,
    Limit,
    TooManyTries,
    begin_try,
    count_try,
    delete_expired_throttles,
    forgive_try,
)
from tests.factories.evaluations import make_user
from tests.helpers.api_client import token_for

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

PASSWORD = "a long pass phrase"
LIMIT = Limit("k" * 64, free=3, longest_wait=120)


def try_password(client: Client, password: str, username: str = "ada", address: str = "192.0.2.7") -> int:
    sent = {"username": username, "password": password}
    return client.post(reverse("sign_in"), sent, REMOTE_ADDR=address).status_code


def fail(times: int, limit: Limit = LIMIT) -> None:
    for _ in range(times):
        begin_try([limit], user=None)


def let_waits_end() -> None:
    Throttle.objects.update(blocked_until=timezone.now() - timedelta(seconds=1))


# ---- the count itself


def test_the_first_tries_are_free_and_the_next_one_says_how_long_to_wait() -> None:
    fail(3)
    with pytest.raises(TooManyTries, match="Wait 30 seconds and try again") as refused:
        begin_try([LIMIT], user=None)
    assert refused.value.seconds == 30


def test_each_further_try_doubles_the_wait_up_to_the_longest() -> None:
    fail(3)
    waits = []
    for _ in range(4):
        with pytest.raises(TooManyTries) as refused:
            begin_try([LIMIT], user=None)
        waits.append(refused.value.seconds)
        let_waits_end()
        begin_try([LIMIT], user=None)
    assert waits == [30, 60, 120, 120]


def test_a_refused_try_is_counted_by_none_of_its_limits() -> None:
    fail(3)
    other = Limit("o" * 64, free=3, longest_wait=120)
    with pytest.raises(TooManyTries):
        begin_try([LIMIT, other], user=None)
    assert not Throttle.objects.filter(key=other.key, tries__gt=0).exists()


def test_a_success_takes_back_its_own_try_and_none_of_those_before() -> None:
    """Else somebody with an account of their own could guess for ever, signing in to it in between."""
    fail(2)
    forgive_try(begin_try([LIMIT], user=None))
    assert Throttle.objects.get().tries == 2
    fail(1)
    with pytest.raises(TooManyTries):
        begin_try([LIMIT], user=None)


def test_a_day_after_the_first_try_the_count_starts_again() -> None:
    fail(3)
    Throttle.objects.update(ends_at=timezone.now() - timedelta(seconds=1), blocked_until=None)
    fail(2)
    assert Throttle.objects.get().tries == 2


def test_only_expired_rows_are_deleted_however_many_names_strangers_invent() -> None:
    fail(3)
    for number in range(50):
        fail(1, Limit(f"{number:064}", free=3, longest_wait=120))
    Throttle.objects.filter(key__startswith="0").update(ends_at=timezone.now() - timedelta(seconds=1))
    delete_expired_throttles()
    assert Throttle.objects.get().key == LIMIT.key


@pytest.mark.django_db(transaction=True)
def test_many_tries_at_once_count_as_many() -> None:
    def one_try(_: int) -> bool:
        try:
            return count_try([LIMIT, Limit("a" * 64, free=100, longest_wait=120)]) is not None
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(one_try, range(16)))
    assert sum(made) == LIMIT.free


# ---- signing in


def test_after_some_wrong_tries_even_the_right_password_waits_but_a_link_does_not(client: Client) -> None:
    ada = make_user("ada", password=PASSWORD)
    for _ in range(FREE_TRIES_AT_NAME_FROM_ADDRESS):
        assert try_password(client, "wrong") == 422
    answer = client.post(reverse("sign_in"), {"username": "Ada", "password": PASSWORD}, REMOTE_ADDR="192.0.2.7")
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "30"
    assert "Wait 30 seconds and try again, or use a sign-in link." in answer.content.decode()
    assert client.post(reverse("sign_in_link", args=[create_sign_in_link(ada, by=None)])).status_code == 302


def test_others_do_not_wait_for_one_who_guesses(client: Client) -> None:
    make_user("ada", password=PASSWORD)
    make_user("grace", password=PASSWORD)
    for _ in range(FREE_TRIES_AT_NAME_FROM_ADDRESS + 1):
        try_password(client, "wrong")
    assert try_password(Client(), PASSWORD, username="grace") == 302
    assert try_password(Client(), PASSWORD, address="192.0.2.8") == 302


def test_an_unknown_name_waits_like_a_known_one(client: Client) -> None:
    make_user("ada", password=PASSWORD)
    for name in ("ada", "nobody"):
        answers = [try_password(client, "wrong", username=name) for _ in range(FREE_TRIES_AT_NAME_FROM_ADDRESS + 1)]
        assert answers == [422] * FREE_TRIES_AT_NAME_FROM_ADDRESS + [429]


def test_a_name_that_is_unknown_disabled_or_without_a_password_costs_as_much_as_any_other(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the time of an answer tells which usernames exist."""
    make_user("ada", password=PASSWORD)
    make_user("gone", password=PASSWORD, is_active=False)
    make_user("invited")
    hashed: list[str] = []
    encode = MD5PasswordHasher.encode

    def count_and_encode(self: MD5PasswordHasher, password: str, salt: str) -> str:
        hashed.append(password)
        return encode(self, password, salt)

    monkeypatch.setattr(MD5PasswordHasher, "encode", count_and_encode)
    counts = set()
    for number, name in enumerate(("ada", "gone", "invited", "nobody")):
        hashed.clear()
        with CaptureQueriesContext(connection) as captured:
            assert try_password(Client(), "wrong", username=name, address=f"192.0.2.{number}") == 422
        counts.add((len(hashed), len(captured)))
    assert len(counts) == 1
    assert counts.pop()[0] == 1


def test_one_stranger_cannot_make_others_wait_for_a_name(client: Client) -> None:
    """Within a day one address has fewer tries at a name than all addresses together have free."""
    make_user("ada", password=PASSWORD)
    tries, waited = FREE_TRIES_AT_NAME_FROM_ADDRESS, 0
    while (wait := min(30 * 2 ** (tries - FREE_TRIES_AT_NAME_FROM_ADDRESS), 3600)) + waited < 24 * 3600:
        waited, tries = waited + wait, tries + 1
    assert tries < FREE_TRIES_AT_NAME


def test_a_browser_that_signed_in_before_does_not_wait_for_a_botnet(client: Client) -> None:
    make_user("ada", password=PASSWORD)
    assert try_password(client, PASSWORD, address="198.51.100.1") == 302
    client.post(reverse("sign_out"))
    for number in range(FREE_TRIES_AT_NAME):
        try_password(Client(), "wrong", address=f"203.0.113.{number}")
    assert try_password(Client(), PASSWORD, address="198.51.100.1") == 429
    assert try_password(client, PASSWORD, address="198.51.100.1") == 302


def test_a_known_browser_waits_for_its_own_wrong_tries(client: Client) -> None:
    make_user("ada", password=PASSWORD)
    make_user("grace", password=PASSWORD)
    try_password(client, PASSWORD)
    client.post(reverse("sign_out"))
    for _ in range(FREE_TRIES_FROM_DEVICE):
        assert try_password(client, "wrong") == 422
    assert try_password(client, PASSWORD) == 429


def test_browsers_from_before_the_password_was_set_are_not_known(client: Client) -> None:
    """An owner may have signed in there by link, before the person to whom the account belongs set its password."""
    ada = make_user("ada")
    before, mine = Client(), Client()
    for browser in (before, mine):
        browser.post(reverse("sign_in_link", args=[create_sign_in_link(ada, by=None)]))
    mine.post(reverse("account_password"), {"password": PASSWORD, "again": PASSWORD})
    for number in range(FREE_TRIES_AT_NAME):
        try_password(Client(), "wrong", address=f"203.0.113.{number}")
    mine.post(reverse("sign_out"))
    assert try_password(before, PASSWORD) == 429
    assert try_password(mine, PASSWORD) == 302


def test_a_browser_is_known_for_the_accounts_that_it_signed_in_to_and_no_others(
    client: Client, settings: LazySettings
) -> None:
    make_user("ada", password=PASSWORD)
    make_user("grace", password=PASSWORD)
    try_password(client, PASSWORD)
    client.post(reverse("sign_out"))
    for _ in range(FREE_TRIES_AT_NAME_FROM_ADDRESS):
        assert try_password(client, "wrong", username="grace") == 422
    assert try_password(client, PASSWORD, username="grace") == 429
    client.cookies[settings.DEVICE_COOKIE_NAME] = "forged"
    assert try_password(client, PASSWORD) == 302


def test_the_cookie_of_a_known_browser_is_closed_to_scripts_and_signed(client: Client, settings: LazySettings) -> None:
    make_user("ada", password=PASSWORD)
    try_password(client, PASSWORD)
    cookie = client.cookies[settings.DEVICE_COOKIE_NAME]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert int(cookie["max-age"]) > 300 * 24 * 3600


def test_spellings_that_count_as_another_name_find_no_account(client: Client) -> None:
    """PostgreSQL compares names in capitals, where “ı” and “i” are one letter."""
    make_user("admin", password=PASSWORD)
    assert try_password(client, PASSWORD, username="adm\u0131n") == 422
    assert try_password(client, PASSWORD, username="ADMIN") == 302


def test_many_names_tried_from_one_address_wait_too(client: Client) -> None:
    for number in range(FREE_TRIES_FROM_ADDRESS):
        assert try_password(client, "wrong", username=f"name-{number}") == 422
    assert try_password(client, "wrong", username="another") == 429


def test_all_addresses_of_one_ipv6_network_are_one(client: Client) -> None:
    make_user("ada", password=PASSWORD)
    for number in range(FREE_TRIES_AT_NAME_FROM_ADDRESS):
        assert try_password(client, "wrong", address=f"2001:db8::{number + 1}") == 422
    assert try_password(client, PASSWORD, address="2001:db8::ffff") == 429
    assert try_password(client, PASSWORD, address="2001:db8:0:1::1") == 302


def test_behind_a_proxy_that_is_not_named_nobody_waits_for_the_wrong_tries_at_other_names(
    client: Client, settings: LazySettings
) -> None:
    settings.BEHIND_HTTPS = True
    make_user("ada", password=PASSWORD)
    for number in range(FREE_TRIES_FROM_ADDRESS + 5):
        try_password(client, "wrong", username=f"name-{number}", address="172.18.0.2")
    assert try_password(client, PASSWORD, address="172.18.0.2") == 302


def test_where_addresses_are_not_known_the_name_still_waits(client: Client) -> None:
    make_user("ada", password=PASSWORD)
    for _ in range(FREE_TRIES_AT_NAME_WITHOUT_ADDRESS):
        assert try_password(client, "wrong", address="127.0.0.1") == 422
    assert try_password(client, PASSWORD, address="127.0.0.1") == 429


def test_a_throttled_name_is_recorded_once_for_each_wait(client: Client) -> None:
    ada = make_user("ada", password=PASSWORD)
    for _ in range(FREE_TRIES_AT_NAME_FROM_ADDRESS + 3):
        try_password(client, "wrong")
    event = SecurityEvent.objects.get(kind=SecurityEventKind.THROTTLED)
    assert (event.user, event.address) == (ada, "192.0.2.7")


# ---- other doors that take a secret


def test_the_present_password_is_not_guessed_in_a_session_that_somebody_left_open(client: Client) -> None:
    ada = make_user("ada", password=PASSWORD)
    client.force_login(ada)
    sent = {"present": "wrong", "password": "an even longer phrase", "again": "an even longer phrase"}
    for _ in range(FREE_TRIES_IN_SESSION):
        assert client.post(reverse("account_password"), sent).status_code == 422
    answer = client.post(reverse("account_password"), {**sent, "present": PASSWORD})
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "30")
    token = {"name": "nightly", "scopes": ["read"], "days": "30", "present": PASSWORD}
    assert client.post(reverse("tokens"), token).status_code == 429
    elsewhere = Client()
    elsewhere.force_login(ada)
    assert elsewhere.post(reverse("account_password"), {**sent, "present": PASSWORD}).status_code == 302


def test_where_addresses_are_not_known_nobody_waits_for_the_token_of_others(client: Client) -> None:
    asked = (
        client.get("/api/v1/me", headers={"Authorization": f"Bearer jw_{n}"}) for n in range(FREE_UNKNOWN_TOKENS + 1)
    )
    assert {answer.status_code for answer in asked} == {401}


def test_an_address_that_guesses_tokens_waits_and_valid_tokens_from_there_go_on(client: Client) -> None:
    token = token_for(make_user("ada"))

    def ask(text: str) -> int:
        headers = {"Authorization": f"Bearer {text}"}
        return client.get("/api/v1/me", headers=headers, REMOTE_ADDR="192.0.2.7").status_code

    assert {ask(f"jw_{number}") for number in range(FREE_UNKNOWN_TOKENS)} == {401}
    assert ask("jw_another") == 429
    assert ask(token) == 200
