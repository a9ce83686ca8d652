"""Getting in by password and by link, and out again."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluations.members import services
from evaluations.members.services import (
    SignInLinkRefused,
    create_sign_in_link,
    disable_account,
    end_access,
    redeem_sign_in_link,
)
from evaluations.models.users import SignInLink, User
from tests.factories.evaluations import make_user

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

PASSWORD = "a long pass phrase"


def try_password(client: Client, password: str, next_page: str = "", username: str = "ada") -> int:
    query = {"next": next_page} if next_page else {}
    answer = client.post(
        reverse("sign_in", query=query), {"username": username, "password": password}, REMOTE_ADDR="192.0.2.7"
    )
    return answer.status_code


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_the_page_says_how_to_get_a_link(client: Client) -> None:
    page = client.get(reverse("sign_in")).content.decode()
    assert "manage.py sign_in_link" in page
    assert "Ask a site administrator" in page


def test_a_password_signs_in_and_a_wrong_one_does_not(client: Client) -> None:
    make_user("ada", password=PASSWORD)
    assert try_password(client, "wrong") == 422
    assert not is_signed_in(client)
    assert try_password(client, PASSWORD) == 302
    assert is_signed_in(client)


def test_a_username_is_found_however_a_phone_spells_it(client: Client) -> None:
    make_user("ada", password=PASSWORD)
    assert try_password(client, PASSWORD, username=" Ada") == 302


@pytest.mark.parametrize(
    "next_page", ["//evil.example", "https://evil.example/", "javascript:alert(1)", "/\\evil.example"]
)
def test_a_sign_in_never_leads_off_this_site(client: Client, next_page: str) -> None:
    make_user("ada", password=PASSWORD)
    answer = client.post(reverse("sign_in", query={"next": next_page}), {"username": "ada", "password": PASSWORD})
    assert answer.headers["Location"] == reverse("evaluations")


def test_a_sign_in_leads_to_where_the_person_wanted_to_go(client: Client) -> None:
    make_user("ada", password=PASSWORD)
    answer = client.post(reverse("sign_in", query={"next": "/account"}), {"username": "ada", "password": PASSWORD})
    assert answer.headers["Location"] == "/account"


def test_a_link_ends_at_once_on_machines_whose_clocks_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    ada = make_user("ada")
    token = create_sign_in_link(ada, by=None)
    ahead = timezone.now() + timedelta(minutes=1)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("django.utils.timezone.now", lambda: ahead)
        end_access(ada, by=None)
    with pytest.raises(SignInLinkRefused, match="has expired"):
        redeem_sign_in_link(token)


def test_of_what_ends_together_links_end_before_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    ada = make_user("ada")
    token = create_sign_in_link(ada, by=None)

    def use_link(user: User, **how: object) -> None:
        with pytest.raises(SignInLinkRefused):
            redeem_sign_in_link(token)

    monkeypatch.setattr(services, "end_sessions", use_link)
    end_access(ada, by=None)


def test_a_prefetch_does_not_use_a_link_up(client: Client) -> None:
    address = reverse("sign_in_link", args=[create_sign_in_link(make_user("ada"), by=None)])
    for method in (client.get, client.head, client.options):
        method(address)
    assert not is_signed_in(client)
    assert client.post(address).status_code == 302
    assert is_signed_in(client)


def test_a_second_click_is_told_that_the_link_was_used(client: Client) -> None:
    address = reverse("sign_in_link", args=[create_sign_in_link(make_user("ada"), by=None)])
    client.post(address)
    other = Client()
    answer = other.post(address)
    assert answer.status_code == 410
    assert "already used" in answer.content.decode()
    assert not is_signed_in(other)


def test_an_expired_link_and_a_mistyped_one_are_told_apart(client: Client) -> None:
    address = reverse("sign_in_link", args=[create_sign_in_link(make_user("ada"), by=None)])
    SignInLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "has expired" in client.get(address).content.decode()
    assert "sign-in link is not valid" in client.get(f"{address}x").content.decode()


def test_a_link_for_a_disabled_account_says_so(client: Client) -> None:
    ada = make_user("ada")
    address = reverse("sign_in_link", args=[create_sign_in_link(ada, by=None)])
    disable_account(ada, by=make_user())
    answer = client.post(address)
    assert answer.status_code == 410
    assert "disabled" in answer.content.decode()


def test_disabling_an_account_ends_its_sessions(client: Client) -> None:
    ada = make_user("ada")
    client.force_login(ada)
    disable_account(ada, by=make_user())
    assert client.get(reverse("account")).status_code == 302


def test_a_link_page_is_neither_cached_nor_told_to_other_sites(client: Client) -> None:
    answer = client.get(reverse("sign_in_link", args=[create_sign_in_link(make_user("ada"), by=None)]))
    assert "no-store" in answer.headers["Cache-Control"]
    assert answer.headers["Referrer-Policy"] == "same-origin"


def test_signing_out_takes_a_post(client: Client) -> None:
    client.force_login(make_user("ada"))
    assert client.get(reverse("sign_out")).status_code == 405
    assert is_signed_in(client)
    client.post(reverse("sign_out"))
    assert not is_signed_in(client)


def test_the_form_is_guarded_against_other_sites() -> None:
    User.objects.create_user("ada", password=PASSWORD)
    answer = Client(enforce_csrf_checks=True).post(reverse("sign_in"), {"username": "ada", "password": PASSWORD})
    assert answer.status_code == 403


def test_a_session_that_ended_leads_back_to_the_page_not_to_its_fragment(client: Client) -> None:
    here = "http://testserver/e/study/judges/runs/3?a=1"
    answer = client.get("/e/study/judges/runs/3/progress", headers={"HX-Request": "true", "HX-Current-URL": here})
    assert answer["HX-Redirect"] == reverse("sign_in") + "?next=/e/study/judges/runs/3%3Fa%3D1"
    elsewhere = {"HX-Request": "true", "HX-Current-URL": "http://other.example/x"}
    answer = client.get("/e/study/judges/runs/3/progress", headers=elsewhere)
    assert answer["HX-Redirect"] == reverse("sign_in") + "?next=/e/study/judges/runs/3/progress"
