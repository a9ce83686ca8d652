"""Decisions on judges that score single responses: credits by hand, and the rule on scores."""

from dataclasses import replace

import numpy as np
import pytest

from evaluations.domain.decisions import DEFAULT_BARS, Outcome
from evaluations.stats.decisions.gauges import NOT_OF_SCORES
from evaluations.stats.decisions.score_credits import (
    MOST_ANSWERS,
    Scale,
    judge_score_credits,
    reviewer_score_credits,
    score_scale,
)
from evaluations.stats.decisions.score_judges import decide_score_judges
from evaluations.stats.score_report import AspectScores
from tests.stats.decisions.study import NO_SCORES, aspect_scores, people_scores


def test_credits_are_what_the_distance_leaves_of_the_scale() -> None:
    """On 1–5: 1 and 5 agree 0, 3 and 5 agree ½, 2 and 2 agree 1. The last response has one score."""
    people = people_scores([1, 3, 2, 4], [5, 5, 2, np.nan])
    scale = score_scale(people)
    assert scale == Scale(1, 5)
    reviewers = reviewer_score_credits(people, scale)
    assert reviewers.item.tolist() == [0, 1, 2]
    assert reviewers.reviewer.tolist() == [0, 0.5, 1]
    made = judge_score_credits(np.array([5.0, 4.0, np.nan, 1.0]), np.zeros(4, dtype=bool), reviewers, scale)
    assert made.item.tolist() == [0, 1]
    # 5 with 1 and 5: 0 and 1. 4 with 3 and 5: ¾ and ¾.
    assert made.judge.tolist() == [0.5, 0.75]
    assert made.answers == ("1", "2", "3", "5")
    # Always 3 with 1, 5, 3, 5: ½, ½, 1, ½; always 5: 0, 1, ½, 1.
    assert made.constant.mean(axis=1).tolist() == [pytest.approx(x) for x in (0.375, 0.5, 0.625, 0.625)]
    assert made.score.tolist() == [0.5, 0.75]


def test_a_failed_call_earns_nothing_and_is_no_score() -> None:
    """The first response is scored 5 beside 1 and 5; the third failed beside 2 and 2; the second was not asked."""
    people = people_scores([1, 3, 2], [5, 5, 2])
    reviewers = reviewer_score_credits(people, Scale(1, 5))
    failed = np.array([False, False, True])
    made = judge_score_credits(np.array([5.0, np.nan, np.nan]), failed, reviewers, Scale(1, 5))
    assert made.item.tolist() == [0, 2]
    assert made.judge.tolist() == [0.5, 0]
    assert made.judge_score[0] == 1
    assert np.isnan(made.judge_score[1])


def test_three_reviewers_are_averaged_over_pairs() -> None:
    people = people_scores([0], [1], [1])
    made = reviewer_score_credits(people, Scale(0, 1))
    assert made.reviewer.tolist() == [pytest.approx(1 / 3)]


def test_scores_of_many_values_try_quantiles() -> None:
    values = np.random.default_rng(1).random(200)
    people = people_scores(values.tolist(), values[::-1].tolist())
    scale = score_scale(people)
    assert scale is not None
    assert len(reviewer_score_credits(people, scale).answers) == MOST_ANSWERS


def test_constant_scores_have_no_scale() -> None:
    assert score_scale(people_scores([3, 3], [3, 3])) is None
    assert score_scale(NO_SCORES) is None


