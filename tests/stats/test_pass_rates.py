"""Pass rates: what passes, whose result is the reference, and how a judge agrees by class."""

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from evaluations.stats.class_rates import PassConfusion, class_rates
from evaluations.stats.coding import FloatArray
from evaluations.stats.corrected_means import ResponseValues
from evaluations.stats.pass_rates import PassRule, pass_rates, reference_passes
from evaluations.stats.rank_correlation import CONSTANT
from evaluations.stats.rogan_gladen import NOT_INFORMATIVE
from evaluations.stats.score_reliability import PersonScores

GAP = np.nan
BINARY = PassRule(1.0, worse=0.0)


def scores_of(*by_response: tuple[float, ...]) -> PersonScores:
    rows = [(unit, rater, value) for unit, scores in enumerate(by_response) for rater, value in enumerate(scores)]
    unit, rater, value = zip(*rows, strict=True)
    return PersonScores(np.array(unit), np.array(rater), np.array(value, dtype=float))


def test_a_response_passes_if_more_than_half_of_its_reviewers_pass_it() -> None:
    found = reference_passes(scores_of((1, 1, 0), (0, 1, 0), (1, 0), (1,)), BINARY, 5)
    assert found.value.tolist()[:2] + found.value.tolist()[3:4] == [1, 0, 1]
    assert np.isnan(found.value[[2, 4]]).all()
    assert found.split.tolist() == [False, False, True, False, False]


def test_the_threshold_counts_scores_not_their_mean() -> None:
    # From 4 on: 5, 5, 1 passes twice of three though its mean is 3.67; 4, 3, 3 passes once.
    found = reference_passes(scores_of((5, 5, 1), (4, 3, 3)), PassRule(4.0), 2)
    assert found.value.tolist() == [1, 0]


def test_where_lower_is_better_a_score_passes_up_to_the_threshold() -> None:
    rule = PassRule(2.0, lower_is_better=True)
    passed = rule.passes(np.array([1.0, 2.0, 3.0, GAP]))
    assert passed.tolist()[:3] == [1, 1, 0]
    assert np.isnan(passed[3])


def test_of_several_scores_of_two_more_than_half_have_to_pass() -> None:
    # Means over a judge's samples: two of three, one of two, none.
    assert BINARY.passes(np.array([2 / 3, 0.5, 0.0])).tolist() == [1, 0, 0]
    assert PassRule(1.0, lower_is_better=True, worse=2.0).passes(np.array([4 / 3, 1.5, 2.0])).tolist() == [1, 0, 0]


def counted(both: int, judge_only: int, reviewers_only: int, neither: int) -> tuple[FloatArray, FloatArray]:
    counts = (both, judge_only, reviewers_only, neither)
    return np.repeat([1.0, 1, 0, 0], counts), np.repeat([1.0, 0, 1, 0], counts)


def test_rates_by_class_have_wilsons_interval() -> None:
    judge, reference = counted(45, 12, 15, 48)
    found = class_rates(judge, reference, np.arange(120))
    assert found.confusion == PassConfusion(45, 12, 15, 48)
    assert (found.true_positive_rate.value, found.true_positive_rate.n) == (0.75, 60)
    assert (found.true_negative_rate.value, found.true_negative_rate.n) == (0.8, 60)
    assert found.accuracy.value == pytest.approx(93 / 120)
    assert found.informedness.value == pytest.approx(0.55)
    # t(59) in place of 1.96: 2.1 % wider.
    low, high = proportion_confint(45, 60, method="wilson")
    assert found.true_positive_rate.ci95 is not None
    width = found.true_positive_rate.ci95[1] - found.true_positive_rate.ci95[0]
    assert width / (high - low) == pytest.approx(2.001 / 1.96, abs=0.02)
    assert found.informedness.ci95 is not None
    assert found.informedness.ci95[0] > 0.3


def test_clusters_of_equal_responses_count_once_each() -> None:
    judge, reference = (np.repeat(side, 4) for side in counted(15, 4, 5, 16))
    alone = class_rates(*counted(15, 4, 5, 16), np.arange(40)).true_positive_rate
    found = class_rates(judge, reference, np.arange(160) // 4).true_positive_rate
    assert (found.value, found.n, alone.n) == (0.75, 80, 20)
    assert found.ci95 == pytest.approx(alone.ci95, abs=0.01)


def test_a_judge_that_passes_everything_has_no_informedness() -> None:
    found = class_rates(*counted(60, 40, 0, 0), np.arange(100))
    assert (found.true_positive_rate.value, found.true_negative_rate.value) == (1, 0)
    assert (found.informedness.value, found.informedness.why) == (None, CONSTANT)


def test_an_empty_class_says_so() -> None:
    found = class_rates(*counted(30, 0, 10, 0), np.arange(40))
    assert found.true_negative_rate.why == "No response that the judge scored fails by reviewers."
    assert found.informedness.why == found.true_negative_rate.why


def test_rates_of_models_are_put_together() -> None:
    # Model a: 60 responses, 40 of them reviewed by one person; model b alike, where the judge passes everything.
    rng = np.random.default_rng(2)
    quality = rng.integers(0, 2, 120).astype(float)
    candidate = np.repeat([0, 1], 60)
    judge = np.where(candidate == 1, 1.0, np.where(rng.random(120) < 0.85, quality, 1 - quality))
    reviewed = np.flatnonzero(np.arange(120) % 60 < 40)
    each = PersonScores(reviewed, np.zeros(80, dtype=np.int64), quality[reviewed])
    reference = reference_passes(each, BINARY, 120)
    cluster = np.arange(120) % 60
    values = ResponseValues(reference.value, {"j": judge}, candidate, cluster, ("a", "b"))
    found = pass_rates(reference, {"j": judge}, BINARY, values)
    first, second = found.candidates["a"], found.candidates["b"]
    assert (first.people.n, first.responses, first.judges["j"].judge.n) == (40, 60, 60)
    assert first.people.value == pytest.approx(quality[:40].mean())
    assert first.judges["j"].rogan_gladen.value is not None
    assert second.judges["j"].rogan_gladen.why == NOT_INFORMATIVE
    assert second.judges["j"].corrected.judge_weight == 0
    assert found.judges["j"].confusion == PassConfusion(
        *(
            sum(a.judges["j"].classes.confusion.__dict__[name] for a in (first, second))
            for name in PassConfusion.__dataclass_fields__
        )
    )
    (difference,) = found.differences
    assert difference.people.value == pytest.approx(quality[:40].mean() - quality[60:100].mean())
    assert (found.pass_from, found.is_stated, found.split) == (1.0, False, 0)
