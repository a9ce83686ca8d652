"""The guidelines: a page of their own, a preview while they are written, and word of a change."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import User
from evaluations.reviews.selectors import get_unseen_guidelines_change
from tests.factories.evaluations import make_comparison, make_human, make_member
from tests.factories.verdicts import ALL_A, make_review

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("owner_signed_in"), pytest.mark.any_database]


def page(client: Client, query: str = "") -> str:
    return client.get(reverse("guidelines", args=["study"]) + query).content.decode()


def test_an_empty_page_says_who_can_write_them(client: Client, evaluation: Evaluation) -> None:
    assert "Write guidelines" in page(client)
    client.force_login(make_member(evaluation, Role.REVIEWER))
    assert "Ask an owner or manager of this evaluation." in page(client)


def test_everyone_who_takes_part_reads_them_as_markdown(client: Client, owner: User, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"guidelines": "A **tie** is <b>fine</b>."}, user=owner)
    for role in (Role.REVIEWER, Role.VIEWER):
        client.force_login(make_member(evaluation, role))
        text = page(client)
        assert "<strong>tie</strong>" in text
        assert "<b>fine</b>" not in text


def test_earlier_wordings_are_kept_and_shown_to_those_who_see_the_record(
    client: Client, owner: User, evaluation: Evaluation
) -> None:
    change_evaluation(evaluation, {"guidelines": "Look at facts."}, user=owner)
    change_evaluation(evaluation, {"guidelines": "Look at style."}, user=owner)
    assert "Look at facts." not in page(client)
    assert "Look at facts." in page(client, "?earlier=1")
    client.force_login(make_member(evaluation, Role.REVIEWER))
    assert "Look at facts." not in page(client, "?earlier=1")


def test_a_preview_shows_what_is_being_written_and_stores_nothing(client: Client, evaluation: Evaluation) -> None:
    address = reverse("evaluation_settings", args=["study"])
    given = {"step": "look", "guidelines": "Prefer the *shorter*.", "name": "Renamed"}
    whole = client.post(address, given).content.decode()
    part = client.post(address, given, headers={"HX-Request": "true"}).content.decode()
    for text in (whole, part):
        assert "<em>shorter</em>" in text
    assert 'value="Renamed"' in whole
    assert "<html" not in part
    evaluation.refresh_from_db()
    assert (evaluation.guidelines, evaluation.name) == ("", "Study study")


def reviewed(evaluation: Evaluation) -> Rater:
    rater = make_human(evaluation)
    make_review(rater, make_comparison(evaluation), ALL_A, finished_at=timezone.now())
    return rater


def test_a_change_is_news_to_those_who_reviewed_before_it_until_they_review_again(
    owner: User, evaluation: Evaluation
) -> None:
    rater, beginner = reviewed(evaluation), make_human(evaluation)
    assert get_unseen_guidelines_change(evaluation, rater) is None
    change_evaluation(evaluation, {"guidelines": "New."}, user=owner)
    assert get_unseen_guidelines_change(evaluation, rater) == evaluation.guidelines_changed_at
    assert get_unseen_guidelines_change(evaluation, beginner) is None
    make_review(rater, make_comparison(evaluation), ALL_A, finished_at=timezone.now())
    assert get_unseen_guidelines_change(evaluation, rater) is None


def test_another_change_of_the_settings_is_no_news(owner: User, evaluation: Evaluation) -> None:
    rater = reviewed(evaluation)
    change_evaluation(evaluation, {"name": "Renamed"}, user=owner)
    assert get_unseen_guidelines_change(evaluation, rater) is None
