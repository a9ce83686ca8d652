"""Who is put on record for having seen what others chose, and on which comparisons."""

from datetime import UTC, datetime

import pytest

from evaluations.disagreements.services import add_comment, resolve_aspect
from evaluations.domain.choices import Choice
from evaluations.domain.events import SAW_VERDICTS
from evaluations.domain.roles import Role
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Rater
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from evaluations.visibility import record_disclosure
from tests.factories.evaluations import make_comparison, make_human, make_member
from tests.factories.verdicts import ALL_A, ALL_B, get_or_make_aspect, make_judge_verdicts, make_review

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

SAVED, LATER = datetime(2026, 1, 5, 9, 0, tzinfo=UTC), datetime(2026, 1, 5, 9, 1, tzinfo=UTC)


@pytest.fixture
def rater(evaluation: Evaluation, manager: User) -> Rater:
    return Rater.objects.create(evaluation=evaluation, kind="human", name="me", user=manager)


def judged(evaluation: Evaluation) -> Comparison:
    comparison = make_comparison(evaluation)
    make_judge_verdicts(comparison, as_stored=ALL_A)
    return comparison


def noted(manager: User, comparisons: list[Comparison], *, judges: bool = True) -> list[int]:
    for _ in range(2):
        record_disclosure(manager, comparisons[0].evaluation, comparisons, judges=judges)
    events = Event.objects.filter(verb=SAW_VERDICTS, user=manager).order_by("pk")
    return [event.object_id or 0 for event in events]


def test_what_was_judged_and_not_reviewed_is_noted_and_only_once(evaluation: Evaluation, manager: User) -> None:
    seen, untouched = judged(evaluation), make_comparison(evaluation)
    assert noted(manager, [seen, untouched]) == [seen.pk]


def test_a_skipped_one_is_noted(evaluation: Evaluation, manager: User, rater: Rater) -> None:
    skipped = judged(evaluation)
    make_review(rater, skipped, {}, confirmed=False)
    Review.objects.update(state="skipped")
    assert noted(manager, [skipped]) == [skipped.pk]


def test_choices_that_became_final_unseen_can_be_taken_back_so_that_looking_is_noted(
    evaluation: Evaluation, manager: User, rater: Rater
) -> None:
    mine = judged(evaluation)
    make_review(rater, mine, ALL_A, first_saved_at=SAVED, finished_at=SAVED)
    assert noted(manager, [mine]) == [mine.pk]


def test_first_choices_that_were_revealed_upon_cannot_change_any_more(
    evaluation: Evaluation, manager: User, rater: Rater
) -> None:
    waiting, confirmed, late = (judged(evaluation) for _ in range(3))
    make_review(rater, waiting, ALL_A, confirmed=False, first_saved_at=SAVED)
    make_review(rater, confirmed, ALL_A, first_saved_at=SAVED, finished_at=LATER)
    make_review(rater, late, ALL_A, blind=False, first_saved_at=SAVED, finished_at=SAVED)
    assert noted(manager, [waiting, confirmed, late]) == []


def test_who_sees_nothing_but_their_own_choices_has_seen_nothing(
    evaluation: Evaluation, manager: User, rater: Rater
) -> None:
    mine = make_comparison(evaluation)
    make_review(rater, mine, ALL_A)
    assert noted(manager, [mine]) == []
    make_review(make_human(evaluation), mine, ALL_B)
    assert noted(manager, [mine]) == [mine.pk]


def test_where_judges_are_hidden_their_choices_were_not_seen(evaluation: Evaluation, manager: User) -> None:
    assert noted(manager, [judged(evaluation)], judges=False) == []


def test_what_others_settled_or_said_was_seen(evaluation: Evaluation, manager: User) -> None:
    settled, spoken_of = make_comparison(evaluation), make_comparison(evaluation)
    other = make_member(evaluation, Role.ADJUDICATOR)
    aspect = get_or_make_aspect(evaluation, "clarity")
    resolve_aspect(settled, aspect, choice=Choice.A, reason="It is right.", version=0, user=other)
    add_comment(spoken_of, "I say A.", aspect=None, user=other, readers=[])
    assert noted(manager, [settled, spoken_of]) == [settled.pk, spoken_of.pk]
