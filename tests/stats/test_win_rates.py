import re
from dataclasses import asdict
from json import dumps

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
from scipy.stats import norm

from evaluations.stats.coding import BOTH_BAD, MISSING, TIE, A, B, BoolArray, FloatArray, IntArray
from evaluations.stats.items import Items
from evaluations.stats.length_control import LengthDifferences
from evaluations.stats.matches import Matches
from evaluations.stats.outcomes import JudgedMatches, ReviewedMatches
from evaluations.stats.ppi import SampleWithJudge, ppi_means
from evaluations.stats.simultaneous_intervals import Claim
from evaluations.stats.votes import Votes
from evaluations.stats.win_rates import NOT_JUDGED, NOT_REVIEWED, WinRate, WinRates, estimate_win_rates, ppi_estimate
from evaluations.stats.wins import estimate_wins
from tests.stats.match_items import make_match_items, random_match_items

WORTH = {A: 1.0, B: 0.0, TIE: 0.5, BOTH_BAD: 0.5, MISSING: 0.5}


def found(items: Items, people: list[int] | IntArray, judge: list[int] | IntArray) -> WinRates:
    matches = Matches(items)
    return estimate_win_rates(ReviewedMatches(matches, np.asarray(people)), JudgedMatches(matches, np.asarray(judge)))


def only_pair(items: Items, people: list[int] | IntArray, judge: list[int] | IntArray) -> WinRate:
    return found(items, people, judge).pairs[0].rate


def test_a_tie_and_both_bad_are_half_a_win_each_way() -> None:
    # 0 meets 1 four times: win, tie, both bad, loss: 1 + ½ + ½ + 0 of 4.
    rates = found(make_match_items([0] * 4, [1] * 4), [A, TIE, BOTH_BAD, B], [A, A, A, TIE])
    assert rates.pairs[0].rate.people.value == 0.5
    assert rates.candidates["candidate 0"].judge.value == pytest.approx(3.5 / 4)
    assert rates.candidates["candidate 1"].judge.value == pytest.approx(0.5 / 4)


def test_a_pair_is_one_whichever_of_the_two_is_a() -> None:
    # The first of the pair wins as A, wins as B, and loses as B.
    rates = found(make_match_items([0, 1, 1], [1, 0, 0]), [A, B, A], [A, B, B])
    assert [(one.first, one.second) for one in rates.pairs] == [("candidate 0", "candidate 1")]
    assert rates.pairs[0].rate.people.value == pytest.approx(2 / 3)
    assert rates.pairs[0].rate.judge.value == 1


def test_a_comparison_without_a_verdict_of_the_judge_is_left_out_and_counted() -> None:
    rate = only_pair(make_match_items([0] * 4, [1] * 4), [A] * 4, [A, B, MISSING, MISSING])
    assert (rate.judge.value, rate.judge.n, rate.missing, rate.comparisons) == (0.5, 2, 2, 4)


def partly_judged(judged: int) -> tuple[Matches, IntArray, IntArray]:
    """200 comparisons, 100 of them reviewed, and a judge that has a verdict on the first of them."""
    rng = np.random.default_rng(3)
    truth = rng.choice([A, B], 200, p=[0.7, 0.3])
    judge = np.where(rng.random(200) < 0.8, truth, B)
    people = np.where(rng.permutation(200) < 100, truth, MISSING)
    return Matches(make_match_items([0] * 200, [1] * 200)), people, np.where(np.arange(200) < judged, judge, MISSING)


