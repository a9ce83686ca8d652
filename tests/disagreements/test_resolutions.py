"""Resolving a disagreement: by whom, why, over what was seen, and the label with it."""

from typing import Any

import pytest
from pydantic import ValidationError

from evaluations.disagreements.schemas import ResolveIn
from evaluations.disagreements.services import ResolvedElsewhere, resolve_aspect, withdraw_resolution
from evaluations.domain.choices import Choice, LabelSource
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import move_to_archive
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.rubrics import Aspect
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Label
from evaluations.verdicts.votes import update_labels
from tests.factories.evaluations import make_comparison, make_evaluation, make_human, make_member
from tests.factories.verdicts import get_or_make_aspect, make_review

pytestmark = pytest.mark.django_db

A, B, TIE = Choice.A, Choice.B, Choice.TIE


@pytest.fixture
def comparison(evaluation: Evaluation) -> Comparison:
    """Two people differ on clarity."""
    made = make_comparison(evaluation)
    for choice in (A, B):
        make_review(make_human(evaluation), made, {"clarity": choice})
    update_labels([made.pk])
    return made


@pytest.fixture
def clarity(evaluation: Evaluation) -> Aspect:
    return get_or_make_aspect(evaluation, "clarity")


def label() -> tuple[str, str, int, bool]:
    (row,) = Label.objects.all()
    return row.choice, row.source, row.votes, row.unanimous


def test_a_resolution_makes_the_label_at_once(comparison: Comparison, clarity: Aspect, adjudicator: User) -> None:
    assert label() == ("", LabelSource.SPLIT, 2, False)
    made = resolve_aspect(
        comparison, clarity, choice="B", reason=" B names the right city. ", version=0, user=adjudicator
    )
    assert (made.choice, made.reason, made.user) == ("B", "B names the right city.", adjudicator)
    assert label() == ("B", LabelSource.ADJUDICATED, 2, False)


def test_it_overrules_a_majority_and_withdrawn_it_leaves_the_votes(
    comparison: Comparison, clarity: Aspect, adjudicator: User
) -> None:
    make_review(make_human(comparison.evaluation), comparison, {"clarity": A})
    made = resolve_aspect(comparison, clarity, choice="tie", reason="Equal.", version=0, user=adjudicator)
    assert label() == ("tie", LabelSource.ADJUDICATED, 3, False)
    withdraw_resolution(made, version=made.version, user=adjudicator)
    assert not Adjudication.objects.exists()
    assert label() == ("A", LabelSource.MAJORITY, 3, False)


def test_where_nobody_voted_the_label_comes_and_goes_with_the_adjudication(
    evaluation: Evaluation, adjudicator: User
) -> None:
    untouched = make_comparison(evaluation)
    made = resolve_aspect(
        untouched, get_or_make_aspect(evaluation, "safety"), choice="A", reason="Plain.", version=0, user=adjudicator
    )
    assert label() == ("A", LabelSource.ADJUDICATED, 0, True)
    withdraw_resolution(made, version=made.version, user=adjudicator)
    assert not Label.objects.exists()


def test_every_step_is_recorded_with_what_stood_before(
    comparison: Comparison, clarity: Aspect, adjudicator: User, owner: User
) -> None:
    before = Event.objects.count()
    made = resolve_aspect(comparison, clarity, choice="A", reason="First.", version=0, user=adjudicator)
    made = resolve_aspect(comparison, clarity, choice="B", reason="Second.", version=made.version, user=owner)
    withdraw_resolution(made, version=made.version, user=adjudicator)
    first, changed, withdrawn = Event.objects.filter(object_type="comparison", object_id=comparison.pk).order_by("pk")
    assert Event.objects.count() == before + 3
    a = {"aspect": "clarity", "choice": "A", "reason": "First.", "by": "ada"}
    b = {"aspect": "clarity", "choice": "B", "reason": "Second.", "by": "olive"}
    assert (first.verb, first.user, first.before, first.after) == ("adjudicated", adjudicator, {"aspect": "clarity"}, a)
    assert (changed.verb, changed.user, changed.before, changed.after) == ("adjudicated", owner, a, b)
    assert (withdrawn.verb, withdrawn.user) == ("withdrew adjudication", adjudicator)
    assert (withdrawn.before, withdrawn.after) == (b, {"aspect": "clarity"})


def test_two_adjudicators_cannot_overwrite_each_other_unseen(
    comparison: Comparison, clarity: Aspect, adjudicator: User
) -> None:
    other = make_member(comparison.evaluation, Role.ADJUDICATOR, "ben")
    resolve_aspect(comparison, clarity, choice="A", reason="A cites a source.", version=0, user=adjudicator)
    with pytest.raises(ResolvedElsewhere) as refused:
        resolve_aspect(comparison, clarity, choice="tie", reason="No.", version=0, user=other)
    assert "ada resolved Clarity as “A”" in str(refused.value)
    assert "A cites a source." in str(refused.value)
    assert label()[:2] == ("A", LabelSource.ADJUDICATED)


