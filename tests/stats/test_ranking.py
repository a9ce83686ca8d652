from dataclasses import asdict, replace
from json import dumps

import numpy as np
import pytest
import statsmodels.api as sm
from ppi_py import ppi_logistic_pointestimate

from evaluations.stats.bradley_terry import bradley_terry_scores
from evaluations.stats.coding import MISSING, TIE, A, B, FloatArray, IntArray
from evaluations.stats.corrected_ranking import RankingCorrection, rank_by_corrected_judge
from evaluations.stats.items import Items
from evaluations.stats.matches import Matches
from evaluations.stats.outcomes import JudgedMatches, ReviewedMatches
from evaluations.stats.ranking import (
    NOTHING_SAID,
    Ranking,
    bootstrap_scores,
    competition_ranks,
    fit_scores,
    linearise_scores,
    rank_candidates,
    sandwich_covariance,
    score_estimates,
)
from evaluations.stats.ranking_evidence import ScoreResiduals
from evaluations.stats.win_rates import NOT_JUDGED, estimate_win_rates
from tests.stats.match_items import make_match_items, random_match_items

STRENGTHS = np.array([0.8, 0.3, -0.2, -0.9])


def everyone(queries: int, seed: int) -> tuple[Items, IntArray]:
    """Every two candidates on every query, and who won by their strengths, with leanings that a query's pairs share."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(len(STRENGTHS), 1)
    cluster = np.repeat(np.arange(queries), len(first))
    a, b = np.tile(first, queries), np.tile(second, queries)
    leaning = rng.normal(size=(queries, len(STRENGTHS))) * 0.5
    chance = 1 / (1 + np.exp(-(STRENGTHS[a] - STRENGTHS[b] + leaning[cluster, a] - leaning[cluster, b])))
    tied = rng.random(len(a)) < 0.1
    return make_match_items(a, b, cluster), np.where(tied, TIE, np.where(rng.random(len(a)) < chance, A, B))


def values(ranking: Ranking) -> FloatArray:
    """The scores in the candidates' order."""
    return np.array([ranking.standings[name].score.value for name in sorted(ranking.standings)])


def test_two_candidates_stand_half_the_log_odds_from_the_middle() -> None:
    # 30 of 40: log 3 apart; against the middle each has 1 ÷ (1 + 1/√3).
    people = np.array([A] * 28 + [TIE] * 4 + [B] * 8)
    ranking = rank_candidates(ReviewedMatches(Matches(make_match_items([0] * 40, [1] * 40)), people))
    best = ranking.standings["candidate 0"]
    assert list(ranking.standings) == ["candidate 0", "candidate 1"]
    assert best.score.value == pytest.approx(np.log(3) / 2)
    assert best.win_probability.value == pytest.approx(1 / (1 + 3**-0.5))
    assert (best.rank, best.ranks, ranking.standings["candidate 1"].rank) == (1, (1, 1), 2)
    assert (best.score.n, ranking.comparisons, ranking.clusters) == (40, 40, 40)


def test_equal_candidates_share_a_rank() -> None:
    people = np.array([A, B] * 30)
    ranking = rank_candidates(ReviewedMatches(Matches(make_match_items([0] * 60, [1] * 60)), people))
    assert [one.rank for one in ranking.standings.values()] == [1, 1]
    assert [one.ranks for one in ranking.standings.values()] == [(1, 2), (1, 2)]


@pytest.mark.parametrize("wins", [(14, 11, 2, 4, 4, 2), (10, 7, 17, 3, 8, 4), (17, 12, 5, 2, 17, 8)])
def test_who_wins_as_often_in_a_round_robin_has_the_same_rank_to_the_last_digit(wins: tuple[int, ...]) -> None:
    """``wins``: of 20, by the first of 01, 02, 03, 12, 13 and 23. Candidates 0 and 2 win as often."""
    first, second = np.triu_indices(4, 1)
    won = np.bincount(first, wins, 4) + np.bincount(second, 20 - np.array(wins), 4)
    assert won[0] == won[2]
    people = np.concatenate([[A] * one + [B] * (20 - one) for one in wins])
    ranking = rank_candidates(
        ReviewedMatches(Matches(make_match_items(np.repeat(first, 20), np.repeat(second, 20))), people)
    )
    ranks = [ranking.standings[f"candidate {one}"].rank for one in range(4)]
    assert ranks == [1 + int((won > one).sum()) for one in won]


