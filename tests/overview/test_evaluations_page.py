"""The list of one's evaluations."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import move_to_archive
from evaluations.members.services import set_role
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_evaluation, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def me(client: Client) -> User:
    user = make_user("ada")
    client.force_login(user)
    return user


def page(client: Client, query: str = "") -> str:
    return client.get(reverse("evaluations") + query).content.decode()


def test_someone_new_is_told_how_to_begin(client: Client, me: User) -> None:
    assert "No evaluations yet" in page(client)


def test_only_those_in_which_one_takes_part_are_listed(client: Client, me: User) -> None:
    make_evaluation(me, slug="mine")
    make_evaluation(slug="theirs")
    text = page(client)
    assert "Study mine" in text
    assert "theirs" not in text


def test_each_says_what_comes_next_for_this_person(client: Client, me: User) -> None:
    make_evaluation(me, slug="empty")
    reviewed = make_evaluation(slug="begun")
    make_comparison(reviewed)
    set_role(reviewed, me, Role.REVIEWER, by=None)
    text = page(client)
    assert "Import data" in text
    assert f'href="{reverse("review", args=["begun"])}"' in text


def test_archived_ones_stand_apart(client: Client, me: User) -> None:
    move_to_archive(make_evaluation(me, slug="old"), user=me)
    make_evaluation(me, slug="new")
    assert "Study old" not in page(client)
    assert "Study old" in page(client, "?archived")
    assert "Study new" not in page(client, "?archived")


def test_the_list_goes_on_from_the_last_row_and_keeps_its_filter(client: Client, me: User) -> None:
    for number in range(51):
        move_to_archive(make_evaluation(me, slug=f"number-{number:02}"), user=me)
    first = page(client, "?archived")
    assert "Study number-50" in first
    assert "Study number-00" not in first
    oldest_shown = me.memberships.get(evaluation__slug="number-01").evaluation
    assert f"archived=&amp;after={oldest_shown.pk}" in first
    assert "Study number-00" in page(client, f"?archived=&after={oldest_shown.pk}")


def test_the_list_costs_the_same_however_long_it_is(client: Client, me: User) -> None:
    make_comparison(make_evaluation(me))
    few = queries(client)
    for _ in range(8):
        make_comparison(make_evaluation(me))
    assert queries(client) == few


def queries(client: Client) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(reverse("evaluations")).status_code == 200
    return len(captured)
