"""Scores of single responses in the report: whose count, and on which comparisons."""

from typing import Any

import pytest

from evaluations.domain import Rules
from evaluations.models import Comparison, Evaluation
from evaluations.services.reporting.reporting import make_report
from evaluations.stats.scores import ScoresReport
from tests.importing import bring, score
from tests.making import make_comparison, make_evaluation, make_human
from tests.saying import make_scorer, person_scores, scorer_says

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation() -> Evaluation:
    return make_evaluation()


def scores_on(
    evaluation: Evaluation, *comparisons: Comparison, aspect: str = "overall", **rules: Any
) -> ScoresReport | None:
    """Of the report on these comparisons, or on all."""
    wanted = Comparison.objects.filter(pk__in=[one.pk for one in comparisons]) if comparisons else None
    return make_report(evaluation, wanted, Rules(**rules)).scores.get(aspect)


# ---- which comparisons ------------------------------------------------------------------------


def test_a_review_counts_only_where_its_own_comparison_does(evaluation: Evaluation) -> None:
    one = make_comparison(evaluation, key="q1")
    other = make_comparison(evaluation, key="q1", candidates=("delta", "gamma"))
    for name, scores in (("ann", (5, 1)), ("ben", (4, 2))):
        person_scores(make_human(evaluation, name), one, {"overall": scores})
    for name in ("cem", "dora"):
        person_scores(make_human(evaluation, name), other, {"overall": (3, 2)})
    for found in (scores_on(evaluation, one), scores_on(evaluation, where=(("candidate", "alpha"),))):
        assert found is not None
        assert found.human_human.multi.units == 2
        # Each person beside the other: 5 and 4, 1 and 2, each way.
        assert found.human_human.others.n == 4
        assert found.human_human.others.mean_absolute_difference.value == 1
        assert [(pair.rater_1, pair.rater_2) for pair in found.human_human.pairs] == [("ann", "ben")]
    everything = scores_on(evaluation)
    assert everything is not None
    assert everything.human_human.multi.units == 4


def test_a_review_of_another_comparison_of_the_same_response_does_not_count(evaluation: Evaluation) -> None:
    one = make_comparison(evaluation, key="q1")
    response = one.response_a
    other = Comparison.objects.create(
        evaluation=evaluation,
        query=one.query,
        response_a=response,
        response_b=make_comparison(evaluation, key="q1", candidates=("delta", "gamma")).response_a,
        origin=one.origin,
        shuffle=7,
    )
    person_scores(make_human(evaluation, "ann"), one, {"overall": (5, 1)})
    person_scores(make_human(evaluation, "ben"), other, {"overall": (4, 2)})
    found = scores_on(evaluation, one)
    assert found is not None
    assert found.human_human.others.n == 0


def test_scores_of_files_and_judges_count_where_the_response_stands_in_a_comparison(evaluation: Evaluation) -> None:
    one = make_comparison(evaluation, key="q1")
    other = make_comparison(evaluation, key="q1", candidates=("delta", "gamma"))
    names = ("alpha", "beta", "delta", "gamma")
    for person in ("ann", "ben"):
        bring(evaluation, *(score("q1", name, 4, rater=person) for name in names))
    scorer = make_scorer(evaluation)
    for comparison in (one, other):
        for response in (comparison.response_a, comparison.response_b):
            scorer_says(scorer, response, 3)
    found = scores_on(evaluation, one)
    assert found is not None
    assert found.human_human.multi.units == 2
    assert found.judges["scorer"].people.n == 2