def test_a_missing_verdict_of_a_judge_is_no_tie_here() -> None:
    choice = np.array([A] * 30 + [B] * 10 + [MISSING] * 40)
    ranking = rank_candidates(JudgedMatches(Matches(make_match_items([0] * 80, [1] * 80)), choice))
    assert ranking.standings["candidate 0"].score.value == pytest.approx(np.log(3) / 2)
    assert (ranking.comparisons, ranking.clusters) == (40, 40)


def test_people_stand_for_as_many_as_their_weight_says() -> None:
    # 30 wins that are all of their stratum, 10 losses that are a third of theirs: 30 against 30.
    items = make_match_items([0] * 60, [1] * 60, stratum=[0] * 30 + [1] * 30)
    ranking = rank_candidates(ReviewedMatches(Matches(items), np.array([A] * 30 + [B] * 10 + [MISSING] * 20)))
    assert ranking.standings["candidate 0"].score.value == pytest.approx(0)


def test_a_candidate_in_no_comparison_is_no_obstacle_but_one_that_nobody_reviewed_is() -> None:
    items = make_match_items([0] * 60, [2] * 60)
    assert len(rank_candidates(ReviewedMatches(Matches(items), np.array([A, B] * 30))).standings) == 2
    items = make_match_items([0] * 60, [1] * 40 + [2] * 20)
    ranking = rank_candidates(ReviewedMatches(Matches(items), np.array([A, B] * 20 + [MISSING] * 20)))
    assert ranking.why == ("Bradley–Terry undefined: no comparisons connect candidate 0, candidate 1 with candidate 2.")
    assert ranking.standings == {}


def test_nobody_at_all_is_a_reason() -> None:
    matches = Matches(make_match_items([0] * 3, [1] * 3))
    assert rank_candidates(ReviewedMatches(matches, np.full(3, MISSING))).why == NOTHING_SAID
    empty = Matches(make_match_items([], [], names=2))
    assert rank_candidates(JudgedMatches(empty, np.zeros(0, dtype=np.int64))).why == NOTHING_SAID


def test_resamples_in_which_someone_always_wins_are_counted() -> None:
    # 0 and 1 win half of what they have with each other, 2 loses to 0 but for three.
    items = make_match_items([0] * 120, [1] * 60 + [2] * 60)
    ranking = rank_candidates(ReviewedMatches(Matches(items), np.array([A, B] * 30 + [A] * 57 + [B] * 3)))
    # None of the three is drawn with probability exp(−3) = .05: of 2,000 about 100.
    rule = ranking.standings["candidate 0"].score.ci95_rule or ""
    undefined = int(rule.split(", ")[-1].split(" ")[0])
    assert 60 < undefined < 140
    of_last = ranking.standings["candidate 2"]
    assert (of_last.score.ci95, of_last.win_probability.ci95, of_last.ranks) == (None, None, None)
    assert (of_last.score.ci95_why or "").startswith("Too few clusters with a disagreement for a CI (3 < 10)")


@pytest.mark.parametrize("clusters", [100, 2_500])
def test_who_hardly_ever_loses_has_a_score_without_an_interval(clusters: int) -> None:
    people = np.array([B] * 9 + [A] * (clusters - 9))
    matches = Matches(make_match_items([0] * clusters, [1] * clusters))
    for ranking in (rank_candidates(ReviewedMatches(matches, people)), rank_candidates(JudgedMatches(matches, people))):
        for one in ranking.standings.values():
            assert (one.score.ci95, one.win_probability.ci95, one.ranks) == (None, None, None)
            assert (one.score.ci95_why or "").startswith("Too few clusters with a disagreement for a CI (9 < 10)")


