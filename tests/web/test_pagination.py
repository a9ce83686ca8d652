"""What the pages of a list say about their part of it."""

import pytest
from django.test import RequestFactory

from evaluations.models.users import User
from evaluations.web import pagination
from evaluations.web.pagination import MAX_COUNTED, Page, paginate
from tests.factories.evaluations import make_user

pytestmark = pytest.mark.django_db


def page_of_users(query: str = "", prefix: str = "reader") -> Page[User]:
    return paginate(RequestFactory().get(f"/{query}"), User.objects.filter(username__startswith=prefix))


def make_readers(number: int) -> None:
    for at in range(number):
        make_user(f"reader-{at}")


def test_each_page_says_which_rows_of_how_many_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagination, "PAGE_SIZE", 3)
    make_readers(7)
    first = page_of_users("?role=x")
    assert first.range_text == "1–3 of 7"
    second = page_of_users(f"?{first.next_page}")
    assert second.range_text == "4–6 of 7"
    third = page_of_users(f"?{second.next_page}")
    assert (third.range_text, third.next_page) == ("7 of 7", None)
    assert second.first_page == "role=x"


def test_a_list_of_one_page_is_not_counted(django_assert_num_queries: object) -> None:
    make_readers(2)
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert page_of_users().range_text == "1–2 of 2"


def test_a_long_list_is_counted_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagination, "PAGE_SIZE", 2)
    monkeypatch.setattr(pagination, "MAX_COUNTED", 4)
    make_readers(6)
    assert page_of_users().range_text == "1–2 of 4+"


def test_a_position_that_is_no_number_is_the_beginning() -> None:
    make_readers(1)
    user = User.objects.get(username="reader-0")
    assert page_of_users(f"?after={user.pk - 1}&from=x").range_text == "1 of 1"


def test_a_position_that_is_unknown_is_not_shown() -> None:
    assert Page([User()], is_first=False, first_page="", next_page=None).range_text == ""
    assert MAX_COUNTED == 50_000
