"""Places and their counters: whatever people do, and in whatever order, each equals a recount."""

from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluations.domain.reviews import AssignmentState, QueueAudience, Reveal, ReviewState, SelectionMethod
from evaluations.domain.roles import Role
from evaluations.domain.rubrics import RubricSpec
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.members.services import set_role
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import get_or_create_rater
from evaluations.models.queues import END_OF_QUEUE, Assignment, Queue, QueueItem, QueueProgress
from evaluations.models.users import User
from evaluations.models.verdicts import Label, Review
from evaluations.reviews.queues.calibration import create_calibration
from evaluations.reviews.queues.items import ensure_queue_is_filled, fill_default_queue
from evaluations.reviews.queues.next_comparison import reserve_next_comparison
from evaluations.reviews.queues.reservations import release_expired_reservations
from evaluations.reviews.queues.services import (
    archive_queue,
    assign_comparisons,
    release_departed_reservations,
)
from evaluations.reviews.queues.sql import read_queue_stock
from evaluations.reviews.selectors import get_review_progress
from evaluations.reviews.services import save_first_choices, skip_comparison, undo_last_step
from evaluations.rubrics.services import create_next_version
from tests.factories.evaluations import make_comparison, make_evaluation, make_user
from tests.factories.queue_state import assert_counters_are_right
from tests.factories.queues import make_queue
from tests.factories.verdicts import (
    ALL_A,
    make_import,
    make_imported_votes,
    make_judge_rater,
    make_judge_verdicts,
    make_review,
)

pytestmark = pytest.mark.django_db

DEEDS = ("take", "save", "skip", "undo", "lapse", "by hand", "name", "wanted", "arrive", "queue", "close", "go")


class Study:
    """Three people at work on a few comparisons, one deed after the other."""

    def __init__(self, wanted: int) -> None:
        self.people = [make_user() for _ in range(3)]
        self.evaluation = make_evaluation(self.people[0])
        change_evaluation(self.evaluation, {"reviews_wanted": wanted, "reveal": Reveal.NEVER}, user=None)
        for _ in range(4):
            make_comparison(self.evaluation)
        self.queues = 0
        for person in self.people[1:]:
            set_role(self.evaluation, person, Role.REVIEWER, by=None)

    def do(self, deed: str, who: int, which: int) -> None:
        person = self.people[who]
        comparisons = list(Comparison.objects.filter(evaluation=self.evaluation).order_by("pk"))
        one = comparisons[which % len(comparisons)]
        mine = Review.objects.filter(rater__user=person, comparison__evaluation=self.evaluation)
        if deed == "take":
            self.take(person)
        elif deed == "save":
            if (pk := self.take(person)) is not None:
                self.save(person, Comparison.objects.get(pk=pk))
        elif deed == "by hand":
            if not mine.filter(comparison=one, state=ReviewState.FINAL).exists():
                self.save(person, one)
        elif deed == "skip":
            if not mine.filter(comparison=one, state__in=(ReviewState.FINAL, ReviewState.SKIPPED)).exists():
                skip_comparison(person, one, reason="", version=self.version(person, one))
        elif deed == "undo":
            done = mine.filter(state__in=(ReviewState.FINAL, ReviewState.SKIPPED)).order_by("pk").first()
            if done is not None:
                undo_last_step(person, done, version=done.version)
        elif deed == "lapse":
            Assignment.objects.filter(state=AssignmentState.RESERVED, rater__user=person).update(
                reserved_until=timezone.now() - timedelta(seconds=1)
            )
            release_expired_reservations(10)
        elif deed == "name":
            assign_comparisons(self.evaluation, [one], [person], None)
        elif deed == "wanted":
            change_evaluation(self.evaluation, {"reviews_wanted": 1 + which % 3}, user=None)
        elif deed == "arrive":
            Comparison.objects.filter(pk=make_comparison(self.evaluation).pk).update(random_order=which)
        elif deed == "queue":
            self.queues += 1
            if read_queue_stock(self.evaluation) and QueueItem.objects.filter(drawn=False, taken=0).exists():
                self.make_queue(who, which)
        elif deed == "close" and (made := self.evaluation.queues.filter(closed_at=None).first()) is not None:
            archive_queue(made, None)
        elif deed == "go" and person != self.people[0]:
            here = person.memberships.filter(evaluation=self.evaluation, role=Role.REVIEWER).exists()
            set_role(self.evaluation, person, Role.VIEWER if here else Role.REVIEWER, by=None)
            release_departed_reservations(10)

    def make_queue(self, who: int, which: int) -> None:
        audience = QueueAudience.SPLIT if which % 2 == 1 else QueueAudience.EVERYONE
        people = [self.people[who]] if which % 2 == 1 else []
        make = {"strategy": SelectionMethod.RANDOM, "size": 2, "audience": audience, "people": people}
        ensure_queue_is_filled(self.evaluation)
        if QueueItem.objects.filter(rubric_version=self.evaluation.review_rubric, drawn=False, slots=None, taken=0):
            make_queue(self.evaluation, name=f"queue {self.queues}", user=None, **make)

    def take(self, person: User) -> int | None:
        return reserve_next_comparison(self.evaluation, get_or_create_rater(person, self.evaluation))

    def version(self, person: User, comparison: Comparison) -> int:
        review = Review.objects.filter(rater__user=person, comparison=comparison).first()
        return review.version if review else 0

    def save(self, person: User, comparison: Comparison) -> None:
        save_first_choices(person, comparison, choices=ALL_A, version=self.version(person, comparison))


