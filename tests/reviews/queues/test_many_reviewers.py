"""Many people at work at once: nothing lost, nothing doubled, nobody sent away while something is left for them."""

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from evaluations.domain.reviews import AssignmentState, ReviewState
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.members.services import set_role
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater, get_or_create_rater
from evaluations.models.queues import Assignment, QueueItem
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from evaluations.reviews.queues.items import fill_default_queue
from evaluations.reviews.queues.next_comparison import reserve_next_comparison
from evaluations.reviews.queues.reservations import release_expired_reservations, take_item
from evaluations.reviews.queues.services import assign_comparisons, recount_items, release_departed_reservations
from evaluations.reviews.services import save_first_choices
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_user
from tests.factories.queue_state import assert_counters_are_right
from tests.factories.verdicts import ALL_A

pytestmark = pytest.mark.django_db(transaction=True)

PEOPLE = 20
COMPARISONS = 200
WANTED = 3


def study() -> tuple[Evaluation, list[User]]:
    evaluation = make_evaluation(make_user())
    change_evaluation(evaluation, {"reviews_wanted": WANTED}, user=None)
    for _ in range(COMPARISONS):
        make_comparison(evaluation)
    fill_default_queue(evaluation)
    return evaluation, [make_member(evaluation, Role.REVIEWER) for _ in range(PEOPLE)]


def save(person: User, evaluation: Evaluation, pk: int) -> None:
    comparison = Comparison.objects.select_related("evaluation__review_rubric__rubric").get(pk=pk)
    mine = Review.objects.filter(rater__user=person, comparison=pk).first()
    save_first_choices(person, comparison, choices=ALL_A, version=mine.version if mine else 0)


def left_for(rater: Rater) -> int:
    """Open comparisons that this person has not reviewed."""
    mine = Assignment.objects.filter(rater=rater).values("item")
    return QueueItem.objects.filter(taken__lt=WANTED).exclude(pk__in=mine).count()


def test_twenty_reviewers_make_exactly_the_reviews_that_are_wanted_and_none_goes_hungry() -> None:
    evaluation, people = study()
    together = threading.Barrier(PEOPLE)

    def work(person: User) -> int:
        try:
            mine = Evaluation.objects.get(pk=evaluation.pk)
            rater, saved = get_or_create_rater(person, mine), 0
            together.wait()
            while (pk := reserve_next_comparison(mine, rater)) is not None:
                save(person, mine, pk)
                saved += 1
                think()
            assert left_for(rater) == 0
            return saved
        finally:
            connection.close()

    with ThreadPoolExecutor(PEOPLE) as threads:
        saved = list(threads.map(work, people))
    assert sum(saved) == COMPARISONS * WANTED
    reviews = Counter(Review.objects.filter(state=ReviewState.FINAL).values_list("comparison", flat=True))
    assert reviews == dict.fromkeys(Comparison.objects.values_list("pk", flat=True), WANTED)
    assert set(QueueItem.objects.values_list("taken", "wanted", "drawn")) == {(WANTED, WANTED, True)}
    assert_counters_are_right(evaluation)


def test_of_those_who_vanish_and_come_back_late_nothing_is_lost() -> None:
    """One in twenty times a person takes a comparison and goes away; some save it when others have done it."""
    evaluation, people = study()
    together = threading.Barrier(PEOPLE)

    def work(person: User) -> None:
        rng = random.Random(person.pk)
        try:
            mine = Evaluation.objects.get(pk=evaluation.pk)
            rater = get_or_create_rater(person, mine)
            late: list[int] = []
            together.wait()
            while (pk := reserve_next_comparison(mine, rater, exclude=late)) is not None:
                if rng.random() < 0.05:
                    vanish(rater, pk)
                    if rng.random() < 0.5:
                        late.append(pk)
                    continue
                save(person, mine, pk)
                think()
            for pk in late:
                save(person, mine, pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(PEOPLE) as threads:
        list(threads.map(work, people))
    # What was held when everyone had gone home is open again, and one more person finds it.
    Assignment.objects.filter(state=AssignmentState.RESERVED).update(
        reserved_until=timezone.now() - timedelta(seconds=1)
    )
    release_expired_reservations(10_000)
    finish(evaluation, [make_member(evaluation, Role.REVIEWER) for _ in range(WANTED)])
    assert min(Counter(Review.objects.values_list("comparison", flat=True)).values()) >= WANTED
    assert len(Counter(Review.objects.values_list("comparison", flat=True))) == COMPARISONS
    assert_counters_are_right(evaluation)


def test_what_is_given_by_name_while_people_take_is_counted_once() -> None:
    """Sixty are given to somebody in passing, and one of those who work leaves."""
    evaluation, people = study()
    workers = people[:6]
    together = threading.Barrier(len(workers) + 1)

    def work(person: User) -> None:
        try:
            mine = Evaluation.objects.get(pk=evaluation.pk)
            rater = get_or_create_rater(person, mine)
            together.wait()
            for _ in range(40):
                if (pk := reserve_next_comparison(mine, rater)) is not None:
                    save(person, mine, pk)
                think()
        finally:
            connection.close()

    def give() -> None:
        rng = random.Random(1)
        comparisons = list(Comparison.objects.order_by("random_order")[:80])
        together.wait()
        for number in range(60):
            assign_comparisons(evaluation, [rng.choice(comparisons)], [rng.choice(workers)], None)
            if number == 30:
                set_role(evaluation, workers[0], Role.VIEWER, by=None)
                release_departed_reservations(1_000)
            think()

    with ThreadPoolExecutor(len(workers)) as threads:
        working = [threads.submit(work, person) for person in workers]
        give()
        for one in working:
            one.result()
    release_departed_reservations(1_000)
    assert_counters_are_right(evaluation)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="on SQLite writers follow one another")
def test_a_recount_waits_for_who_is_taking_a_place() -> None:
    evaluation, (person, *_) = study()
    item, rater = QueueItem.objects.order_by("position")[0], get_or_create_rater(person, evaluation)

    def count() -> None:
        try:
            with transaction.atomic():
                recount_items([item.pk])
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            assert take_item(item.pk)
            until = timezone.now() + timedelta(minutes=1)
            Assignment.objects.create(
                item=item, rater=rater, selection_method="random", state="reserved", reserved_until=until
            )
            counting = threads.submit(count)
            time.sleep(0.5)  # by now it has come to the item
        counting.result()
    assert_counters_are_right(evaluation)


def think() -> None:
    """A moment in which others come to write: who waits for SQLite has no place in a line."""
    time.sleep(random.random() / 20)


def vanish(rater: Rater, pk: int) -> None:
    """Their hold runs out and is put back, by a sweep or by whoever finds nothing."""
    held = Assignment.objects.filter(rater=rater, item__comparison=pk, state=AssignmentState.RESERVED)
    held.update(reserved_until=timezone.now() - timedelta(seconds=1))
    release_expired_reservations(10)


def finish(evaluation: Evaluation, people: list[User]) -> None:
    for person in people:
        while (pk := reserve_next_comparison(evaluation, get_or_create_rater(person, evaluation))) is not None:
            save(person, evaluation, pk)
