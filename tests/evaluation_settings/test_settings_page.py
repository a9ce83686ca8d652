"""Renaming, the rules of review, and out of the way."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.choices import LabelPolicy
from evaluations.domain.reviews import Reveal
from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.users import User
from tests.factories.evaluations import make_evaluation, make_member, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("owner_signed_in"), pytest.mark.any_database]


def values(evaluation: Evaluation, **changed: object) -> dict[str, object]:
    given = {
        "name": evaluation.name,
        "description": evaluation.description,
        "guidelines": evaluation.guidelines,
        "review_rubric": evaluation.review_rubric_id,
        "reviews_wanted": evaluation.reviews_wanted,
        "reservation_minutes": evaluation.reservation_minutes,
        "shown_judge": "",
        "reveal": evaluation.reveal,
        "name_reveal": "after_last",
        "label_policy": evaluation.label_policy,
    }
    return {**given, **changed}


def save(client: Client, evaluation: Evaluation, **changed: object) -> int:
    return client.post(reverse("evaluation_settings", args=["study"]), values(evaluation, **changed)).status_code


def test_what_is_changed_is_stored_and_recorded(client: Client, owner: User, evaluation: Evaluation) -> None:
    assert save(client, evaluation, name="Renamed", reviews_wanted=3, reveal=Reveal.NEVER) == 302
    evaluation.refresh_from_db()
    assert (evaluation.name, evaluation.reviews_wanted, evaluation.reveal) == ("Renamed", 3, "never")
    event = Event.objects.latest("pk")
    assert (event.verb, event.user) == ("changed", owner)
    assert event.after == {"name": "Renamed", "reviews_wanted": 3, "reveal": "never"}


def test_what_a_label_may_rest_on_is_chosen_and_recorded(client: Client, evaluation: Evaluation) -> None:
    assert save(client, evaluation, label_policy=LabelPolicy.PEOPLE, resolve_judge_disagreements="on") == 302
    evaluation.refresh_from_db()
    assert (evaluation.label_policy, evaluation.resolve_judge_disagreements) == ("people", True)
    event = Event.objects.latest("pk")
    assert event.before == {"label_policy": "people_then_judges", "resolve_judge_disagreements": False}
    assert event.after == {"label_policy": "people", "resolve_judge_disagreements": True}
    page = client.get(reverse("evaluation_settings", args=["study"])).content.decode()
    for told in ("Label source", "Reviewers only", "Treat judge disagreements as open"):
        assert told in page


def test_line_ends_of_a_browser_are_no_change(client: Client, evaluation: Evaluation) -> None:
    save(client, evaluation, guidelines="one\r\ntwo")
    events = Event.objects.count()
    evaluation.refresh_from_db()
    assert evaluation.guidelines == "one\ntwo"
    save(client, evaluation, guidelines="one\r\ntwo")
    assert Event.objects.count() == events


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": ""}, "This field is required"),
        ({"reviews_wanted": 0}, "greater than or equal to 1"),
        ({"reveal": "sometimes"}, "not one of the available choices"),
        ({"label_policy": "judges"}, "not one of the available choices"),
    ],
)
def test_what_cannot_be_taken_comes_back_with_the_reason(
    client: Client, evaluation: Evaluation, changed: dict[str, object], words: str
) -> None:
    answer = client.post(reverse("evaluation_settings", args=["study"]), values(evaluation, **changed))
    assert answer.status_code == 422
    assert words in answer.content.decode()


def test_a_rubric_of_another_evaluation_cannot_be_chosen(client: Client, evaluation: Evaluation) -> None:
    elsewhere = make_evaluation().review_rubric
    assert elsewhere is not None
    assert save(client, evaluation, review_rubric=elsewhere.pk) == 422


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.ADJUDICATOR, Role.VIEWER])
@pytest.mark.parametrize("address", ["evaluation_settings", "evaluation_archive", "evaluation_restore"])
def test_only_owners_and_managers_change_it(client: Client, evaluation: Evaluation, role: Role, address: str) -> None:
    client.force_login(make_member(evaluation, role))
    assert client.post(reverse(address, args=["study"]), values(evaluation, name="Mine")).status_code == 403
    evaluation.refresh_from_db()
    assert evaluation.name == "Study study"


def test_a_stranger_gets_404(client: Client, evaluation: Evaluation) -> None:
    client.force_login(make_user())
    for address in ("evaluation_settings", "evaluation_archive", "evaluation_restore"):
        assert client.post(reverse(address, args=["study"])).status_code == 404


def test_a_link_alone_archives_nothing(client: Client, evaluation: Evaluation) -> None:
    assert "Archive</button>" in client.get(reverse("evaluation_archive", args=["study"])).content.decode()
    assert client.get(reverse("evaluation_restore", args=["study"])).status_code == 405
    evaluation.refresh_from_db()
    assert evaluation.archived_at is None


def test_archiving_is_said_plainly_and_undone_in_the_settings(client: Client, evaluation: Evaluation) -> None:
    answer = client.post(reverse("evaluation_archive", args=["study"]), follow=True)
    assert "archived. Restore it in its settings." in answer.content.decode()
    assert "Restore" in client.get(reverse("evaluation_archive", args=["study"])).content.decode()