@pytest.mark.parametrize(("judged", "is_corrected"), [(1, False), (12, False), (189, False), (190, True), (200, True)])
def test_below_95_percent_of_the_comparisons_nothing_is_corrected_or_ranked(judged: int, is_corrected: bool) -> None:
    matches, people, judge = partly_judged(judged)
    everything = np.ones(200, dtype=bool)
    votes = Votes(np.arange(200), np.zeros(200, dtype=int), np.zeros(200, dtype=int), people)
    found = estimate_wins(
        ReviewedMatches(matches, people), votes, LengthDifferences(matches), {"j": (judge, everything)}
    ).judges["j"]
    rate = found.rates.pairs[0].rate
    assert rate.judge.value == np.mean(judge[:judged] == A)
    assert (rate.corrected.value is not None, bool(found.corrected_ranking.standings)) == (is_corrected, is_corrected)
    assert (found.coverage.judged, found.coverage.selected) == (judged, 200)
    if not is_corrected:
        assert f"a verdict on {judged} of 200 comparisons" in (rate.corrected.why or "")
        assert (found.ranking.standings, found.ranking.why) == ({}, rate.corrected.why)
        assert (rate.judge_weight, rate.width_ratio) == (None, None)


def test_a_judge_of_a_random_selection_is_corrected_by_the_reviews_within_it() -> None:
    matches, people, judge = partly_judged(100)
    selected = np.arange(200) < 100
    rate = estimate_win_rates(ReviewedMatches(matches, people), JudgedMatches(matches, judge), selected).pairs[0].rate
    within = only_pair(make_match_items([0] * 100, [1] * 100), people[:100], judge[:100])
    assert rate.corrected.value == within.corrected.value
    assert rate.people.n == 100  # all that people reviewed, wherever the judge was


def test_what_a_judge_left_out_never_counts_as_half_a_win_in_the_correction() -> None:
    # 191 of 200 judged: had the 9 counted as halves, the judge's mean would not be the mean of its verdicts.
    matches, people, judge = partly_judged(191)
    rate = estimate_win_rates(ReviewedMatches(matches, people), JudgedMatches(matches, judge)).pairs[0].rate
    kept = judge != MISSING
    within = only_pair(make_match_items([0] * 191, [1] * 191), people[kept], judge[kept])
    assert (rate.judge.value, rate.corrected.value) == (within.judge.value, within.corrected.value)


def test_what_was_not_drawn_is_left_out_and_counted() -> None:
    # Two wins drawn, one of which was opened by hand too, two that were picked by hand alone, one nobody reviewed.
    matches = Matches(make_match_items([0] * 5, [1] * 5))
    people, undrawn = np.array([A, A, MISSING, MISSING, MISSING]), np.array([False, True, True, True, False])
    rates = estimate_win_rates(ReviewedMatches(matches, people, undrawn), JudgedMatches(matches, np.full(5, A)))
    rate = rates.pairs[0].rate
    assert (rate.people.value, rate.people.n, rate.excluded, rate.comparisons) == (1, 2, 2, 5)
    assert rates.candidates["candidate 1"].excluded == 2


def test_a_comparison_stands_for_as_many_of_its_stratum_as_were_not_reviewed() -> None:
    # Two wins that are all of their stratum, a loss that is one of four: 2 ÷ (1 + 1 + 4).
    items = make_match_items([0] * 6, [1] * 6, stratum=[0, 0, 1, 1, 1, 1])
    rate = only_pair(items, [A, A, B, MISSING, MISSING, MISSING], [A] * 6)
    assert rate.people.value == pytest.approx(1 / 3)


def test_queries_weigh_alike_however_many_comparisons_they_have() -> None:
    # 0 wins nine of nine on one query and loses one of one on the other: (1 + 0) ÷ 2.
    items = make_match_items([0] * 10, [1] * 10, cluster=[0] * 9 + [1], query=[0] * 9 + [1])
    rates = found(items, [A] * 9 + [B], [A] * 9 + [B])
    for rate in (rates.pairs[0].rate, rates.candidates["candidate 0"]):
        assert [rate.people.value, rate.judge.value, rate.corrected.value] == pytest.approx([0.5] * 3)
        assert (rate.people.n, rate.judge.n, rate.comparisons) == (10, 10, 10)


