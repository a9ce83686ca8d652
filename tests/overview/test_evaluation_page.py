"""One evaluation at a glance."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from evaluations.domain.roles import RaterKind, Role
from evaluations.evaluation_settings.services import move_to_archive
from evaluations.models.evaluations import Evaluation
from evaluations.models.jobs import Worker
from evaluations.models.judges import Rater
from evaluations.models.users import User
from evaluations.verdicts.changes import ChangedRow, record_changes
from evaluations.verdicts.progress_recount import recount_now
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_user
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def page(client: Client, user: User) -> str:
    client.force_login(user)
    return html_of(client.get(reverse("evaluation", args=["study"])))


def test_an_empty_evaluation_leads_its_owner_to_the_import(client: Client, owner: User, evaluation: Evaluation) -> None:
    text = page(client, owner)
    assert "Import data" in text
    assert "Import the responses of two models to the same prompts." in text


def test_a_reviewer_is_led_to_the_review_and_not_to_what_only_managers_do(
    client: Client, evaluation: Evaluation
) -> None:
    make_comparison(evaluation)
    text = page(client, make_member(evaluation, Role.REVIEWER))
    assert "0 of 1 reviews" in text
    assert "You: 0." in text
    for manager_only in ("evaluation_settings", "activity", "exports"):
        assert f'href="{reverse(manager_only, args=["study"])}"' not in text


def test_a_stranger_cannot_tell_that_it_exists(client: Client, evaluation: Evaluation) -> None:
    client.force_login(make_user())
    assert client.get(reverse("evaluation", args=["study"])).status_code == 404


def test_an_archived_one_says_so_and_offers_nothing_to_do(client: Client, owner: User, evaluation: Evaluation) -> None:
    move_to_archive(evaluation, user=owner)
    text = page(client, owner)
    assert "This evaluation is archived" in text
    assert "button primary" not in text


def test_the_example_is_labelled_and_can_be_archived_and_restored(client: Client, owner: User) -> None:
    example = make_evaluation(owner, slug="study", is_example=True)
    text = page(client, owner)
    assert "This is sample data with synthetic reviews." in text
    assert "Archive the example" in text
    client.post(reverse("evaluation_archive", args=["study"]))
    example.refresh_from_db()
    assert example.archived_at is not None
    client.post(reverse("evaluation_restore", args=["study"]))
    example.refresh_from_db()
    assert example.archived_at is None


def test_the_page_costs_the_same_however_much_is_in_it(client: Client, owner: User, evaluation: Evaluation) -> None:
    client.force_login(owner)
    make_comparison(evaluation)
    few = queries(client)
    for number in range(10):
        make_comparison(evaluation, candidates=(f"alpha-{number}", f"beta-{number}"))
        make_member(evaluation, Role.REVIEWER)
    assert queries(client) == few


def test_the_page_takes_few_statements_while_counters_hold(
    client: Client, reviewer: User, evaluation: Evaluation
) -> None:
    """At rest: session, membership, counters, counts, assignments, mentions and worker."""
    comparison = make_comparison(evaluation)
    rater = Rater.objects.create(evaluation=evaluation, kind=RaterKind.HUMAN, user=reviewer, name=reviewer.username)
    recount_now(evaluation)
    client.force_login(reviewer)
    assert queries(client) == 7
    record_changes(evaluation.pk, [ChangedRow(rater.pk, comparison.pk)])
    assert queries(client) == 7 + 6


def queries(client: Client) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(reverse("evaluation", args=["study"])).status_code == 200
    return len(captured)


def test_a_banner_says_what_to_do_while_no_worker_is_alive(client: Client, owner: User, evaluation: Evaluation) -> None:
    assert "<code>make worker</code>" in page(client, owner)
    now = timezone.now()
    Worker.objects.create(name="one", host="here", pid=1, version="1", started_at=now, seen_at=now)
    assert "<code>make worker</code>" not in page(client, owner)


def test_the_banner_is_not_for_those_who_are_not_signed_in(client: Client) -> None:
    assert "make worker" not in html_of(client.get(reverse("sign_in")))
