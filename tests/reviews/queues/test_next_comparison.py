"""Whose turn it is: the order in which a person meets the comparisons."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import find_rater_of_user
from evaluations.models.queues import Assignment
from evaluations.models.users import User
from evaluations.reviews.drafts import save_draft
from evaluations.reviews.queues.calibration import create_calibration
from evaluations.reviews.queues.reservations import release_expired_reservations
from evaluations.reviews.selectors import ReviewProgress, get_earlier_reviews, get_review_progress
from evaluations.reviews.services import get_or_create_review, save_first_choices, skip_comparison, undo_last_step
from tests.factories.evaluations import make_comparison, make_member
from tests.factories.queue_state import take_next_comparison
from tests.factories.verdicts import ALL_A, make_import, make_imported_votes, make_judge_rater, make_judge_verdicts

pytestmark = pytest.mark.django_db


def comparisons(evaluation: Evaluation, *random_orders: int) -> list[Comparison]:
    made = [make_comparison(evaluation) for _ in random_orders]
    for comparison, random_order in zip(made, random_orders, strict=True):
        Comparison.objects.filter(pk=comparison.pk).update(random_order=random_order)
    return made


def save(owner: User, comparison: Comparison) -> None:
    save_first_choices(owner, comparison, choices=ALL_A, version=0)


def save_next(owner: User, evaluation: Evaluation) -> None:
    pk = take_next_comparison(owner, evaluation)
    assert pk is not None
    save(owner, Comparison.objects.get(pk=pk))


def test_comparisons_come_in_the_order_of_the_shuffle_until_none_is_left(owner: User, evaluation: Evaluation) -> None:
    third, first, second = comparisons(evaluation, 30, 10, 20)
    for expected in (first, second, third):
        assert take_next_comparison(owner, evaluation) == expected.pk
        save(owner, expected)
    assert take_next_comparison(owner, evaluation) is None


def test_people_meet_them_in_the_same_order_each_on_their_own(owner: User, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"reviews_wanted": 2}, user=owner)
    first, second = comparisons(evaluation, 1, 2)
    other = make_member(evaluation, Role.REVIEWER)
    save(owner, first)
    assert (take_next_comparison(owner, evaluation), take_next_comparison(other, evaluation)) == (second.pk, first.pk)


def test_what_enough_others_have_reviewed_is_nobodys_turn_any_more(owner: User, evaluation: Evaluation) -> None:
    first, second = comparisons(evaluation, 1, 2)
    other = make_member(evaluation, Role.REVIEWER)
    save(other, first)
    assert take_next_comparison(owner, evaluation) == second.pk
    save(owner, second)
    assert take_next_comparison(owner, evaluation) is None


def test_two_reviews_wanted_are_two(owner: User, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"reviews_wanted": 2}, user=owner)
    first, second = comparisons(evaluation, 1, 2)
    others = [make_member(evaluation, Role.REVIEWER) for _ in range(2)]
    save(others[0], first)
    assert take_next_comparison(owner, evaluation) == first.pk
    assert take_next_comparison(others[1], evaluation) == second.pk  # of the first one place is done and one is held


def test_skipped_ones_come_back_at_the_end_the_longest_skipped_first(owner: User, evaluation: Evaluation) -> None:
    first, second, third = comparisons(evaluation, 1, 2, 3)
    skip_comparison(owner, first, reason="", version=0)
    skip_comparison(owner, second, reason="", version=0)
    assert take_next_comparison(owner, evaluation) == third.pk
    save(owner, third)
    assert take_next_comparison(owner, evaluation) == first.pk
    skip_comparison(owner, first, reason="", version=1)
    assert take_next_comparison(owner, evaluation) == second.pk


def test_what_was_begun_comes_first(owner: User, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"shown_judge": make_judge_rater(evaluation).judge}, user=owner)
    first, _ = comparisons(evaluation, 1, 2)
    make_judge_verdicts(first, as_stored=ALL_A, swapped=ALL_A)
    save(owner, first)
    assert take_next_comparison(owner, evaluation) == first.pk


def calibrate(evaluation: Evaluation, *known: Comparison) -> None:
    for comparison in known:
        make_imported_votes(comparison, "gold", ALL_A, kind="gold")
    create_calibration(evaluation, name="Before you begin", comparisons=[one.pk for one in known], user=None)


def test_calibration_comes_before_what_is_merely_held_and_after_what_was_begun(
    owner: User, evaluation: Evaluation
) -> None:
    held, begun, known = comparisons(evaluation, 1, 2, 3)
    assert take_next_comparison(owner, evaluation) == held.pk
    calibrate(evaluation, known)
    assert take_next_comparison(owner, evaluation) == known.pk
    assert take_next_comparison(owner, evaluation) == known.pk
    save_draft(get_or_create_review(owner, begun), version=0, fields={"note": "long"}, number=0, tab="one")
    assert take_next_comparison(owner, evaluation) == begun.pk
    save(owner, begun)
    assert take_next_comparison(owner, evaluation) == known.pk
    save(owner, known)
    assert take_next_comparison(owner, evaluation) == held.pk


def test_calibration_that_was_held_too_long_still_comes_first(owner: User, evaluation: Evaluation) -> None:
    _, known = comparisons(evaluation, 1, 2)
    calibrate(evaluation, known)
    assert take_next_comparison(owner, evaluation) == known.pk
    Assignment.objects.update(reserved_until=timezone.now() - timedelta(minutes=1))
    assert release_expired_reservations(10) == 1
    assert take_next_comparison(owner, evaluation) == known.pk
    assert Assignment.objects.get().state == "reserved"


def test_a_held_comparison_that_becomes_calibration_is_part_of_it(owner: User, evaluation: Evaluation) -> None:
    held, known = comparisons(evaluation, 1, 2)
    assert take_next_comparison(owner, evaluation) == held.pk
    calibrate(evaluation, held, known)
    for expected in (held, known):
        assert take_next_comparison(owner, evaluation) == expected.pk
        save(owner, expected)


def test_what_was_undone_comes_next(owner: User, evaluation: Evaluation) -> None:
    first, second = comparisons(evaluation, 1, 2)
    save(owner, first)
    rater = find_rater_of_user(owner, evaluation)
    review = get_earlier_reviews(evaluation, rater, None)[0]
    assert review is not None
    undo_last_step(owner, review, version=review.version)
    assert take_next_comparison(owner, evaluation) == first.pk
    assert second.pk != first.pk


def test_what_was_opened_by_hand_leaves_the_order_as_it_is(owner: User, evaluation: Evaluation) -> None:
    first, second, third = comparisons(evaluation, 1, 2, 3)
    save(owner, second)
    assert take_next_comparison(owner, evaluation) == first.pk
    save(owner, first)
    assert take_next_comparison(owner, evaluation) == third.pk


def test_comparisons_of_an_unfinished_import_are_nobodys_turn(owner: User, evaluation: Evaluation) -> None:
    (hidden,) = comparisons(evaluation, 1)
    Comparison.objects.filter(pk=hidden.pk).update(source_import=make_import(evaluation, "storing"))
    assert take_next_comparison(owner, evaluation) is None
    assert get_review_progress(evaluation, None) == ReviewProgress(total=0, done=0, skipped=0)


def test_progress_counts_what_was_saved_and_what_was_skipped(owner: User, evaluation: Evaluation) -> None:
    first, second, _ = comparisons(evaluation, 1, 2, 3)
    save(owner, first)
    skip_comparison(owner, second, reason="", version=0)
    assert get_review_progress(evaluation, find_rater_of_user(owner, evaluation)) == ReviewProgress(
        total=3, done=1, skipped=1
    )


def test_the_way_back_leads_over_every_earlier_review(owner: User, evaluation: Evaluation) -> None:
    first, second, _ = comparisons(evaluation, 1, 2, 3)
    save(owner, first)
    skip_comparison(owner, second, reason="", version=0)
    rater = find_rater_of_user(owner, evaluation)
    last = get_earlier_reviews(evaluation, rater, None)[0]
    assert last is not None
    assert last.comparison_id == second.pk
    before = get_earlier_reviews(evaluation, rater, last)[0]
    assert before is not None
    assert before.comparison_id == first.pk
    assert get_earlier_reviews(evaluation, rater, before) == []


def queries_for_a_turn(owner: User, evaluation: Evaluation) -> int:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        take_next_comparison(owner, evaluation)
    return len(queries)


def test_the_number_of_queries_does_not_grow_with_the_comparisons(owner: User, evaluation: Evaluation) -> None:
    save(owner, comparisons(evaluation, *range(3))[0])
    assert take_next_comparison(owner, evaluation)
    save_next(owner, evaluation)
    few = queries_for_a_turn(owner, evaluation)
    for comparison in comparisons(evaluation, *range(3, 20))[:10]:
        save(owner, comparison)
    save_next(owner, evaluation)
    assert queries_for_a_turn(owner, evaluation) == few