def test_queries_of_one_cluster_each_weigh_as_much_as_any_other() -> None:
    # In one cluster 0 wins three of three on a query and loses on another, alone in the next it wins: (1 + 0 + 1) ÷ 3.
    items = make_match_items([0] * 5, [1] * 5, cluster=[0, 0, 0, 0, 1], query=[7, 4, 7, 7, 2])
    rate = only_pair(items, [A, B, A, A, A], [A, B, A, A, A])
    assert [rate.people.value, rate.judge.value] == pytest.approx([2 / 3] * 2)


def test_a_candidate_with_as_many_comparisons_of_every_query_has_their_mean() -> None:
    items = make_match_items([0, 0, 0, 0], [1, 2, 1, 2], cluster=[0, 0, 1, 1], query=[0, 0, 1, 1])
    assert Matches(items).pairs.share is None
    assert found(items, [A, B, B, B], [A] * 4).candidates["candidate 0"].people.value == 0.25


def test_of_one_stratum_all_weigh_alike_however_few_are_reviewed() -> None:
    reviewed = ReviewedMatches(Matches(make_match_items([0] * 4, [1] * 4)), np.array([A, MISSING, B, MISSING]))
    assert reviewed.weight.tolist() == [1, 1]


def test_strata_that_were_drawn_equally_are_weighed_back_to_the_truth() -> None:
    # 900 easy comparisons of which the candidate wins half, 100 hard ones of which it wins 90 %: .54 of all. 100 are
    # drawn at random, then 30 of each stratum, and 30 of each again.
    stratum = np.repeat([0, 1], [900, 100])
    matches, rng = Matches(make_match_items([0] * 1_000, [1] * 1_000, stratum=stratum)), np.random.default_rng(5)
    truth = np.where(np.arange(1_000) % 10 < np.where(stratum == 0, 5, 9), A, B)
    rates, plain = [], []
    for _ in range(200):
        order = rng.permutation(1_000)
        seen = np.zeros(1_000, dtype=bool)
        seen[order[:100]] = True
        for one in (0, 1):
            seen[order[100:][stratum[order[100:]] == one][:60]] = True
        rates.append(ReviewedMatches(matches, np.where(seen, truth, MISSING)).pairs.means.value[0])
        plain.append(np.mean(truth[seen] == A))
    assert np.mean(plain) > 0.6
    # Within 3 standard errors of √(.9² · .25 / 150 + .1² · .09 / 70) / √200 = .0026.
    assert np.mean(rates) == pytest.approx(0.54, abs=0.008)


def test_nobody_and_no_judge_give_reasons_and_no_numbers() -> None:
    items = make_match_items([0] * 3, [1] * 3)
    unreviewed, unjudged = only_pair(items, [MISSING] * 3, [A] * 3), only_pair(items, [A] * 3, [MISSING] * 3)
    assert (unreviewed.people.why, unreviewed.corrected.why) == (NOT_REVIEWED, NOT_REVIEWED)
    assert (unjudged.judge.why, unjudged.corrected.why, unjudged.people.value) == (NOT_JUDGED, NOT_JUDGED, 1)
    assert (unjudged.judge_weight, unjudged.width_ratio) == (None, None)


def test_a_candidate_that_met_nobody_has_a_reason() -> None:
    rate = found(make_match_items([0, 0], [2, 2]), [A, B], [A, B]).candidates["candidate 1"]
    assert (rate.people.value, rate.judge.value, rate.comparisons) == (None, None, 0)


def test_everything_is_plain_json() -> None:
    items = random_match_items(3, 400, 4, 90)
    rng = np.random.default_rng(3)
    rates = found(items, rng.integers(MISSING, 4, 400), rng.integers(MISSING, 4, 400))
    assert dumps(asdict(rates), allow_nan=False)


