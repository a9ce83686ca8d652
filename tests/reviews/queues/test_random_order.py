"""What is drawn is one simple random sample, whatever queues fill beside it."""

import random
from statistics import fmean

import pytest

from evaluations.domain.reviews import Reveal, SelectionMethod
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import get_or_create_rater
from evaluations.models.queues import QueueItem
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from evaluations.reviews.queues.next_comparison import reserve_next_comparison
from evaluations.reviews.services import save_first_choices
from tests.factories.evaluations import make_comparison, make_evaluation, make_user
from tests.factories.queues import make_queue
from tests.factories.verdicts import ALL_A, make_judge_rater, make_judge_verdicts

pytestmark = pytest.mark.django_db

COMPARISONS = 60


def study(seed: int) -> tuple[Evaluation, User]:
    """A third flips, and the planted value is 1 there and 0 elsewhere: a sample that favours flips shows it."""
    rng, person = random.Random(seed), make_user()
    evaluation = make_evaluation(person)
    changes = {"reveal": Reveal.NEVER, "shown_judge": make_judge_rater(evaluation).judge}
    change_evaluation(evaluation, changes, user=None)
    arrive(evaluation, COMPARISONS, rng)
    return evaluation, person


def arrive(evaluation: Evaluation, number: int, rng: random.Random) -> None:
    for place in range(number):
        comparison = make_comparison(evaluation)
        Comparison.objects.filter(pk=comparison.pk).update(
            random_order=rng.getrandbits(40), metadata={"flips": place % 3 == 0}
        )
        if place % 3 == 0:
            make_judge_verdicts(comparison, as_stored={"depth": "A"}, swapped={"depth": "B"})


def work(person: User, evaluation: Evaluation, times: int) -> None:
    rater = get_or_create_rater(person, evaluation)
    for _ in range(times):
        pk = reserve_next_comparison(evaluation, rater)
        assert pk is not None
        save_first_choices(person, Comparison.objects.get(pk=pk), choices=ALL_A, version=0)


def planted(rows: "list[bool]") -> float:
    return fmean(map(float, rows))


def drawn_and_reviewed(evaluation: Evaluation) -> list[bool]:
    drawn = QueueItem.objects.filter(rubric_version=evaluation.review_rubric, drawn=True).values("comparison")
    reviewed = Review.objects.filter(comparison__in=drawn, state="final")
    return [bool(one["flips"]) for one in reviewed.values_list("comparison__metadata", flat=True)]


def test_a_queue_of_flips_beside_the_default_queue_leaves_what_is_drawn_unbiased() -> None:
    """One third flips. Ten flips are filled first, then twelve come from the default queue: over 8 seeds
    the mean is close.

    The standard error of one sample of some 18 of 60 is about .09, of the mean of 8 about .03; of all
    that was reviewed, as it should not be used, ten of 22 and more flip.
    """
    means = []
    for seed in range(8):
        evaluation, person = study(seed)
        make_queue(evaluation, name="flips", strategy=SelectionMethod.FLIPS, size=10, random_percent=0, user=None)
        work(person, evaluation, 22)
        means.append(planted(drawn_and_reviewed(evaluation)))
        everything = Review.objects.filter(comparison__evaluation=evaluation).select_related("comparison")
        assert planted([bool(one.comparison.metadata["flips"]) for one in everything]) > 0.4
    assert abs(fmean(means) - 1 / 3) < 0.1


def test_what_arrives_later_is_drawn_in_its_turn_and_together_it_is_a_beginning_of_the_order() -> None:
    evaluation, person = study(1)
    work(person, evaluation, 20)
    arrive(evaluation, 30, random.Random(2))
    work(person, evaluation, 30)
    items = QueueItem.objects.filter(rubric_version=evaluation.review_rubric).order_by("position")
    assert list(items.values_list("drawn", flat=True)) == [True] * 50 + [False] * 40
    assert Review.objects.filter(selection_method="random", probability=1.0).count() == 50
