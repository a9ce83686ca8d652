"""Rows that only their makers and managers may end or change, through the page and the API."""

import pytest
from django.urls import reverse

from evaluations.comparisons.services import create_saved_filter
from evaluations.domain.files import ExportState
from evaluations.domain.filters import ComparisonFilter
from evaluations.domain.roles import Role
from evaluations.exports.services import start_export
from evaluations.models.comparisons import SavedFilter
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_member
from tests.helpers.api_client import ApiClient, token_for
from tests.helpers.browser_client import sign_in_client
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def maker(evaluation: Evaluation) -> User:
    return make_member(evaluation, Role.ADJUDICATOR, "maker")


@pytest.fixture
def export(evaluation: Evaluation, maker: User) -> Export:
    make_comparison(evaluation)
    return start_export(evaluation, written_as="jsonl", user=maker, in_background=True)


@pytest.fixture
def saved(evaluation: Evaluation, maker: User) -> SavedFilter:
    return create_saved_filter(evaluation, "sums", ComparisonFilter(text="sum"), user=maker)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.ADJUDICATOR])
def test_an_export_is_not_cancelled_by_another_member(evaluation: Evaluation, export: Export, role: Role) -> None:
    other = make_member(evaluation, role, "other")
    page = sign_in_client(other).post(reverse("export_cancel", args=["study", export.pk]))
    answer = ApiClient(token_for(other)).post(f"/evaluations/study/exports/{export.pk}/cancel")
    assert (page.status_code, answer.status_code) == (403, 403)
    assert "Only its creator and managers of “Study study”" in answer.json()["detail"]
    export.refresh_from_db()
    assert export.state == ExportState.WAITING


def test_an_export_is_cancelled_by_its_maker(export: Export, maker: User) -> None:
    assert sign_in_client(maker).post(reverse("export_cancel", args=["study", export.pk])).status_code == 302
    export.refresh_from_db()
    assert export.state == ExportState.CANCELLED


def test_an_export_is_cancelled_by_a_manager(export: Export, manager: User) -> None:
    answer = ApiClient(token_for(manager)).post(f"/evaluations/study/exports/{export.pk}/cancel")
    assert answer.json()["state"] == ExportState.CANCELLED


def test_the_page_of_an_export_offers_to_cancel_it_to_those_who_may(
    evaluation: Evaluation, export: Export, maker: User
) -> None:
    address, cancel = reverse("export", args=["study", export.pk]), ">Cancel</button>"
    viewer = make_member(evaluation, Role.VIEWER)
    assert cancel in html_of(sign_in_client(maker).get(address))
    assert cancel not in html_of(sign_in_client(viewer).get(address))


def test_a_saved_filter_is_not_changed_by_another_adjudicator(evaluation: Evaluation, saved: SavedFilter) -> None:
    other = make_member(evaluation, Role.ADJUDICATOR, "other")
    client, ask = sign_in_client(other), ApiClient(token_for(other))
    path = f"/evaluations/study/saved-filters/{saved.pk}"
    answers = [
        client.post(reverse("saved_filter_rename", args=["study", saved.pk]), {"name": "other"}),
        client.post(reverse("saved_filter_delete", args=["study", saved.pk]), {"name": "sums"}),
        ask.patch(path, {"name": "other"}),
        ask("DELETE", path),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4
    assert SavedFilter.objects.get().name == "sums"
    page = html_of(client.get(reverse("saved_filters", args=["study"])))
    assert reverse("saved_filter_delete", args=["study", saved.pk]) not in page


def test_a_saved_filter_is_changed_by_its_maker_and_by_managers(saved: SavedFilter, maker: User, manager: User) -> None:
    sign_in_client(maker).post(reverse("saved_filter_rename", args=["study", saved.pk]), {"name": "totals"})
    assert SavedFilter.objects.get().name == "totals"
    sign_in_client(manager).post(reverse("saved_filter_delete", args=["study", saved.pk]), {"name": "totals"})
    assert not SavedFilter.objects.exists()