def by_hand(
    cluster: IntArray, people: FloatArray, weight: FloatArray, judge: FloatArray, judge_weight: float, share: FloatArray
) -> tuple[float, float]:
    """θ(λ) and its variance, one comparison and one cluster at a time.

    ``share``: of its query. ``weight``: of the query's share, 0 where nobody reviewed.
    """
    weight = weight * share
    total, n = weight.sum(), share.sum()
    of_people, of_judge, of_all = weight @ people / total, weight @ judge / total, share @ judge / n
    value = judge_weight * of_all + of_people - judge_weight * of_judge
    influence: dict[int, float] = {}
    for g, y, w, f, a in zip(cluster, people, weight, judge, share, strict=True):
        residual = w * ((y - of_people) - judge_weight * (f - of_judge)) / total
        influence[g] = influence.get(g, 0) + residual + judge_weight * a * (f - of_all) / n
    labelled = len(np.unique(cluster[weight > 0]))
    return value, sum(one**2 for one in influence.values()) * labelled / (labelled - 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([7, 40, 100_000]), st.sampled_from([0.0, 0.4, 1.0]))
def test_every_mean_and_variance_is_that_of_one_comparison_at_a_time(seed: int, clusters: int, at: float) -> None:
    items, rng = random_match_items(seed, 300, 3, clusters), np.random.default_rng(seed + 1)
    people, judge = rng.integers(MISSING, 4, 300), rng.integers(0, 4, 300)
    matches, reviewed = Matches(items), ReviewedMatches(Matches(items), people)
    judged = JudgedMatches(matches, judge).candidates
    fixed = ppi_means(SampleWithJudge(reviewed.candidates, judged), np.full(3, at))
    for candidate in range(3):
        mine = (items.candidate_a == candidate) | (items.candidate_b == candidate)
        is_b = items.candidate_b[mine] == candidate
        y, f = (np.abs(is_b - np.array([WORTH[int(one)] for one in choice[mine]])) for choice in (people, judge))
        drawn = people[mine] != MISSING
        w = np.where(drawn, 1 / reviewed.probability[mine], 0.0)
        share = 1 / np.array([np.sum(items.query[mine] == one) for one in items.query[mine]])
        value, variance = by_hand(items.cluster[mine], y, w, f, at, share)
        assert fixed.value[candidate] == pytest.approx(value)
        assert fixed.variance[candidate] == pytest.approx(variance)
        assert fixed.differing[candidate] == len(np.unique(items.cluster[mine][drawn & (y != f)]))
        assert judged.means.value[candidate] == pytest.approx(share @ f / share.sum())
        g = len(np.unique(items.cluster[mine]))
        alone = by_hand(items.cluster[mine], f, np.ones(len(f)), f, 0, share)
        assert (judged.means.clusters[candidate], judged.means.variance[candidate]) == (g, pytest.approx(alone[1]))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_no_other_judge_weight_gives_a_smaller_variance(seed: int) -> None:
    items, rng = random_match_items(seed, 300, 2, 60), np.random.default_rng(seed)
    people = rng.integers(MISSING, 4, 300)
    judge = np.where((rng.random(300) < 0.5) & (people != MISSING), people, rng.integers(0, 4, 300))
    reviewed, matches = ReviewedMatches(Matches(items), people), Matches(items)
    judged = JudgedMatches(matches, judge).pairs
    best = ppi_means(SampleWithJudge(reviewed.pairs, judged))
    others = [
        ppi_means(SampleWithJudge(reviewed.pairs, judged), np.array([at])).variance[0] for at in np.linspace(0, 1, 21)
    ]
    assert best.variance[0] <= min(others) + 1e-12
    assert 0 <= best.judge_weight[0] <= 1


