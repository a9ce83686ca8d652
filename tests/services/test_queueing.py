"""Whose turn it is: the order in which a person meets the comparisons."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.domain import Role
from evaluations.models import Comparison, Evaluation, User
from evaluations.services.preparing.preparing import change_evaluation
from evaluations.services.reviewing.queueing import Progress, earlier_review, last_finished, next_comparison, progress
from evaluations.services.reviewing.reviewing import rater_of, save_first, skip, undo
from tests.making import make_comparison, make_evaluation, make_member, make_user
from tests.saying import ALL_A, judge_says, make_import, make_judge

pytestmark = pytest.mark.django_db


@pytest.fixture
def person() -> User:
    return make_user()


@pytest.fixture
def evaluation(person: User) -> Evaluation:
    return make_evaluation(person)


def comparisons(evaluation: Evaluation, *shuffles: int) -> list[Comparison]:
    made = [make_comparison(evaluation) for _ in shuffles]
    for comparison, shuffle in zip(made, shuffles, strict=True):
        Comparison.objects.filter(pk=comparison.pk).update(shuffle=shuffle)
    return made


def turn(person: User, evaluation: Evaluation) -> int | None:
    return next_comparison(evaluation, rater_of(person, evaluation))


def save(person: User, comparison: Comparison) -> None:
    save_first(person, comparison, choices=ALL_A, version=0)


def test_comparisons_come_in_the_order_of_the_shuffle_until_none_is_left(person: User, evaluation: Evaluation) -> None:
    third, first, second = comparisons(evaluation, 30, 10, 20)
    for expected in (first, second, third):
        assert turn(person, evaluation) == expected.pk
        save(person, expected)
    assert turn(person, evaluation) is None


def test_people_meet_them_in_the_same_order_each_on_their_own(person: User, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"reviews_wanted": 2}, user=person)
    first, second = comparisons(evaluation, 1, 2)
    other = make_member(evaluation, Role.REVIEWER)
    save(person, first)
    assert (turn(person, evaluation), turn(other, evaluation)) == (second.pk, first.pk)


def test_what_enough_others_have_reviewed_comes_after_what_is_still_wanted(
    person: User, evaluation: Evaluation
) -> None:
    first, second = comparisons(evaluation, 1, 2)
    other = make_member(evaluation, Role.REVIEWER)
    save(other, first)
    assert turn(person, evaluation) == second.pk
    save(person, second)
    assert turn(person, evaluation) == first.pk


def test_two_reviews_wanted_are_two(person: User, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"reviews_wanted": 2}, user=person)
    first, second = comparisons(evaluation, 1, 2)
    others = [make_member(evaluation, Role.REVIEWER) for _ in range(2)]
    save(others[0], first)
    assert turn(person, evaluation) == first.pk
    save(others[1], first)
    assert turn(person, evaluation) == second.pk


def test_skipped_ones_come_back_at_the_end_the_longest_skipped_first(person: User, evaluation: Evaluation) -> None:
    first, second, third = comparisons(evaluation, 1, 2, 3)
    skip(person, first, reason="", version=0)
    skip(person, second, reason="", version=0)
    assert turn(person, evaluation) == third.pk
    save(person, third)
    assert turn(person, evaluation) == first.pk
    skip(person, first, reason="", version=1)
    assert turn(person, evaluation) == second.pk


def test_what_was_begun_comes_first(person: User, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"shown_judge": make_judge(evaluation).judge}, user=person)
    first, _ = comparisons(evaluation, 1, 2)
    judge_says(first, as_stored=ALL_A, swapped=ALL_A)
    save(person, first)
    assert turn(person, evaluation) == first.pk


def test_what_was_undone_comes_next(person: User, evaluation: Evaluation) -> None:
    first, second = comparisons(evaluation, 1, 2)
    save(person, first)
    rater = rater_of(person, evaluation)
    review = last_finished(evaluation, rater)
    assert review is not None
    undo(person, review, version=review.version)
    assert turn(person, evaluation) == first.pk
    assert second.pk != first.pk


def test_what_lies_before_the_place_that_was_reached_is_not_forgotten(person: User, evaluation: Evaluation) -> None:
    first, second, third = comparisons(evaluation, 1, 2, 3)
    save(person, second)
    assert turn(person, evaluation) == third.pk
    save(person, third)
    assert turn(person, evaluation) == first.pk


def test_comparisons_of_an_unfinished_import_are_nobodys_turn(person: User, evaluation: Evaluation) -> None:
    (hidden,) = comparisons(evaluation, 1)
    Comparison.objects.filter(pk=hidden.pk).update(source_import=make_import(evaluation, "storing"))
    assert turn(person, evaluation) is None
    assert progress(evaluation, None) == Progress(total=0, done=0, skipped=0)


def test_progress_counts_what_was_saved_and_what_was_skipped(person: User, evaluation: Evaluation) -> None:
    first, second, _ = comparisons(evaluation, 1, 2, 3)
    save(person, first)
    skip(person, second, reason="", version=0)
    assert progress(evaluation, rater_of(person, evaluation)) == Progress(total=3, done=1, skipped=1)


def test_the_way_back_leads_over_every_earlier_review(person: User, evaluation: Evaluation) -> None:
    first, second, _ = comparisons(evaluation, 1, 2, 3)
    save(person, first)
    skip(person, second, reason="", version=0)
    rater = rater_of(person, evaluation)
    last = earlier_review(evaluation, rater, None)
    assert last is not None
    assert last.comparison_id == second.pk
    before = earlier_review(evaluation, rater, last)
    assert before is not None
    assert before.comparison_id == first.pk
    assert earlier_review(evaluation, rater, before) is None


def queries_for_a_turn(person: User, evaluation: Evaluation) -> int:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        turn(person, evaluation)
    return len(queries)


def test_the_number_of_queries_does_not_grow_with_the_comparisons(person: User, evaluation: Evaluation) -> None:
    made = comparisons(evaluation, *range(3))
    save(person, made[0])
    few = queries_for_a_turn(person, evaluation)
    for comparison in comparisons(evaluation, *range(3, 20))[:10]:
        save(person, comparison)
    assert queries_for_a_turn(person, evaluation) == few