@given(
    wanted=st.integers(1, 3),
    deeds=st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 2), st.integers(0, 5)), min_size=5, max_size=25),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_every_counter_equals_a_recount_after_whatever_people_do(
    wanted: int, deeds: list[tuple[str, int, int]]
) -> None:
    study = Study(wanted)
    for deed in deeds:
        study.do(*deed)
        assert_counters_are_right(study.evaluation)
    for person in study.people:  # everyone works until nothing is left for them
        for _ in range(40):
            if (pk := study.take(person)) is None:
                break
            study.save(person, Comparison.objects.get(pk=pk))
        rater = get_or_create_rater(person, study.evaluation)
        assert not Assignment.objects.filter(rater=rater, state=AssignmentState.RESERVED).exists()
    assert_counters_are_right(study.evaluation)
    items = QueueItem.objects.filter(rubric_version=study.evaluation.review_rubric)
    held = Assignment.objects.filter(state__in=(AssignmentState.RESERVED, AssignmentState.ASSIGNED), item__in=items)
    met = {(one.item_id, one.rater_id) for one in Assignment.objects.filter(item__in=items, state="done")}
    for item in items:
        reviewed = len([pair for pair in met if pair[0] == item.pk])
        assert reviewed >= min(item.wanted, len(study.people)) - held.filter(item=item).count()


# ---- one by one


@pytest.fixture
def people() -> list[User]:
    return [make_user(), make_user()]


def made(evaluation: Evaluation, number: int) -> list[int]:
    return [make_comparison(evaluation).pk for _ in range(number)]


def turn(person: User, evaluation: Evaluation, *besides: int) -> int | None:
    return reserve_next_comparison(evaluation, get_or_create_rater(person, evaluation), exclude=besides)


def save(person: User, pk: int, version: int = 0) -> Review:
    return save_first_choices(person, Comparison.objects.get(pk=pk), choices=ALL_A, version=version)


def lapse() -> None:
    Assignment.objects.filter(state="reserved").update(reserved_until=timezone.now() - timedelta(seconds=1))


def test_two_people_get_different_ones_and_the_same_again_until_they_save(
    evaluation: Evaluation, people: list[User]
) -> None:
    first, second, _ = made(evaluation, 3)
    ann, ben = people
    assert [turn(ann, evaluation), turn(ben, evaluation), turn(ann, evaluation)] == [first, second, first]


def test_the_one_after_the_one_before_the_person_is_held_too(evaluation: Evaluation, people: list[User]) -> None:
    first, second, third = made(evaluation, 3)
    ann, ben = people
    assert turn(ann, evaluation) == first
    assert turn(ann, evaluation, first) == second
    assert turn(ben, evaluation) == third
    save(ann, first)
    assert turn(ann, evaluation) == second


@pytest.mark.parametrize("minutes_off", [-600, 600])
def test_a_hold_lasts_as_long_by_the_clock_of_the_database_whatever_that_of_the_process_says(
    evaluation: Evaluation, people: list[User], monkeypatch: pytest.MonkeyPatch, minutes_off: int
) -> None:
    (only,) = made(evaluation, 1)
    now = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(minutes=minutes_off))
    assert turn(people[0], evaluation) == only
    until = Assignment.objects.get().reserved_until
    assert until is not None
    held = (until - now()).total_seconds() / 60
    assert held == pytest.approx(evaluation.reservation_minutes, abs=1)
    assert release_expired_reservations(10) == 0


