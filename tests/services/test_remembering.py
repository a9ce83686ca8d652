from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import caches
from django.utils import timezone

from evaluations.domain import RunState
from evaluations.models import Evaluation, Rater, Run
from evaluations.services.preparing.preparing import change_evaluation
from evaluations.services.reporting.remembering import remembered
from tests.importing import bring, comparison
from tests.making import make_comparison, make_evaluation, make_human
from tests.saying import ALL_A, judge_says, person_says

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def remembers(settings: Any) -> Iterator[None]:
    local = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "remembered"}
    settings.CACHES = {**settings.CACHES, "reports": local}
    caches["reports"].clear()
    yield
    caches["reports"].clear()


class Counter:
    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> int:
        self.made += 1
        return self.made


@pytest.fixture
def evaluation() -> Evaluation:
    return make_evaluation()


def test_it_is_made_once_while_nothing_changes_and_for_each_question_apart(evaluation: Evaluation) -> None:
    make = Counter()
    assert [remembered(evaluation, asked, make) for asked in ("one", "one", "other", "one")] == [1, 1, 2, 1]
    assert remembered(make_evaluation(), "one", make) == 3


def test_whatever_changes_a_number_makes_it_anew(evaluation: Evaluation) -> None:
    make = Counter()

    def is_new() -> bool:
        before = make.made
        return remembered(evaluation, "report", make) > before

    assert is_new()
    bring(evaluation, comparison("q1"))
    assert is_new()
    ann = make_human(evaluation, "ann")
    assert is_new()
    Rater.objects.filter(pk=ann.pk).update(verdicts_changed_at=timezone.now())
    assert is_new()
    change_evaluation(evaluation, {"name": "Other"}, user=None)
    assert is_new()
    assert not is_new()


def test_nothing_is_kept_while_a_run_is_at_work(evaluation: Evaluation) -> None:
    judge_says(make_comparison(evaluation), as_stored=ALL_A)
    person_says(make_human(evaluation), make_comparison(evaluation), ALL_A)
    Run.objects.update(state=RunState.RUNNING)
    make = Counter()
    assert [remembered(evaluation, "report", make) for _ in range(2)] == [1, 2]
    Run.objects.update(state=RunState.DONE)
    assert [remembered(evaluation, "report", make) for _ in range(2)] == [3, 3]


def test_what_changes_while_it_is_made_is_not_remembered(evaluation: Evaluation) -> None:
    """A backup that is restored brings the state back in which it was begun, but not what it saw of the next."""
    make = Counter()

    def make_while_ann_comes() -> int:
        make_human(evaluation, "ann")
        return make()

    remembered(evaluation, "report", make_while_ann_comes)
    Rater.objects.filter(evaluation=evaluation).delete()
    assert [remembered(evaluation, "report", make) for _ in range(2)] == [2, 2]


def test_an_evaluation_that_was_read_before_it_changed_has_a_report_of_its_own(evaluation: Evaluation) -> None:
    make = Counter()
    before = Evaluation.objects.get(pk=evaluation.pk)
    change_evaluation(evaluation, {"name": "Other"}, user=None)
    assert [remembered(one, "report", make) for one in (before, evaluation, before)] == [1, 2, 1]
