"""Two steps of one review in the same moment: the one that comes second is refused."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from django.db import connection, transaction

from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import get_or_create_rater
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from evaluations.reviews.drafts import DraftChangedElsewhere, save_draft
from evaluations.reviews.services import (
    ReviewChangedElsewhere,
    create_or_save_draft,
    get_or_create_review,
    save_final_choices,
    save_first_choices,
)
from tests.factories.evaluations import make_comparison
from tests.factories.review_page import make_judged_comparison
from tests.factories.verdicts import ALL_A, ALL_B

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="on SQLite writers follow one another"),
    pytest.mark.any_database,
]

COUNT_WAITING = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"


def step_while_another_is_stored(one: Callable[[], object], other: Callable[[], object]) -> None:
    """Take the other step once the first has its row, and end the first when the other waits for it."""
    has_begun = threading.Event()

    def follow() -> object:
        has_begun.wait()
        try:
            return other()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        following = threads.submit(follow)
        with transaction.atomic():
            one()
            has_begun.set()
            while not is_waited_for() and not following.done():
                pass
        following.result()


def is_waited_for() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(COUNT_WAITING)
        return bool(cursor.fetchone()[0])


def test_of_two_drafts_of_one_moment_the_second_is_refused(reviewer: User, evaluation: Evaluation) -> None:
    review = get_or_create_review(reviewer, make_comparison(evaluation))
    again = Review.objects.get(pk=review.pk)
    with pytest.raises(DraftChangedElsewhere):
        step_while_another_is_stored(
            lambda: save_draft(review, version=0, fields={"note": "one"}, number=0, tab="one"),
            lambda: save_draft(again, version=0, fields={"note": "two"}, number=0, tab="two"),
        )
    assert Review.objects.get().draft["fields"] == {"note": "one"}


def test_of_two_first_drafts_of_one_moment_the_second_is_refused(reviewer: User, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    rater = get_or_create_rater(reviewer, evaluation)

    def save(note: str) -> Review:
        fields = {"note": note}
        return create_or_save_draft(reviewer, comparison, rater=rater, version=0, fields=fields, number=0, tab=note)

    with pytest.raises(DraftChangedElsewhere):
        step_while_another_is_stored(partial(save, "one"), partial(save, "two"))
    assert Review.objects.get().draft["fields"] == {"note": "one"}


@pytest.mark.usefixtures("judge_shown")
def test_of_two_confirmations_of_one_moment_the_second_is_refused(reviewer: User, evaluation: Evaluation) -> None:
    comparison = make_judged_comparison(evaluation)
    version = save_first_choices(reviewer, comparison, choices=ALL_A, version=0).version
    with pytest.raises(ReviewChangedElsewhere):
        step_while_another_is_stored(
            lambda: save_final_choices(reviewer, comparison, choices=ALL_A, notes={}, version=version),
            lambda: save_final_choices(reviewer, comparison, choices=ALL_B, notes={}, version=version),
        )
    assert Review.objects.get().version == version + 1