def test_missing_verdicts_do_not_make_up_for_losses() -> None:
    choice = np.array([B] * 9 + [A] * 60 + [MISSING] * 40)
    ranking = rank_candidates(JudgedMatches(Matches(make_match_items([0] * 109, [1] * 109)), choice))
    assert ranking.standings["candidate 0"].score.ci95 is None


def test_corrected_scores_need_people_who_say_something_else_than_mostly() -> None:
    rng = np.random.default_rng(4)
    people = np.array([B] * 9 + [A] * 91 + [MISSING] * 400)
    judge = np.where(rng.random(500) < 0.3, B, A)
    matches = Matches(make_match_items([0] * 500, [1] * 500))
    ranking = rank_by_corrected_judge(ReviewedMatches(matches, people), JudgedMatches(matches, judge))
    for one in ranking.standings.values():
        assert (one.score.ci95, one.ranks) == (None, None)
        assert (one.score.ci95_why or "").startswith("Too few clusters with a disagreement for a CI (9 < 10)")


@pytest.mark.parametrize("clusters", [7, 60, 5_000])
def test_how_much_varies_is_counted_one_candidate_and_cluster_at_a_time(clusters: int) -> None:
    rng = np.random.default_rng(clusters)
    items, choice = (
        random_match_items(clusters, 400, 5, clusters),
        rng.choice([MISSING, A, B, TIE], 400, p=[0.2, 0.5, 0.2, 0.1]),
    )
    evidence = JudgedMatches(Matches(items), choice).evidence
    for candidate in range(5):
        outcomes = [
            (g, TIE if what == TIE else A if (what == A) == (a == candidate) else B)
            for g, a, b, what in zip(items.cluster, items.candidate_a, items.candidate_b, choice, strict=True)
            if what != MISSING and candidate in (a, b)
        ]
        counts = [sum(one == what for _, one in outcomes) for what in (B, TIE, A)]
        commonest = (B, TIE, A)[int(np.argmax(counts))]
        clusters = len({g for g, one in outcomes if one != commonest})
        assert evidence.varied[candidate] == clusters or min(evidence.varied[candidate], clusters) >= 10


def test_few_clusters_have_scores_without_intervals() -> None:
    ranking = rank_candidates(ReviewedMatches(Matches(make_match_items([0] * 39, [1] * 39)), np.array([A, B, A] * 13)))
    best = ranking.standings["candidate 0"]
    assert (best.score.ci95, best.ranks) == (None, None)
    assert (best.score.ci95_why or "") == "Too few clusters for a CI (39 < 40)."
    assert best.win_probability.ci95_why == best.score.ci95_why


def test_the_covariance_is_the_cluster_robust_one_of_statsmodels() -> None:
    items, choice = everyone(300, 3)
    fit = fit_scores(ReviewedMatches(Matches(items), choice).evidence)
    numbers, _ = linearise_scores(fit, score_estimates(fit.evidence, fit.at))
    design = np.zeros((len(items), 4))
    design[np.arange(len(items)), items.candidate_a], design[np.arange(len(items)), items.candidate_b] = 1, -1
    won = np.array([1.0, 0.0, 0.5])[choice]
    theirs = sm.GLM(won, design[:, :3], family=sm.families.Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": items.cluster}
    )
    # Their last candidate is the reference, our middle: s = P(b, 0), P taking out the mean. They also multiply by
    # (N − 1)/(N − k).
    to_ours = (np.eye(4) - 1 / 4)[:, :3]
    n = len(items)
    errors = np.sqrt(np.diag(to_ours @ theirs.cov_params() @ to_ours.T) * (n - 3) / (n - 1))
    assert fit.at == pytest.approx(to_ours @ theirs.params)
    for number, error in zip(numbers, errors, strict=True):
        assert number.ci95 is not None
        assert (number.ci95[1] - number.ci95[0]) / 2 == pytest.approx(1.959964 * error, rel=1e-4)


