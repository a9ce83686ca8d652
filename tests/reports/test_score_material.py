"""Scores of single responses in the report: whose count, and on which comparisons."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from evaluations.domain.judges import CallState
from evaluations.domain.reports import ReportPart, ReportRules, SeenRule
from evaluations.domain.reviews import SelectionMethod
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.rubrics import RubricVersion
from evaluations.models.verdicts import Review
from evaluations.reports.selectors import build_report
from evaluations.rubrics.services import create_next_version
from evaluations.stats.aspect_report import VoteCounts
from evaluations.stats.score_report import HumanScores, ScoreReport
from tests.factories.evaluations import make_comparison, make_human
from tests.factories.imports import import_rows, score_row
from tests.factories.verdicts import make_judge_score, make_scored_review, make_scoring_judge

pytestmark = pytest.mark.django_db


def scores_on(
    evaluation: Evaluation, *comparisons: Comparison, aspect: str = "overall", **rules: Any
) -> ScoreReport | None:
    """Of the report on these comparisons, or on all."""
    wanted = Comparison.objects.filter(pk__in=[one.pk for one in comparisons]) if comparisons else None
    return build_report(evaluation, wanted, ReportRules(**rules)).scores.get(aspect)


# ---- which comparisons ------------------------------------------------------------------------


def test_a_review_counts_only_where_its_own_comparison_does(evaluation: Evaluation) -> None:
    one = make_comparison(evaluation, key="q1")
    other = make_comparison(evaluation, key="q1", candidates=("delta", "gamma"))
    for name, scores in (("ann", (5, 1)), ("ben", (4, 2))):
        make_scored_review(make_human(evaluation, name), one, {"overall": scores})
    for name in ("cem", "dora"):
        make_scored_review(make_human(evaluation, name), other, {"overall": (3, 2)})
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
        random_order=7,
    )
    make_scored_review(make_human(evaluation, "ann"), one, {"overall": (5, 1)})
    make_scored_review(make_human(evaluation, "ben"), other, {"overall": (4, 2)})
    found = scores_on(evaluation, one)
    assert found is not None
    assert found.human_human.others.n == 0


def test_scores_of_files_and_judges_count_where_the_response_stands_in_a_comparison(evaluation: Evaluation) -> None:
    one = make_comparison(evaluation, key="q1")
    other = make_comparison(evaluation, key="q1", candidates=("delta", "gamma"))
    names = ("alpha", "beta", "delta", "gamma")
    for person in ("ann", "ben"):
        import_rows(evaluation, *(score_row("q1", name, 4, rater=person) for name in names))
    scorer = make_scoring_judge(evaluation)
    for comparison in (one, other):
        for response in (comparison.response_a, comparison.response_b):
            make_judge_score(scorer, response, 3)
    found = scores_on(evaluation, one)
    assert found is not None
    assert found.human_human.multi.units == 2
    assert found.judges["scorer"].people.n == 2


# ---- whose scores -----------------------------------------------------------------------------


def six_scored(evaluation: Evaluation, **second: Any) -> None:
    """Ann scores both responses of six comparisons blind, ben one point less in reviews of these columns."""
    ann, ben = make_human(evaluation, "ann"), make_human(evaluation, "ben")
    for number in range(6):
        made = make_comparison(evaluation)
        make_scored_review(ann, made, {"overall": (2 + number % 3, 3)})
        make_scored_review(ben, made, {"overall": (1 + number % 3, 2)}, **second)


def counted(found: ScoreReport | None) -> HumanScores:
    assert found is not None
    return found.human_human


def test_scores_that_saw_the_judge_first_stand_apart(evaluation: Evaluation) -> None:
    six_scored(evaluation, blind=False, judge_first=True)
    scorer = make_scoring_judge(evaluation)
    for one in Comparison.objects.all():
        make_judge_score(scorer, one.response_a, 5)
        make_judge_score(scorer, one.response_b, 2)
    found = scores_on(evaluation)
    assert found is not None
    assert found.human_human.others.n == 0
    assert found.human_scores == VoteCounts(blind=12, unknown=0, saw_judge_first=12, not_drawn=0, calibration=0)
    assert found.judges["scorer"].people.n == 12
    # Ann's are 2, 3, 4, 2, 3, 4 and six 3s: the judge gives 3, 2, 1, 3, 2, 1 more and six times 1 less.
    assert found.judges["scorer"].people.mean_difference.value == pytest.approx((12 - 6) / 12)
    # Ben's are one less each: those six are met and the others are a point further off.
    assert found.saw_judge_first.scores == 12
    assert found.saw_judge_first.judges["scorer"].mean_difference.value == pytest.approx((18 + 0) / 12)


@pytest.mark.parametrize(
    ("seen", "mean", "blind", "saw"),
    [(SeenRule.NOTHING, 0.5, 12, 12), (SeenRule.BLIND, 0.5, 12, 12), (SeenRule.JUDGE, 1.5, 0, 12)],
)
def test_which_scores_count_goes_by_what_was_seen(
    evaluation: Evaluation, seen: SeenRule, mean: float, blind: int, saw: int
) -> None:
    six_scored(evaluation, blind=False, judge_first=True)
    scorer = make_scoring_judge(evaluation)
    for one in Comparison.objects.all():
        make_judge_score(scorer, one.response_a, 5)
        make_judge_score(scorer, one.response_b, 2)
    found = scores_on(evaluation, seen=seen)
    assert found is not None
    assert found.judges["scorer"].people.mean_difference.value == pytest.approx(mean)
    assert (found.human_scores.blind, found.human_scores.saw_judge_first) == (blind, saw)
    assert found.saw_judge_first.scores == (0 if seen is SeenRule.JUDGE else 12)


@pytest.mark.parametrize("picked", [SelectionMethod.BY_HAND, SelectionMethod.CALIBRATION])
def test_scores_on_what_was_not_drawn_are_left_out_and_counted(evaluation: Evaluation, picked: SelectionMethod) -> None:
    six_scored(evaluation, selection_method=picked)
    found = scores_on(evaluation)
    assert found is not None
    assert found.human_human.others.n == 0
    told = found.human_scores
    assert (told.blind, told.not_drawn + told.calibration) == (12, 12)
    assert (told.calibration == 12) == (picked is SelectionMethod.CALIBRATION)


def test_scores_count_by_the_day_on_which_they_were_given(evaluation: Evaluation) -> None:
    six_scored(evaluation, first_saved_at=datetime(2026, 3, 4, tzinfo=UTC))
    Review.objects.filter(rater__name="ann").update(first_saved_at=datetime(2026, 3, 6, tzinfo=UTC))
    assert counted(scores_on(evaluation)).others.n == 24
    assert counted(scores_on(evaluation, since=date(2026, 3, 4), until=date(2026, 3, 6))).others.n == 24
    assert counted(scores_on(evaluation, since=date(2026, 3, 5))).others.n == 0
    assert counted(scores_on(evaluation, until=date(2026, 3, 5))).others.n == 0


def test_imported_scores_count_on_the_day_their_file_came_in(evaluation: Evaluation) -> None:
    make_comparison(evaluation, key="q1")
    for person in ("ann", "ben"):
        import_rows(evaluation, score_row("q1", "alpha", 4, rater=person), score_row("q1", "beta", 2, rater=person))
    Import.objects.update(created_at=datetime(2026, 3, 4, 23, tzinfo=UTC))
    found = scores_on(evaluation, since=date(2026, 3, 4), until=date(2026, 3, 4))
    assert counted(found).others.n == 4
    assert found is not None
    assert found.human_scores == VoteCounts(blind=0, unknown=4, saw_judge_first=0, not_drawn=0, calibration=0)
    assert scores_on(evaluation, since=date(2026, 3, 5)) is None
    blind = scores_on(evaluation, seen=SeenRule.BLIND)
    assert counted(blind).others.n == 0


def test_an_imported_score_counts_once_in_however_many_comparisons_its_response_stands(evaluation: Evaluation) -> None:
    import_rows(evaluation, *({"query_id": "q1", "query": "Why?", "candidate": one, "response": one} for one in "abc"))
    for person, value in (("ann", 4), ("ben", 2)):
        import_rows(evaluation, score_row("q1", "a", value, rater=person))
    found = scores_on(evaluation)
    assert Comparison.objects.count() == 3
    assert counted(found).others.n == 2
    assert found is not None
    assert found.human_scores.unknown == 2


def test_of_two_reviews_of_a_comparison_the_newest_scores_count(evaluation: Evaluation) -> None:
    ann, ben = make_human(evaluation, "ann"), make_human(evaluation, "ben")
    made = make_comparison(evaluation)
    make_scored_review(ann, made, {"overall": (1, 1)})
    make_scored_review(ben, made, {"overall": (3, 4)})
    version = RubricVersion.objects.get(rubric__name="scores")
    following = create_next_version(version.rubric, replace(version.spec(), instructions="Rate again."), user=None)
    make_scored_review(ann, made, {"overall": (5, 2)}, rubric_version=following)
    (pair,) = counted(scores_on(evaluation)).pairs
    # 5 and 2 beside 3 and 4.
    assert (pair.n, pair.mean_absolute_difference.value, pair.mean_difference.value) == (2, 2, 0)


def test_what_one_person_gave_a_response_in_two_comparisons_counts_with_the_mean(evaluation: Evaluation) -> None:
    import_rows(evaluation, *({"query_id": "q1", "query": "Why?", "candidate": one, "response": one} for one in "abc"))
    first, second = Comparison.objects.filter(response_a__candidate__name="a").order_by("pk")
    ann, ben = make_human(evaluation, "ann"), make_human(evaluation, "ben")
    make_scored_review(ann, first, {"overall": (5, 1)})
    make_scored_review(ann, second, {"overall": (2, 1)})
    make_scored_review(ben, first, {"overall": (3, 1)})
    (pair,) = counted(scores_on(evaluation)).pairs
    # Ann gave a 5 and 2, 3.5 together, beside ben's 3; b 1 beside 1.
    assert pair.n == 2
    assert pair.mean_difference.value == pytest.approx(0.25)


def test_the_methods_say_how_many_gave_scores_and_by_what_rule(evaluation: Evaluation) -> None:
    six_scored(evaluation, blind=False, judge_first=True)
    told = build_report(evaluation, None, ReportRules(seen=SeenRule.BLIND), parts=(ReportPart.SCORES,)).methods
    assert "1 reviewer entered up to 12 scores of single responses on an aspect" in told
    assert "Only scores recorded before the judge's answer was shown were used." in told
    assert (
        "scores of single responses on"
        not in build_report(evaluation, None, ReportRules(), parts=(ReportPart.WINS,)).methods
    )


# ---- failed calls ------------------------------------------------------------------------------


def test_failed_calls_of_a_judge_of_responses_count_in_its_decision(evaluation: Evaluation) -> None:
    """Of four responses one has a score, one a failed call, one a score and a failed call, and one waits."""
    one, other = make_comparison(evaluation), make_comparison(evaluation)
    for reviewer in (make_human(evaluation, "ann"), make_human(evaluation, "ben")):
        for comparison, scores in ((one, (5, 1)), (other, (4, 2))):
            make_scored_review(reviewer, comparison, {"overall": scores})
    gpt = make_scoring_judge(evaluation, "gpt")
    make_judge_score(gpt, one.response_a, 5)
    make_judge_score(gpt, one.response_b, CallState.UNREADABLE.value)
    make_judge_score(gpt, other.response_a, 4)
    make_judge_score(gpt, other.response_a, CallState.REFUSED.value, sample=1)
    make_judge_score(gpt, other.response_b, CallState.FAILED.value)
    make_judge_score(gpt, other.response_b, CallState.PENDING.value, sample=1)
    made = build_report(evaluation, None, ReportRules()).score_decisions["gpt"]
    failures = made.gauges.failures.number
    assert (failures.value, failures.n) == pytest.approx((1 / 3, 3))
    # Credits 1, 0 and 1 on the three that it scored or failed on.
    assert (made.levels.judge.value, made.n) == pytest.approx((2 / 3, 3))


def test_test_calls_are_no_failures_of_a_judge_of_responses(evaluation: Evaluation) -> None:
    one = make_comparison(evaluation)
    make_scored_review(make_human(evaluation), one, {"overall": (5, 1)})
    gpt = make_scoring_judge(evaluation, "gpt")
    make_judge_score(gpt, one.response_a, 5)
    make_judge_score(gpt, one.response_b, CallState.FAILED.value, is_test=True)
    failures = build_report(evaluation, None, ReportRules()).score_decisions["gpt"].gauges.failures.number
    assert (failures.value, failures.n) == (0, 1)