@pytest.mark.parametrize("seed", [1, 2])
def test_people_alone_have_the_mean_and_the_robust_error_of_statsmodels(seed: int) -> None:
    items, rng = random_match_items(seed, 800, 2, 120), np.random.default_rng(seed)
    people = rng.choice([A, B, TIE], 800, p=[0.5, 0.3, 0.2])
    people = np.where(rng.random(800) < 2 / 3, people, MISSING)
    rate = only_pair(items, people, people)
    kept = people != MISSING
    of_query = np.array([np.sum(items.query == one) for one in items.query])
    weight = 1 / ReviewedMatches(Matches(items), people).probability / of_query
    y = np.array([WORTH[one] for one in people])
    y = np.where(items.candidate_a > items.candidate_b, 1 - y, y)[kept]
    fit = sm.WLS(y, np.ones(len(y)), weight[kept]).fit()
    robust = fit.get_robustcov_results("cluster", groups=items.cluster[kept], use_t=True)
    low, high = robust.conf_int()[0]
    # statsmodels multiplies by (N − 1)/(N − 1) for one coefficient, and takes t with G − 1 degrees too.
    assert rate.people.value == pytest.approx(robust.params[0])
    assert rate.people.ci95 == pytest.approx((low, high))


def drawn_from_two_thousand(seed: int) -> tuple[Items, IntArray, IntArray, BoolArray]:
    """2,000 comparisons, 300 of them reviewed, by a judge that is right three times of four and else says A."""
    rng = np.random.default_rng(seed)
    truth = rng.choice([A, B, TIE], 2_000, p=[0.5, 0.4, 0.1])
    judge = np.where(rng.random(2_000) < 0.25, A, truth)
    reviewed = rng.permutation(2_000) < 300
    return make_match_items([0] * 2_000, [1] * 2_000), truth, judge, reviewed


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_equal_weights_and_lone_comparisons_it_is_the_interval_of_ppi_py(seed: int) -> None:
    items, truth, judge, reviewed = drawn_from_two_thousand(seed)
    rate = only_pair(items, np.where(reviewed, truth, MISSING), judge)
    y, f = (np.array([WORTH[one] for one in choice]) for choice in (truth, judge))
    # Their judge speaks of the others only, ours of all: λ of all is λ · 1,700/2,000 of the others.
    assert rate.judge_weight is not None
    theirs = rate.judge_weight * 1_700 / 2_000
    parts = y[reviewed], f[reviewed], f[~reviewed]
    assert rate.corrected.value == pytest.approx(ppi_mean_pointestimate(*parts, lam=theirs)[0])
    low, high = (float(one[0]) for one in ppi_mean_ci(*parts, alpha=0.05, lam=theirs))
    assert rate.corrected.ci95 is not None
    # They divide by n, and take the normal quantile in place of t: 1.968/1.960 · √(300/299).
    width = (rate.corrected.ci95[1] - rate.corrected.ci95[0]) / (high - low)
    assert width == pytest.approx(1.0057, abs=2e-3)


def test_the_judge_weight_is_that_of_ppi_py() -> None:
    items, truth, judge, reviewed = drawn_from_two_thousand(7)
    rate = only_pair(items, np.where(reviewed, truth, MISSING), judge)
    y, f = (np.array([WORTH[one] for one in choice]) for choice in (truth, judge))
    parts = y[reviewed], f[reviewed], f[~reviewed]
    assert rate.corrected.value == pytest.approx(ppi_mean_pointestimate(*parts)[0], abs=1e-3)


def test_where_people_reviewed_everything_there_is_nothing_to_correct_with() -> None:
    _, truth, judge, _ = drawn_from_two_thousand(1)
    rate = only_pair(make_match_items([0] * 2_000, [1] * 2_000), truth, judge)
    assert (rate.corrected.value, rate.corrected.ci95) == (rate.people.value, rate.people.ci95)
    assert (rate.judge_weight, rate.width_ratio) == (0, 1)


def test_a_good_judge_makes_the_interval_narrower_and_a_useless_one_leaves_it() -> None:
    items, truth, judge, reviewed = drawn_from_two_thousand(4)
    people = np.where(reviewed, truth, MISSING)
    good, useless = only_pair(items, people, judge), only_pair(items, people, np.roll(judge, 1))
    # By what people and judge have in common, as far as it is not reviewed already: √(1 − ρ² (1 − 300/2,000)).
    y, f = (np.array([WORTH[one] for one in choice[reviewed]]) for choice in (truth, judge))
    assert good.width_ratio == pytest.approx(np.sqrt(1 - np.corrcoef(y, f)[0, 1] ** 2 * 0.85), abs=0.01)
    assert useless.width_ratio == pytest.approx(1, abs=0.03)


