"""What a person decides about their own account."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.members.services import create_sign_in_link
from evaluations.models.users import User
from tests.factories.evaluations import make_user

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

OLD, NEW = "a long pass phrase", "an even longer phrase"


def test_name_zone_and_appearance_are_kept_and_used(client: Client) -> None:
    ada = make_user("ada")
    client.force_login(ada)
    client.post(reverse("account"), {"display_name": "Ada L.", "timezone": "Asia/Tokyo", "theme": "dark"})
    page = client.get(reverse("account")).content.decode()
    assert 'data-theme="dark"' in page
    assert "Asia/Tokyo" in page
    assert str(User.objects.get(pk=ada.pk)) == "Ada L."


def test_single_keys_act_until_the_person_says_otherwise(client: Client) -> None:
    ada = make_user("ada")
    client.force_login(ada)
    assert User.objects.get(pk=ada.pk).single_keys
    client.post(reverse("account"), {"timezone": "UTC", "theme": "dark"})
    assert not User.objects.get(pk=ada.pk).single_keys
    client.post(reverse("account"), {"timezone": "UTC", "theme": "dark", "single_keys": "on"})
    assert User.objects.get(pk=ada.pk).single_keys


def test_a_zone_that_does_not_exist_is_refused_on_the_form(client: Client) -> None:
    client.force_login(make_user("ada"))
    answer = client.post(reverse("account"), {"timezone": "Mars/Olympus", "theme": "dark"})
    assert answer.status_code == 422
    assert User.objects.get().timezone == "UTC"


def test_a_form_cannot_make_its_sender_an_administrator(client: Client) -> None:
    client.force_login(make_user("ada"))
    client.post(reverse("account"), {"timezone": "UTC", "theme": "dark", "is_superuser": "on", "username": "root"})
    ada = User.objects.get()
    assert (ada.username, ada.is_superuser, ada.theme) == ("ada", False, "dark")


def test_a_first_password_asks_for_none_before(client: Client) -> None:
    ada = make_user("ada")
    client.force_login(ada)
    assert client.post(reverse("account_password"), {"password": NEW, "again": NEW}).status_code == 302
    assert User.objects.get().check_password(NEW)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"present": "wrong", "password": NEW, "again": NEW}, "not your current password"),
        ({"password": NEW, "again": NEW}, "required"),
        ({"present": OLD, "password": NEW, "again": OLD}, "don’t match"),
        ({"present": OLD, "password": "short", "again": "short"}, "too short"),
    ],
)
def test_a_change_of_password_that_cannot_be_says_why(client: Client, given: dict[str, str], said: str) -> None:
    ada = make_user("ada", password=OLD)
    client.force_login(ada)
    answer = client.post(reverse("account_password"), given)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert User.objects.get().check_password(OLD)


def test_a_new_password_signs_out_every_other_browser_but_not_this_one(client: Client) -> None:
    ada = make_user("ada", password=OLD)
    elsewhere = Client()
    for one in (client, elsewhere):
        one.force_login(ada)
    client.post(reverse("account_password"), {"present": OLD, "password": NEW, "again": NEW})
    assert client.get(reverse("account")).status_code == 200
    assert elsewhere.get(reverse("account")).status_code == 302


def test_whoever_forgot_the_password_sets_a_new_one_after_a_link(client: Client) -> None:
    ada = make_user("ada", password=OLD)
    client.post(reverse("sign_in_link", args=[create_sign_in_link(ada, by=None)]))
    assert client.post(reverse("account_password"), {"password": NEW, "again": NEW}).status_code == 302
    assert User.objects.get().check_password(NEW)