def test_bootstrap_and_linearisation_agree_where_there_is_enough() -> None:
    items, choice = everyone(600, 5)
    fit = fit_scores(ReviewedMatches(Matches(items), choice).evidence)
    numbers = score_estimates(fit.evidence, fit.at)
    (by_draws, draws), (by_line, normal) = bootstrap_scores(fit, numbers), linearise_scores(fit, numbers)
    for one, other in zip(by_draws, by_line, strict=True):
        assert one.ci95 == pytest.approx(other.ci95, abs=0.03)
    assert draws.std(axis=0) == pytest.approx(normal.std(axis=0), rel=0.06)
    assert normal.sum(axis=1) == pytest.approx(np.zeros(len(normal)), abs=1e-6)


def test_above_two_thousand_clusters_it_is_linearised() -> None:
    items, choice = everyone(2_001, 6)
    standings = rank_candidates(ReviewedMatches(Matches(items), choice)).standings
    rules = {one.score.ci95_rule for one in standings.values()}
    assert rules == {"linearised over 2,001 clusters"}


@pytest.mark.parametrize("clusters", [30, 400, 100_000])
def test_the_products_of_scores_are_those_of_one_cluster_at_a_time(clusters: int) -> None:
    rng = np.random.default_rng(clusters)
    first, second = np.triu_indices(4, 1)
    n = 500
    cluster = np.unique(np.sort(rng.choice(clusters, n, replace=clusters < n)), return_inverse=True)[1]
    pair, residual, extra = rng.integers(6, size=n), rng.normal(size=n), rng.normal(size=n)
    made = ScoreResiduals(first, second, 4, pair, cluster, residual, extra)
    each = np.zeros((cluster[-1] + 1, 5))
    np.add.at(each, (cluster, first[pair]), residual)
    np.add.at(each, (cluster, second[pair]), -residual)
    np.add.at(each[:, 4], cluster, extra)
    assert made.products == pytest.approx(each.T @ each)
    each[:, 4] = 0
    assert replace(made, extra=None).products == pytest.approx(each.T @ each)


def test_products_in_several_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    items, choice = everyone(50, 7)
    evidence = ReviewedMatches(Matches(items), choice).evidence
    at = fit_scores(evidence).at
    whole = evidence.residuals(at).products
    monkeypatch.setattr("evaluations.stats.ranking_evidence.AT_ONCE", 35)
    assert evidence.residuals(at).products == pytest.approx(whole)


def test_scores_and_ranks_cover_a_planted_truth() -> None:
    # The strengths themselves are not it: leanings shared within a query draw chances towards ½. Many queries tell.
    items, choice = everyone(40_000, 1)
    truth = fit_scores(ReviewedMatches(Matches(items), choice).evidence).at
    held = []
    for seed in range(120):
        items, choice = everyone(80, seed + 100)
        standings = rank_candidates(ReviewedMatches(Matches(items), choice)).standings
        for candidate, strength in enumerate(truth):
            one = standings[f"candidate {candidate}"]
            assert one.score.ci95 is not None
            assert one.ranks is not None
            held.append(one.score.ci95[0] <= strength <= one.score.ci95[1])
            assert one.ranks[0] <= candidate + 1 <= one.ranks[1]
    assert 0.92 <= np.mean(held) <= 0.98


def judged(seed: int, queries: int = 400) -> tuple[Matches, IntArray, IntArray, IntArray]:
    """What is true, what people reviewed of it, a third of all, and a judge that in one case of four says A."""
    items, choice = everyone(queries, seed)
    rng = np.random.default_rng(seed + 1)
    people = np.where(rng.random(len(items)) < 1 / 3, choice, MISSING)
    return Matches(items), choice, people, np.where(rng.random(len(items)) < 0.25, A, choice)