def test_a_judge_that_hardly_differs_on_what_was_reviewed_has_no_corrected_interval() -> None:
    # Nine differences on 300: the variance of nine is hardly a variance.
    items, truth, _, reviewed = drawn_from_two_thousand(5)
    judge = truth.copy()
    judge[np.flatnonzero(reviewed)[:9]] = BOTH_BAD
    rate = only_pair(items, np.where(reviewed, truth, MISSING), judge)
    assert rate.corrected.ci95 is None
    assert re.search(r"for a corrected CI \([89] < 10\)", rate.corrected.ci95_why or "")
    assert (rate.people.ci95 is not None, rate.width_ratio) == (True, None)


def test_few_that_differ_have_wilsons_interval_and_never_one_of_no_width() -> None:
    rate = only_pair(make_match_items([0] * 30, [1] * 30), [A] * 30, [A] * 29 + [B])
    assert rate.people.ci95 is not None
    assert 0.8 < rate.people.ci95[0] < rate.people.ci95[1] == 1
    assert "Wilson" in (rate.people.ci95_rule or "")


def test_with_one_reviewed_cluster_the_judge_corrects_nothing() -> None:
    # The sums of squares are 0 but for rounding, which may leave them below 0.
    for seed in range(50):
        rng = np.random.default_rng(seed)
        people = rng.choice([A, B, TIE], 7)
        rates = found(
            make_match_items([0] * 7, [1] * 7, np.zeros(7, dtype=np.int64)), people, rng.choice([A, B, TIE], 7)
        )
        rate = rates.pairs[0].rate
        assert (rate.judge_weight, rate.corrected.value, rate.corrected.ci95) == (0, rate.people.value, None)
        assert dumps(asdict(rates), allow_nan=False)


def test_a_correction_ends_at_one() -> None:
    # People: 44 wins of 50. The judge denies 40 of the 50 that people saw, by chance, and affirms all others.
    people = np.array([A] * 44 + [B] * 6 + [MISSING] * 950)
    judge = np.array([A] * 10 + [B] * 40 + [A] * 950)
    items = make_match_items([0] * 1_000, [1] * 1_000)
    matches = Matches(items)
    correction = ppi_means(
        SampleWithJudge(ReviewedMatches(matches, people).pairs, JudgedMatches(matches, judge).pairs), np.ones(1)
    )
    assert correction.value[0] > 1
    number = ppi_estimate(correction, ReviewedMatches(matches, people).pairs.means, 0)
    assert number.value == 1
    assert number.ci95_why is not None or (number.ci95 or (0, 0))[1] == 1


def test_few_clusters_have_wilsons_interval() -> None:
    people = np.random.default_rng(1).choice([A, B], 200)
    rate = only_pair(make_match_items([0] * 200, [1] * 200, np.arange(200) % 12), people, people)
    for number in (rate.people, rate.judge, rate.corrected):
        assert (number.ci95_rule or "").startswith("Wilson, 200 ÷ design effect")


def test_comparisons_of_one_query_count_together() -> None:
    # The same answers, once as 200 queries and once as 40 whose five comparisons all say the same.
    truth = np.repeat(np.random.default_rng(2).choice([A, B], 40), 5)
    widths = []
    for cluster in (np.arange(200), np.repeat(np.arange(40), 5)):
        interval = only_pair(make_match_items([0] * 200, [1] * 200, cluster), truth, truth).people.ci95
        assert interval is not None
        widths.append(interval[1] - interval[0])
    assert widths[1] / widths[0] == pytest.approx(np.sqrt(5), rel=0.05)