@pytest.mark.parametrize("minutes_off", [-600, 600])
def test_a_hold_is_extended_once_half_of_it_is_over_whatever_the_clock_of_the_process_says(
    evaluation: Evaluation, people: list[User], monkeypatch: pytest.MonkeyPatch, minutes_off: int
) -> None:
    made(evaluation, 1)
    turn(people[0], evaluation)
    now, whole = timezone.now, timedelta(minutes=evaluation.reservation_minutes)
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(minutes=minutes_off))
    for left, expected in ((whole * 0.6, whole * 0.6), (whole * 0.4, whole)):
        Assignment.objects.update(reserved_until=now() + left)
        turn(people[0], evaluation)
        until = Assignment.objects.get().reserved_until
        assert until is not None
        assert (until - now()).total_seconds() == pytest.approx(expected.total_seconds(), abs=30)


def test_a_place_held_too_long_is_open_again_to_who_has_passed_it(evaluation: Evaluation, people: list[User]) -> None:
    first, second = made(evaluation, 2)
    ann, ben = people
    assert turn(ann, evaluation) == first
    save(ben, turn(ben, evaluation) or 0)
    lapse()
    assert turn(ben, evaluation) == first
    assert turn(ann, evaluation) is None
    assert second in Review.objects.values_list("comparison", flat=True)


def test_who_found_nothing_is_called_back_by_the_place_that_opens(evaluation: Evaluation, people: list[User]) -> None:
    (only,) = made(evaluation, 1)
    ann, ben = people
    assert turn(ann, evaluation) == only
    assert turn(ben, evaluation) is None
    assert QueueProgress.objects.get(rater__user=ben).reached == END_OF_QUEUE
    skip_comparison(ann, Comparison.objects.get(pk=only), reason="", version=0)
    assert_counters_are_right(evaluation)
    assert turn(ben, evaluation) == only


def test_who_comes_back_late_saves_all_the_same_and_how_it_was_selected_is_still_known(
    evaluation: Evaluation, people: list[User]
) -> None:
    (only,) = made(evaluation, 1)
    ann, ben = people
    assert turn(ann, evaluation) == only
    lapse()
    assert turn(ben, evaluation) == only
    save(ben, only)
    review = save(ann, only)
    assert (review.selection_method, review.probability) == ("random", 1.0)
    assert QueueItem.objects.values_list("taken", "wanted").get() == (2, 1)


def test_what_was_let_lapse_comes_again_to_its_person_where_nobody_took_it(
    evaluation: Evaluation, people: list[User]
) -> None:
    (only,) = made(evaluation, 1)
    assert turn(people[0], evaluation) == only
    lapse()
    release_expired_reservations(10)
    assert turn(people[0], evaluation) == only


def test_an_undone_save_keeps_its_place(evaluation: Evaluation, people: list[User]) -> None:
    (only,) = made(evaluation, 1)
    ann, ben = people
    review = save(ann, only)
    undo_last_step(ann, review, version=review.version)
    assert turn(ben, evaluation) is None
    assert get_review_progress(evaluation, get_or_create_rater(ann, evaluation)).done == 0


def test_a_skip_taken_back_after_others_filled_its_place_is_theirs_to_save_still(
    evaluation: Evaluation, people: list[User]
) -> None:
    (only,) = made(evaluation, 1)
    ann, ben = people
    review = skip_comparison(ann, Comparison.objects.get(pk=only), reason="", version=0)
    save(ben, only)
    assert turn(ann, evaluation) is None
    undo_last_step(ann, review, version=review.version)
    assert turn(ann, evaluation) == only
    assert QueueItem.objects.values_list("taken", flat=True).get() == 1
    save(ann, only, version=Review.objects.get(pk=review.pk).version)
    assert_counters_are_right(evaluation)


def test_looking_again_writes_nothing_while_a_hold_is_fresh(evaluation: Evaluation, people: list[User]) -> None:
    made(evaluation, 1)
    turn(people[0], evaluation)
    before = Assignment.objects.get().reserved_until
    turn(people[0], evaluation)
    assert Assignment.objects.get().reserved_until == before
    assert before is not None
    Assignment.objects.update(reserved_until=timezone.now() + timedelta(minutes=1))
    turn(people[0], evaluation)
    after = Assignment.objects.get().reserved_until
    assert after is not None
    assert after > before


def test_what_awaited_the_judge_comes_when_the_judge_has_answered(evaluation: Evaluation, people: list[User]) -> None:
    first, second = made(evaluation, 2)
    judge = make_judge_rater(evaluation)
    change_evaluation(evaluation, {"shown_judge": judge.judge}, user=None)
    save(people[0], first)
    save(people[0], second)
    Review.objects.update(awaits_judge=True)
    assert turn(people[0], evaluation) is None
    make_judge_verdicts(Comparison.objects.get(pk=second), as_stored=ALL_A, swapped=ALL_A)
    assert turn(people[0], evaluation) == second