def scored_study(items: int, judge_error: float, seed: int = 5) -> AspectScores:
    """Truth on 1–5; reviewers are off by 1 at most in three of ten scores, the judge in ``judge_error`` by up to 4."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 6, items)
    off = rng.choice([-1, 0, 1], size=(2, items), p=(0.15, 0.7, 0.15))
    people = np.clip(truth + off, 1, 5).astype(float)
    like = np.clip(truth + rng.choice([-1, 0, 1], size=items, p=(0.15, 0.7, 0.15)), 1, 5)
    judge = np.where(rng.random(items) < judge_error, rng.integers(1, 6, items), like).astype(float)
    return aspect_scores(people_scores(*people.tolist()), items, gpt=judge, always=np.full(items, 3.0))


def test_a_judge_that_scores_like_a_reviewer_can_stand_in_and_a_constant_one_cannot() -> None:
    made = decide_score_judges({"quality": scored_study(200, 0.0)}, DEFAULT_BARS, 2)
    assert made["gpt"].outcome is Outcome.STAND_IN
    assert made["gpt"].scale == "1–5"
    assert made["gpt"].sentence.startswith("Its scores differ from a reviewer’s by ")
    assert made["always"].outcome is Outcome.NOT_RELIABLE


def test_a_judge_that_guesses_often_is_not_reliable() -> None:
    made = decide_score_judges({"quality": scored_study(200, 0.8)}, DEFAULT_BARS, 2)
    assert made["gpt"].outcome is Outcome.NOT_RELIABLE


def study_with_failures(failures: int) -> AspectScores:
    """A judge of 200 responses that scores like a reviewer; so many of its calls failed."""
    study = scored_study(200, 0.0)
    failed = np.arange(200) < failures
    judges = {"gpt": np.where(failed, np.nan, study.judges["gpt"])}
    return replace(study, judges=judges, failed={"gpt": failed})


def test_failures_that_are_shown_to_be_above_their_bar_make_a_judge_of_responses_not_reliable() -> None:
    # Wilson's lower bound with t(199) = 1.972 of 12 in 200 is .034, below the bar of .05; of 24 in 200 it is .082.
    few = decide_score_judges({"quality": study_with_failures(12)}, DEFAULT_BARS, 1)["gpt"]
    assert (few.gauges.failures.number.value, few.gauges.failures.number.n) == pytest.approx((0.06, 200))
    assert few.gauges.failures.number.ci95 is not None
    assert few.gauges.failures.number.ci95[0] == pytest.approx(0.034, abs=1e-3)
    assert not few.gauges.failures.exceeds
    many = decide_score_judges({"quality": study_with_failures(24)}, DEFAULT_BARS, 1)["gpt"]
    assert many.gauges.failures.number.ci95 is not None
    assert many.gauges.failures.number.ci95[0] == pytest.approx(0.082, abs=1e-3)
    assert many.outcome is Outcome.NOT_RELIABLE
    assert "Calls failed on 12% of responses (limit 5%)." in many.sentence
    # They earn nothing: J is 12 % below what it is without failures, give or take which responses they are.
    whole = decide_score_judges({"quality": scored_study(200, 0.0)}, DEFAULT_BARS, 1)["gpt"].levels.judge.value
    assert whole is not None
    assert many.levels.judge.value == pytest.approx(0.88 * whole, abs=0.01)
    assert many.n == 200


def test_a_response_failed_if_a_call_on_any_aspect_did_and_other_gauges_have_no_number() -> None:
    clear, short = study_with_failures(2), study_with_failures(3)
    made = decide_score_judges({"clear": clear, "short": short}, DEFAULT_BARS, 1)["gpt"]
    assert made.gauges.failures.number.value == pytest.approx(3 / 200)
    for gauge in (made.gauges.inconsistency, made.gauges.position, made.gauges.length, made.gauges.own_family):
        assert gauge.number.why == NOT_OF_SCORES


def test_a_threshold_of_the_reader_changes_no_decision_and_the_decision_says_so() -> None:
    study = {"quality": scored_study(200, 0.0)}
    plain = decide_score_judges(study, DEFAULT_BARS, 1)["gpt"]
    with_threshold = decide_score_judges(study, DEFAULT_BARS, 1, pass_from=4.0)["gpt"]
    assert (with_threshold.outcome, with_threshold.levels) == (plain.outcome, plain.levels)
    assert with_threshold.sentence == f"{plain.sentence} Decided on the scores, not on the pass threshold of 4."


def test_without_two_reviews_there_is_nothing_to_decide() -> None:
    alone = aspect_scores(people_scores([1, 2, 5]), 3, gpt=np.array([1.0, 2, 5]))
    made = decide_score_judges({"quality": alone}, DEFAULT_BARS, 1)["gpt"]
    assert made.outcome is Outcome.NOT_ENOUGH_DATA
    assert made.sentence == "No response has the judge’s score and two reviews yet."
    assert made.headline == "Not enough data (needs about 100 more responses with two reviews)"


def test_no_scores_make_no_decisions() -> None:
    assert decide_score_judges({}, DEFAULT_BARS, 0) == {}
