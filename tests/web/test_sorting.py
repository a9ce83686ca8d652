"""Lists in the order of their headings."""

import re

import pytest
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.web import pagination
from evaluations.web.pagination import Page, paginate
from evaluations.web.sorting import SortColumn, Sorting, parse_sorting
from tests.factories.evaluations import make_comparison, make_user
from tests.factories.full_evaluation import make_full_evaluation
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

LISTS = "activity comparisons exports imports judges members queues rubrics runs"


def sort(query: str) -> Sorting:
    columns = (SortColumn("created", descending=True), SortColumn("name", "username"))
    return parse_sorting(RequestFactory().get(f"/{query}"), *columns)


def test_a_heading_turns_its_order_and_keeps_the_filters_but_not_the_page() -> None:
    first = sort("?role=x&after=9&from=51").headings
    assert (first["created"].query, first["created"].state) == ("role=x&sort=created", "descending")
    assert (first["name"].query, first["name"].state) == ("role=x&sort=name", "")
    turned = sort("?role=x&sort=created").headings
    assert (turned["created"].query, turned["created"].state) == ("role=x", "ascending")
    by_name = sort("?sort=name").headings
    assert (by_name["name"].query, by_name["name"].state) == ("sort=-name", "ascending")
    assert (by_name["created"].query, by_name["created"].state) == ("", "")


@pytest.mark.parametrize("asked", ["", "name2", "-", "--name", "password", "-pk", "name\x00", "%00"])
def test_a_column_that_does_not_sort_is_the_usual_order(asked: str) -> None:
    sorting = sort(f"?sort={asked}")
    assert (sorting.field, sorting.descending) == ("pk", True)


@pytest.mark.parametrize(
    ("asked", "names"),
    [("created", "cadbe"), ("-created", "ebdac"), ("name", "abcde"), ("-name", "edcba")],
)
def test_every_page_goes_on_after_the_one_before(monkeypatch: pytest.MonkeyPatch, asked: str, names: str) -> None:
    monkeypatch.setattr(pagination, "PAGE_SIZE", 2)
    for name in "cadbe":
        make_user(f"reader-{name}")

    def page_of(query: str) -> Page[User]:
        request = RequestFactory().get(f"/?{query}")
        return paginate(request, User.objects.filter(username__startswith="reader"), sorting=sort(f"?{query}"))

    page = page_of(f"sort={asked}")
    read = list(page.rows)
    with CaptureQueriesContext(connection) as context:
        while page.next_page:
            page = page_of(page.next_page)
            read += page.rows
    assert "".join(user.username[-1] for user in read) == names
    assert page.range_text == "5 of 5"
    assert len(context) == (6 if "name" in asked else 4)  # two pages, each with a count and its anchor


def test_where_the_last_row_is_gone_the_list_begins_again() -> None:
    make_user("reader-a")
    gone = make_user("reader-b")
    gone.delete()
    request = RequestFactory().get(f"/?sort=name&after={gone.pk or 10**9}")
    assert [user.username for user in paginate(request, User.objects.all(), sorting=sort("?sort=name")).rows] == [
        "reader-a"
    ]


@pytest.mark.parametrize("name", LISTS.split())
def test_lists_have_headings_that_sort(client: Client, name: str) -> None:
    full = make_full_evaluation(7)
    client.force_login(full.evaluation.memberships.get(role="owner").user)
    address = reverse(name, args=[full.evaluation.slug])
    text = html_of(client.get(address))
    queries = [query.replace("&amp;", "&") for query in re.findall(r'class="sort" href="\?([^"]*)"', text)]
    assert queries
    for query in (*queries, "sort=nothing", "sort=-", "sort=pk&sort=name"):
        assert client.get(f"{address}?{query}").status_code == 200
    turned = html_of(client.get(f"{address}?{queries[0]}"))
    assert len(re.findall("aria-sort=", turned)) == 1


@pytest.mark.usefixtures("owner_signed_in")
def test_comparisons_are_read_newest_first_and_back(
    client: Client, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluations.comparisons.views.browse.PAGE_SIZE", 2)
    made = [make_comparison(evaluation, category="facts").pk for _ in range(5)]
    make_comparison(evaluation, category="poems")
    address = reverse("comparisons", args=["study"])

    def read(query: str) -> tuple[list[int], str]:
        text = html_of(client.get(f"{address}?{query}"))
        numbers = re.findall(r'data-label="#">(\d+)<', text)
        return [int(number) for number in numbers], text

    def follow(text: str, rel: str) -> str:
        found = re.search(rf'rel="{rel}" href="\?([^"]+)"', text)
        assert found
        return found[1].replace("&amp;", "&")

    first, text = read("category=facts&sort=-number")
    assert 'aria-sort="descending"' in text
    second, text = read(follow(text, "next"))
    third, text = read(follow(text, "next"))
    assert [first, second, third] == [made[:2:-1], made[2:0:-1], made[:1]]
    assert 'rel="next"' not in text
    back, text = read(follow(text, "prev"))
    assert back == second
    back, text = read(follow(text, "prev"))
    assert back == first
    assert 'rel="prev"' not in text
    assert read("category=facts")[0] == made[:2]