def test_the_corrected_scores_of_two_are_the_log_odds_of_their_corrected_win_rate() -> None:
    rng = np.random.default_rng(2)
    n = 1_500
    truth = rng.choice([A, B, TIE], n, p=[0.5, 0.4, 0.1])
    judge = np.where(rng.random(n) < 0.3, A, truth)
    people = np.where(rng.random(n) < 0.3, truth, MISSING)
    matches = Matches(make_match_items([0] * n, [1] * n, rng.integers(500, size=n)))
    reviewed, judgement = ReviewedMatches(matches, people), JudgedMatches(matches, judge)
    rate = estimate_win_rates(reviewed, judgement).pairs[0].rate
    ranking = rank_by_corrected_judge(reviewed, judgement)
    score, r = ranking.standings["candidate 0"].score, rate.corrected.value
    assert r is not None
    assert ranking.judge_weight == pytest.approx(rate.judge_weight)
    assert score.value == pytest.approx(np.log(r / (1 - r)) / 2)
    # By the chain rule a width of the rate is one of the score times ½ ÷ (r (1 − r)).
    assert score.ci95 is not None
    assert rate.corrected.ci95 is not None
    width = (rate.corrected.ci95[1] - rate.corrected.ci95[0]) / (2 * r * (1 - r))
    assert score.ci95[1] - score.ci95[0] == pytest.approx(width)


@pytest.mark.filterwarnings("ignore:'penalty' was deprecated")
def test_with_lone_comparisons_it_is_the_logistic_regression_of_ppi_py() -> None:
    matches, choice, people, judge = judged(4, 200)
    # They know no ties: half of each way.
    rng = np.random.default_rng(0)
    choice, judge = (np.where(one == TIE, rng.integers(2, size=len(one)), one) for one in (choice, judge))
    people = np.where(people == MISSING, MISSING, choice)
    n = len(people)
    lone = Matches(make_match_items(matches.items.candidate_a, matches.items.candidate_b))
    ranking = rank_by_corrected_judge(ReviewedMatches(lone, people), JudgedMatches(lone, judge))
    design = np.zeros((n, 4))
    design[np.arange(n), lone.items.candidate_a], design[np.arange(n), lone.items.candidate_b] = 1, -1
    seen = people != MISSING
    assert ranking.judge_weight is not None
    theirs = ranking.judge_weight * (~seen).sum() / n  # of the others, as for win rates
    x, y, f = design[:, :3], (choice == A).astype(float), (judge == A).astype(float)
    parts = x[seen], y[seen], f[seen], x[~seen], f[~seen]
    point = ppi_logistic_pointestimate(*parts, lam=theirs, optimizer_options={"ftol": 1e-15, "gtol": 1e-10})
    to_ours = (np.eye(4) - 1 / 4)[:, :3]
    assert values(ranking) == pytest.approx(to_ours @ point, abs=1e-4)


def test_the_corrected_covariance_is_that_of_leaving_out_one_cluster_after_the_other() -> None:
    # The jackknife of clusters (Efron and Stein 1981), λ held.
    matches, _, people, judge = judged(8, 150)
    at, found = 0.6, []
    for left_out in range(-1, 150):
        kept = matches.items.cluster != left_out
        items = make_match_items(*(one[kept] for one in (matches.items.candidate_a, matches.items.candidate_b)))
        some = Matches(replace(items, cluster=matches.items.cluster[kept]))
        found.append(RankingCorrection(ReviewedMatches(some, people[kept]), JudgedMatches(some, judge[kept]), at))
    whole, *each = (bradley_terry_scores(one.table) for one in found)
    spread = np.array(each) - np.mean(each, axis=0)
    covariance = sandwich_covariance(found[0].table, whole, found[0].products(whole), 150)
    assert np.diag(covariance) == pytest.approx(np.diag(spread.T @ spread) * 149 / 150, rel=0.1)


def test_where_people_reviewed_everything_the_correction_is_their_own_ranking() -> None:
    matches, choice, _, judge = judged(5)
    reviewed = ReviewedMatches(matches, choice)
    ranking = rank_by_corrected_judge(reviewed, JudgedMatches(matches, judge))
    assert ranking.judge_weight == 0
    assert values(ranking) == pytest.approx(values(rank_candidates(reviewed)))


