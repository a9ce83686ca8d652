"""The switch between light and dark in the header."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.models.users import User

pytestmark = pytest.mark.django_db


def test_the_theme_is_saved_and_leads_back_to_the_page(owner_signed_in: Client, owner: User) -> None:
    answer = owner_signed_in.post(
        reverse("account_theme"), {"theme": "dark"}, headers={"Referer": "http://testserver/help?a=1"}
    )
    assert (answer.status_code, answer["Location"]) == (302, "/help?a=1")
    owner.refresh_from_db()
    assert owner.theme == "dark"


def test_it_never_leads_to_another_site(owner_signed_in: Client, owner: User) -> None:
    answer = owner_signed_in.post(
        reverse("account_theme"), {"theme": "dark"}, headers={"Referer": "http://evil.example/"}
    )
    assert answer["Location"] == reverse("evaluations")


def test_an_unknown_theme_changes_nothing(owner_signed_in: Client, owner: User) -> None:
    assert owner_signed_in.post(reverse("account_theme"), {"theme": "pink"}).status_code == 400
    owner.refresh_from_db()
    assert owner.theme == "system"