def test_a_double_click_is_one_adjudication(comparison: Comparison, clarity: Aspect, adjudicator: User) -> None:
    once = resolve_aspect(comparison, clarity, choice="A", reason="Why.", version=0, user=adjudicator)
    again = resolve_aspect(comparison, clarity, choice="A", reason="Why.", version=0, user=adjudicator)
    assert (again.pk, again.version) == (once.pk, once.version)
    assert Event.objects.filter(verb="adjudicated").count() == 1


def test_one_made_anew_is_not_taken_for_the_one_that_was_seen(
    comparison: Comparison, clarity: Aspect, adjudicator: User
) -> None:
    seen = resolve_aspect(comparison, clarity, choice="A", reason="First.", version=0, user=adjudicator)
    withdraw_resolution(seen, version=seen.version, user=adjudicator)
    resolve_aspect(comparison, clarity, choice="B", reason="Second.", version=0, user=adjudicator)
    other = make_member(comparison.evaluation, Role.ADJUDICATOR, "ben")
    with pytest.raises(ResolvedElsewhere, match="resolved Clarity as “B”"):
        resolve_aspect(comparison, clarity, choice="tie", reason="Third.", version=seen.version, user=other)


def test_what_was_withdrawn_meanwhile_is_neither_changed_nor_withdrawn_again(
    comparison: Comparison, clarity: Aspect, adjudicator: User
) -> None:
    made = resolve_aspect(comparison, clarity, choice="A", reason="Why.", version=0, user=adjudicator)
    withdraw_resolution(made, version=made.version, user=adjudicator)
    made = Adjudication(pk=made.pk or 1, comparison=comparison, aspect=clarity, version=1)
    with pytest.raises(ResolvedElsewhere, match="reopened this aspect"):
        withdraw_resolution(made, version=1, user=adjudicator)
    with pytest.raises(ResolvedElsewhere, match="reopened this aspect"):
        resolve_aspect(comparison, clarity, choice="B", reason="Why.", version=1, user=adjudicator)
    assert label()[1] == LabelSource.SPLIT


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"reason": "x" * 5001}, "up to 5,000 characters; this one has 5,001"),
        ({"category": "my_mistake"}, "one of the listed reasons"),
        ({"choice": "both_bad"}, "“both_bad” is not an option for Clarity. Choose A, B, tie"),
        ({"choice": "C"}, "“C” is not an option"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_the_reason(
    comparison: Comparison, clarity: Aspect, adjudicator: User, given: dict[str, str], words: str
) -> None:
    usual: dict[str, Any] = {"choice": "A", "reason": "Why.", "version": 0, "user": adjudicator}
    with pytest.raises(InputRefused, match=words):
        resolve_aspect(comparison, clarity, **(usual | given))
    assert label()[1] == LabelSource.SPLIT


def test_the_api_takes_a_reason_as_long_as_the_page_does() -> None:
    longest = ResolveIn(aspect="clarity", choice=A, reason="x" * 5000)
    assert len(longest.reason) == 5000
    with pytest.raises(ValidationError, match="at most 5000 characters"):
        ResolveIn(aspect="clarity", choice=A, reason="x" * 5001)


def test_an_aspect_that_no_rubric_asks_about_cannot_be_resolved(comparison: Comparison, adjudicator: User) -> None:
    beside = Aspect.objects.create(evaluation=comparison.evaluation, key="tone", name="Tone")
    with pytest.raises(InputRefused, match="Tone is in no rubric of this evaluation"):
        resolve_aspect(comparison, beside, choice="A", reason="Why.", version=0, user=adjudicator)
    elsewhere = get_or_make_aspect(make_evaluation(), "clarity")
    with pytest.raises(InputRefused, match="in no rubric"):
        resolve_aspect(comparison, elsewhere, choice="A", reason="Why.", version=0, user=adjudicator)


def test_nothing_is_resolved_in_an_archived_evaluation(
    comparison: Comparison, clarity: Aspect, adjudicator: User
) -> None:
    made = resolve_aspect(comparison, clarity, choice="A", reason="Why.", version=0, user=adjudicator)
    move_to_archive(comparison.evaluation, user=adjudicator)
    with pytest.raises(InputRefused, match="archived"):
        resolve_aspect(comparison, clarity, choice="B", reason="Why.", version=made.version, user=adjudicator)
    with pytest.raises(InputRefused, match="archived"):
        withdraw_resolution(made, version=made.version, user=adjudicator)
