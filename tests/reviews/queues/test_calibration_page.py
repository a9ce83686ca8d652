"""Calibration as its people see it: nothing known before the end, then every difference."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.choices import Choice
from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.queues import Queue
from evaluations.models.users import User
from evaluations.reviews.queues.calibration import create_calibration
from tests.factories.evaluations import make_comparison, make_member
from tests.factories.verdicts import ALL_A, SIX_ASPECT_KEYS, make_imported_votes, make_review

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]
GOLD = "gold-standard-of-ada"


@pytest.fixture(autouse=True)
def gold_labels(evaluation: Evaluation) -> None:
    for choice in (Choice.A, Choice.B):
        make_imported_votes(make_comparison(evaluation), GOLD, dict.fromkeys(SIX_ASPECT_KEYS, choice), kind="gold")
    make_comparison(evaluation)


@pytest.fixture
def made(evaluation: Evaluation) -> Queue:
    return create_calibration(evaluation, name="Calibration", size=2, user=None)


@pytest.fixture
def rater(evaluation: Evaluation, client: Client) -> Rater:
    user = make_member(evaluation, Role.REVIEWER, "anneliese")
    client.force_login(user)
    return Rater.objects.create(evaluation=evaluation, kind="human", name="anneliese", user=user)


def review_all(made: Queue, rater: Rater, most: int = 2) -> None:
    for slot in made.slots.order_by("position")[:most]:
        make_review(rater, slot.item.comparison, ALL_A)


def test_a_reviewer_meets_calibration_first_and_is_told_where_they_are(
    client: Client, made: Queue, rater: Rater
) -> None:
    first = made.slots.get(position=1).item.comparison_id
    answer = client.get(reverse("review", args=["study"]), follow=True)
    assert answer.redirect_chain[-1][0] == reverse("review_comparison", args=["study", first])
    assert "Calibration: 1 of 2." in answer.content.decode()


def test_nothing_known_stands_on_any_page_before_the_queue_is_finished(
    client: Client, made: Queue, rater: Rater
) -> None:
    review_all(made, rater, most=1)
    pages = [reverse("calibration", args=["study", made.pk]), reverse("report", args=["study"])]
    for slot in made.slots.all():
        pages += [
            reverse(name, args=["study", slot.item.comparison_id]) for name in ("comparison", "review_comparison")
        ]
    for address in pages:
        answer = client.get(address, follow=True)
        assert GOLD not in answer.content.decode(), address
        assert "Gold</th>" not in answer.content.decode(), address
    assert "1 of 2 done" in client.get(pages[0]).content.decode()


def test_after_the_last_one_the_result_is_shown_once_with_every_difference(
    client: Client, made: Queue, rater: Rater
) -> None:
    """Known are A and B, chosen A and A: of twelve choices six agree, and six differ."""
    review_all(made, rater)
    address = reverse("calibration", args=["study", made.pk])
    answer = client.get(reverse("review", args=["study"]))
    assert (answer.status_code, answer.headers["Location"]) == (302, address)
    text = client.get(address).content.decode()
    assert "6 of 12 choices match gold." in text
    assert "50.0%" in text
    assert text.count('data-label="Your choice"') == 6
    assert client.get(reverse("review", args=["study"])).headers["Location"] != address


def test_the_owner_sees_everyone_and_each_persons_differences(
    client: Client, owner: User, made: Queue, rater: Rater
) -> None:
    review_all(made, rater)
    client.force_login(owner)
    address = reverse("calibration", args=["study", made.pk])
    text = client.get(address).content.decode()
    assert "not started" in text
    assert "2 of 2" in text
    person = client.get(address, {"reviewer": rater.pk}).content.decode()
    assert person.count('data-label="Choice"') == 6
    assert client.get(address, {"reviewer": "x"}).status_code == 404


def test_a_reviewer_sees_nobody_elses_result(client: Client, evaluation: Evaluation, made: Queue, rater: Rater) -> None:
    review_all(made, rater)
    client.force_login(make_member(evaluation, Role.REVIEWER, "ben"))
    text = client.get(reverse("calibration", args=["study", made.pk]), {"reviewer": rater.pk}).content.decode()
    assert "0 of 2 done" in text
    assert "anneliese" not in text


def test_an_owner_makes_one_of_those_with_known_labels(client: Client, owner: User, evaluation: Evaluation) -> None:
    client.force_login(owner)
    address = reverse("calibration_new", args=["study"])
    assert "2 comparisons have a gold label" in client.get(address).content.decode()
    assert client.post(address, {"name": "Start", "size": 2, "seed": 0}).status_code == 302
    assert Queue.objects.get(name="Start").slots.count() == 2
    for wrong in ({"name": "Both", "size": 1, "comparisons": "1", "seed": 0}, {"name": "None", "seed": 0}):
        assert "Enter either a sample size" in client.post(address, wrong).content.decode()
    assert (
        "is not a comparison number"
        in client.post(address, {"name": "Word", "comparisons": "one", "seed": 0}).content.decode()
    )


def test_the_people_page_tells_those_who_see_all_what_each_has_done(
    client: Client, owner: User, made: Queue, rater: Rater
) -> None:
    review_all(made, rater)
    address = reverse("members", args=["study"])
    assert "Time each" not in client.get(address).content.decode()
    client.force_login(owner)
    assert "50.0%" in client.get(address).content.decode()