def test_the_correction_is_nearer_than_people_alone_and_without_the_judges_bias() -> None:
    truth = fit_scores(ReviewedMatches(Matches((made := everyone(40_000, 1))[0]), made[1]).evidence).at
    errors, held = [], []
    for seed in range(60):
        matches, _, people, judge = judged(seed, 120)
        reviewed, judgement = ReviewedMatches(matches, people), JudgedMatches(matches, judge)
        ranking = rank_by_corrected_judge(reviewed, judgement)
        three = rank_candidates(reviewed), rank_candidates(judgement), ranking
        errors.append([((values(one) - truth) ** 2).sum() for one in three])
        intervals = [ranking.standings[name].score.ci95 for name in sorted(ranking.standings)]
        held += [one is not None and one[0] <= at <= one[1] for one, at in zip(intervals, truth, strict=True)]
    of_people_, of_judge_, of_correction = np.mean(errors, axis=0)
    assert of_correction < 0.8 * of_people_
    assert of_correction < 0.5 * of_judge_
    assert 0.91 <= np.mean(held) <= 0.99


def test_without_a_verdict_of_the_judge_there_is_nothing_to_correct() -> None:
    matches, _, people, _ = judged(6, 60)
    assert (
        rank_by_corrected_judge(
            ReviewedMatches(matches, people), JudgedMatches(matches, np.full(len(people), MISSING))
        ).why
        == NOT_JUDGED
    )


def test_a_judge_that_hardly_differs_has_corrected_scores_without_intervals() -> None:
    matches, choice, people, _ = judged(7, 60)
    judge = choice.copy()
    judge[np.flatnonzero(people == A)[:5]] = B
    differing = len(np.unique(matches.items.cluster[np.flatnonzero(people == A)[:5]]))
    best = next(
        iter(
            rank_by_corrected_judge(ReviewedMatches(matches, people), JudgedMatches(matches, judge)).standings.values()
        )
    )
    assert best.score.ci95 is None
    assert f"for a corrected CI ({differing} < 10)" in (best.score.ci95_why or "")
    assert best.ranks is None


def test_any_material_gives_plain_json() -> None:
    items, rng = random_match_items(3, 900, 5, 200), np.random.default_rng(3)
    matches = Matches(items)
    reviewed = ReviewedMatches(matches, rng.integers(MISSING, 4, 900))
    judgement = JudgedMatches(matches, rng.integers(MISSING, 4, 900))
    for ranking in (
        rank_candidates(reviewed),
        rank_candidates(judgement),
        rank_by_corrected_judge(reviewed, judgement),
    ):
        assert len(ranking.standings) == 5
        assert dumps(asdict(ranking), allow_nan=False)


def test_thousands_of_candidates_have_scores_and_ranks_without_intervals() -> None:
    rng = np.random.default_rng(5)
    places = np.arange(3_000)
    a = np.concatenate([places, rng.integers(3_000, size=9_000)])
    b = np.concatenate([(places + 1) % 3_000, (a[3_000:] + 1 + rng.integers(2_999, size=9_000)) % 3_000])
    a, b = np.tile(a, 4), np.tile(b, 4)
    choice = rng.choice([A, B, TIE], len(a))
    ranking = rank_candidates(JudgedMatches(Matches(make_match_items(a, b)), choice))
    assert ranking.why is None
    assert len(ranking.standings) == 3_000
    best = next(iter(ranking.standings.values()))
    assert (best.rank, best.ranks, best.score.ci95) == (1, None, None)
    assert best.score.ci95_why == "Too many models for a CI (3,000 > 200)."


def test_ranks_are_one_more_than_how_many_are_better() -> None:
    assert competition_ranks(np.array([0.3, 0.1 + 0.2, -1.0, 2.0])).tolist() == [2, 2, 4, 1]
    assert competition_ranks(np.array([[1.0, 2.0], [3.0, 3.0]])).tolist() == [[2, 1], [1, 1]]
    many = np.random.default_rng(2).integers(40, size=(3, 100)) / 10
    assert (competition_ranks(many) == 1 + (many[:, None, :] > many[:, :, None]).sum(axis=-1)).all()