# ---- filling


def test_another_rubric_has_a_queue_of_its_own_and_the_old_one_is_there_when_it_is_chosen_again(
    evaluation: Evaluation, people: list[User]
) -> None:
    first, second = made(evaluation, 2)
    ann = people[0]
    save(ann, turn(ann, evaluation) or 0)
    old = evaluation.review_rubric
    assert old is not None
    new = create_next_version(old.rubric, RubricSpec(**{**vars(SIX_ASPECT), "instructions": "Choose."}), user=None)
    change_evaluation(evaluation, {"review_rubric": new}, user=None)
    assert turn(ann, evaluation) == first
    change_evaluation(evaluation, {"review_rubric": old}, user=None)
    assert turn(ann, evaluation) == second
    assert QueueItem.objects.count() == 4


def test_more_reviews_wanted_open_what_was_full(evaluation: Evaluation, people: list[User]) -> None:
    (only,) = made(evaluation, 1)
    ann, ben = people
    save(ann, only)
    assert turn(ben, evaluation) is None
    change_evaluation(evaluation, {"reviews_wanted": 2}, user=None)
    assert turn(ben, evaluation) == only
    change_evaluation(evaluation, {"reviews_wanted": 1}, user=None)
    assert turn(make_user(), evaluation) is None


def test_an_import_is_met_once_it_is_done_in_its_place_of_the_random_order(
    evaluation: Evaluation, people: list[User]
) -> None:
    first, second = made(evaluation, 2)
    source = make_import(evaluation, "storing")
    late = make_comparison(evaluation)
    Comparison.objects.filter(pk=late.pk).update(source_import=source, random_order=0)
    save(people[0], turn(people[0], evaluation) or 0)
    assert get_review_progress(evaluation, None).total == 2
    source.state = "done"
    source.save()
    assert turn(people[0], evaluation) == late.pk
    assert get_review_progress(evaluation, None).total == 3
    assert set(QueueItem.objects.filter(drawn=True).values_list("comparison", flat=True)) == {first, late.pk}
    assert second != late.pk


def test_filling_twice_makes_nothing_twice(evaluation: Evaluation) -> None:
    made(evaluation, 3)
    assert [fill_default_queue(evaluation), fill_default_queue(evaluation)] == [3, 0]


def test_reviews_from_before_the_queue_have_their_places(evaluation: Evaluation, people: list[User]) -> None:
    first, second = made(evaluation, 2)
    ann, ben = people
    make_review(get_or_create_rater(ann, evaluation), Comparison.objects.get(pk=first), ALL_A)
    assert [turn(ben, evaluation), turn(ann, evaluation)] == [second, None]
    assert get_review_progress(evaluation, get_or_create_rater(ann, evaluation)).done == 1
    assert_counters_are_right(evaluation)


# ---- calibration, however it was come to


def calibration_of(evaluation: Evaluation, comparison: int) -> Queue:
    make_imported_votes(Comparison.objects.get(pk=comparison), "gold", ALL_A, kind="gold")
    return create_calibration(evaluation, name="Calibration", comparisons=[comparison], user=None)


def test_a_calibration_comparison_that_is_opened_by_its_address_is_calibration(
    evaluation: Evaluation, people: list[User]
) -> None:
    (one,) = made(evaluation, 1)
    calibration = calibration_of(evaluation, one)
    review = save(people[0], one)
    assert (review.selection_method, review.queue, review.state) == (
        SelectionMethod.CALIBRATION,
        calibration,
        ReviewState.FINAL,
    )
    assert QueueItem.objects.get().taken == 0
    assert not Label.objects.exists()
    assert turn(people[0], evaluation) is None
    assert_counters_are_right(evaluation)


def test_what_was_held_when_its_calibration_was_made_gives_its_place_back(
    evaluation: Evaluation, people: list[User]
) -> None:
    (one,) = made(evaluation, 1)
    assert (turn(people[0], evaluation), turn(people[1], evaluation)) == (one, None)
    calibration = calibration_of(evaluation, one)
    review = save(people[0], one)
    assert (review.selection_method, review.queue) == (SelectionMethod.CALIBRATION, calibration)
    assert Assignment.objects.get().state == AssignmentState.DONE
    assert QueueItem.objects.get().taken == 0
    assert turn(people[1], evaluation) == one
    assert_counters_are_right(evaluation)


def test_a_closed_calibration_takes_nothing_in(evaluation: Evaluation, people: list[User]) -> None:
    (one,) = made(evaluation, 1)
    archive_queue(calibration_of(evaluation, one), None)
    assert save(people[0], one).selection_method == SelectionMethod.BY_HAND