def test_people_and_the_correction_cover_a_planted_truth_and_the_judge_alone_does_not() -> None:
    # The candidate wins .45 + ½ · .1 = .50; a judge that says A in one case of four whatever is true sees .625.
    # 300 studies of 600 comparisons in 200 clusters of three that lean alike, 120 of them reviewed.
    rng, cluster, held = np.random.default_rng(11), np.repeat(np.arange(200), 3), np.zeros(3)
    matches = Matches(make_match_items([0] * 600, [1] * 600, cluster))
    for _ in range(300):
        leaning = rng.uniform(-0.2, 0.2, 200)[cluster]
        drawn = rng.random(600)
        truth = np.where(drawn < 0.45 + leaning, A, np.where(drawn < 0.55 + leaning, TIE, B))
        judge = np.where(rng.random(600) < 0.25, A, truth)
        people = np.where(rng.permutation(600) < 120, truth, MISSING)
        rate = estimate_win_rates(ReviewedMatches(matches, people), JudgedMatches(matches, judge)).pairs[0].rate
        intervals = [one.ci95 or (0, 1) for one in (rate.people, rate.judge, rate.corrected)]
        held += [low <= 0.5 <= high for low, high in intervals]
    of_people, of_judge, of_correction = held / 300
    assert 0.92 <= of_people <= 0.98
    assert 0.92 <= of_correction <= 0.98
    assert of_judge < 0.05


def test_the_quantile_is_that_of_t() -> None:
    rate = only_pair(make_match_items([0] * 41, [1] * 41), [A, B] * 20 + [TIE], [A] * 41)
    assert rate.people.ci95 is not None
    spread = np.array([1.0, 0.0] * 20 + [0.5]).std(ddof=1) / np.sqrt(41)
    assert rate.people.ci95[1] - 0.5 > norm.ppf(0.975) * spread
    assert rate.people.ci95[1] - 0.5 == pytest.approx(2.0210754 * spread)


def test_a_judge_is_said_to_err_only_where_it_differs_on_the_same_comparisons() -> None:
    rng = np.random.default_rng(6)
    people = rng.choice([A, B], 600)
    people[300:] = MISSING
    # It gives A a tenth more of the comparisons that people reviewed; what it says of the others does not matter.
    judge = np.where((people == B) & (rng.random(600) < 0.2), A, people)
    judge[300:] = rng.choice([A, B], 300)
    items = make_match_items([0] * 600, [1] * 600)
    matches = Matches(items)
    reviewed, judgement = ReviewedMatches(matches, people), JudgedMatches(matches, judge)
    found = estimate_win_rates(reviewed, judgement, claims=12).candidates
    assert [rate.claim for rate in found.values()] == [Claim.ABOVE, Claim.BELOW]
    lead, variance = SampleWithJudge(reviewed.candidates, judgement.candidates).judge_lead
    difference = (judge[:300] == A).astype(float) - (people[:300] == A)
    assert lead.tolist() == pytest.approx([difference.mean(), -difference.mean()])
    assert variance[0] == pytest.approx(difference.var(ddof=1) / 300)
    # One that agrees but for chance is said to err by nothing, and so is one of whom too little is known.
    noise = np.where(rng.random(600) < 0.2, rng.choice([A, B], 600), np.where(people == MISSING, A, people))
    alike = estimate_win_rates(reviewed, JudgedMatches(matches, noise), claims=12).candidates
    assert {rate.claim for rate in alike.values()} == {Claim.NONE}
    few = np.where(np.arange(600) < 30, people, MISSING)
    hardly = estimate_win_rates(ReviewedMatches(matches, few), judgement, claims=12).candidates
    assert {rate.claim for rate in hardly.values()} == {Claim.NONE}
    # Nor is one that has no verdict on more than 5 % of what it was to judge.
    partly = JudgedMatches(matches, np.where(np.arange(600) < 560, judge, MISSING))
    assert {rate.claim for rate in estimate_win_rates(reviewed, partly, claims=12).candidates.values()} == {Claim.NONE}
    within = estimate_win_rates(reviewed, partly, np.arange(600) < 560, claims=12).candidates
    assert [rate.claim for rate in within.values()] == [Claim.ABOVE, Claim.BELOW]
