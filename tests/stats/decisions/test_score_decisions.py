"""Decisions on judges that score single responses: credits by hand, and the rule on scores."""

import numpy as np
import pytest

from evaluations.domain.decisions import DEFAULT_BARS, Outcome
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
    made = judge_score_credits(np.array([5.0, 4.0, np.nan, 1.0]), reviewers, scale)
    assert made.item.tolist() == [0, 1]
    # 5 with 1 and 5: 0 and 1. 4 with 3 and 5: ¾ and ¾.
    assert made.judge.tolist() == [0.5, 0.75]
    assert made.answers == ("1", "2", "3", "5")
    # Always 3 with 1, 5, 3, 5: ½, ½, 1, ½; always 5: 0, 1, ½, 1.
    assert made.constant.mean(axis=1).tolist() == [pytest.approx(x) for x in (0.375, 0.5, 0.625, 0.625)]
    assert made.score.tolist() == [0.5, 0.75]


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


def test_without_two_reviews_there_is_nothing_to_decide() -> None:
    alone = aspect_scores(people_scores([1, 2, 5]), 3, gpt=np.array([1.0, 2, 5]))
    made = decide_score_judges({"quality": alone}, DEFAULT_BARS, 1)["gpt"]
    assert made.outcome is Outcome.NOT_ENOUGH_DATA
    assert made.sentence == "No response has the judge’s score and two reviews yet."
    assert made.headline == "Not enough data (needs about 100 more responses with two reviews)"


def test_no_scores_make_no_decisions() -> None:
    assert decide_score_judges({}, DEFAULT_BARS, 0) == {}
