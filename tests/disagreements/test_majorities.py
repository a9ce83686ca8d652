"""Accepting the majority on many disagreements at once, and undoing what one action resolved."""

from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.disagreements.majorities import accept_majorities, count_majorities, undo_resolutions
from evaluations.disagreements.selectors import DisagreementFilter, DisagreementKind
from evaluations.disagreements.services import resolve_aspect
from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import move_to_archive
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Label
from evaluations.verdicts.votes import update_labels
from tests.factories.evaluations import make_comparison, make_evaluation, make_human, make_member
from tests.factories.verdicts import get_or_make_aspect, make_review

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

A, B, TIE = Choice.A, Choice.B, Choice.TIE


def voted(evaluation: Evaluation, *choices: Choice, aspect: str = "clarity") -> Comparison:
    get_or_make_aspect(evaluation, aspect)
    comparison = make_comparison(evaluation)
    for choice in choices:
        make_review(make_human(evaluation), comparison, {aspect: choice})
    update_labels([comparison.pk])
    return comparison


@pytest.fixture
def majorities(evaluation: Evaluation) -> list[Comparison]:
    """Two majorities on clarity and one on depth, beside a split and a consensus."""
    voted(evaluation, A, B)
    voted(evaluation, A, A, A)
    return [voted(evaluation, A, A, B), voted(evaluation, B, TIE, TIE), voted(evaluation, B, A, B, aspect="depth")]


def labels() -> list[tuple[int, str, str]]:
    return list(Label.objects.order_by("pk").values_list("comparison", "choice", "source"))


def test_it_resolves_exactly_the_majorities_and_undo_restores_exactly_those(
    evaluation: Evaluation, majorities: list[Comparison], adjudicator: User
) -> None:
    filters, before = DisagreementFilter(evaluation), labels()
    assert count_majorities(filters) == (3, 3)
    done = accept_majorities(filters, user=adjudicator)
    assert (done.aspects, done.remaining) == (3, 0)
    made = Adjudication.objects.order_by("comparison").values_list("comparison", "choice", "in_bulk", "batch")
    assert list(made) == [
        (comparison.pk, choice, True, done.batch) for comparison, choice in zip(majorities, (A, TIE, B), strict=True)
    ]
    assert count_majorities(filters) == (0, 0)
    assert Event.objects.filter(verb="adjudicated", after__in_bulk=True).count() == 3
    assert Event.objects.get(verb="accepted majorities").after == {"aspects": 3}
    undone = undo_resolutions(evaluation, done.batch, user=adjudicator)
    assert (undone.aspects, undone.remaining) == (3, 0)
    assert not Adjudication.objects.exists()
    assert labels() == before
    assert undo_resolutions(evaluation, done.batch, user=adjudicator).aspects == 0


def test_what_was_decided_by_hand_before_or_since_stays(
    evaluation: Evaluation, majorities: list[Comparison], adjudicator: User
) -> None:
    clarity = get_or_make_aspect(evaluation, "clarity")
    resolve_aspect(majorities[0], clarity, choice=B, reason="", version=0, user=adjudicator)
    done = accept_majorities(DisagreementFilter(evaluation), user=adjudicator)
    assert done.aspects == 2
    version = Adjudication.objects.get(comparison=majorities[1]).version
    resolve_aspect(majorities[1], clarity, choice=A, reason="Read twice.", version=version, user=adjudicator)
    assert undo_resolutions(evaluation, done.batch, user=adjudicator).aspects == 1
    kept = Adjudication.objects.order_by("comparison").values_list("comparison", "choice", "in_bulk")
    assert list(kept) == [(majorities[0].pk, "B", False), (majorities[1].pk, "A", False)]


def test_it_keeps_to_the_filter_and_to_its_evaluation(
    evaluation: Evaluation, majorities: list[Comparison], adjudicator: User
) -> None:
    elsewhere = voted(make_evaluation(), A, A, B)
    depth = DisagreementFilter(evaluation, aspect=get_or_make_aspect(evaluation, "depth"))
    done = accept_majorities(depth, user=adjudicator)
    assert Adjudication.objects.get().comparison == majorities[2]
    assert undo_resolutions(elsewhere.evaluation, done.batch, user=adjudicator).aspects == 0
    assert accept_majorities(DisagreementFilter(evaluation, kind=DisagreementKind.JUDGE), user=adjudicator).aspects == 0


def test_one_request_stops_in_time_and_the_next_goes_on(evaluation: Evaluation, adjudicator: User) -> None:
    made = [voted(evaluation, A, A, B).pk for _ in range(66)]
    filters = DisagreementFilter(evaluation)
    first = accept_majorities(filters, user=adjudicator, seconds=0)
    assert (first.aspects, first.remaining) == (64, 2)
    second = accept_majorities(filters, user=adjudicator)
    assert (second.aspects, second.remaining) == (2, 0)
    undone = undo_resolutions(evaluation, first.batch, user=adjudicator)
    assert undone.aspects == 64
    assert list(Adjudication.objects.order_by("comparison").values_list("comparison", flat=True)) == made[64:]


def test_nothing_changes_in_an_archived_evaluation(
    evaluation: Evaluation, majorities: list[Comparison], adjudicator: User
) -> None:
    move_to_archive(evaluation, user=None)
    with pytest.raises(InputRefused, match="archived"):
        accept_majorities(DisagreementFilter(evaluation), user=adjudicator)
    with pytest.raises(InputRefused, match="archived"):
        undo_resolutions(evaluation, uuid4(), user=adjudicator)


def test_the_list_offers_it_with_the_number_and_an_undo(
    client: Client, evaluation: Evaluation, majorities: list[Comparison], adjudicator: User
) -> None:
    client.force_login(adjudicator)
    address = reverse("disagreements", args=["study"])
    text = " ".join(client.get(address).content.decode().split())
    assert "3 aspects on 3 comparisons have a majority" in text
    assert "Accept all 3 majorities" in text
    answer = client.post(reverse("majorities_accept", args=["study"]), follow=True)
    text = answer.content.decode()
    assert "Majority accepted on 3 aspects." in text
    batch = Adjudication.objects.values_list("batch", flat=True)[0]
    assert f'name="batch" value="{batch}"' in text
    resolved = client.get(address, {"state": "resolved"}).content.decode()
    assert "ada accepted the majority on 3 aspects" in " ".join(resolved.split())
    answer = client.post(reverse("resolutions_undo", args=["study"]), {"batch": batch}, follow=True)
    assert "3 aspects reopened." in answer.content.decode()
    assert not Adjudication.objects.exists()


def test_a_reviewer_is_offered_nothing_and_does_nothing(
    client: Client, evaluation: Evaluation, majorities: list[Comparison]
) -> None:
    client.force_login(make_member(evaluation, Role.VIEWER))
    assert "majorities" not in client.get(reverse("disagreements", args=["study"])).content.decode()
    for name in ("majorities_accept", "resolutions_undo"):
        assert client.post(reverse(name, args=["study"]), {"batch": uuid4()}).status_code == 403
    assert not Adjudication.objects.exists()
