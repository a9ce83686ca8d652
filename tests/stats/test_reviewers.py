import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa

from evaluations.domain.reports import SplitRule
from evaluations.stats.agreement import CONSTANT
from evaluations.stats.agreement_timeline import FEW_VOTES, NO_OTHER_VOTES
from evaluations.stats.cluster_totals import Contributions
from evaluations.stats.coding import BOTH_BAD, MISSING, TIE, A, B, FloatArray, IntArray
from evaluations.stats.confidence_intervals import Spread
from evaluations.stats.polls import PersonVotes, make_poll, person_votes
from evaluations.stats.reviewers import ReviewerStatistics, kappa_with_gradient, reviewer_statistics
from evaluations.stats.votes import Votes

NAMES = ("ann", "bob", "cem", "dee")
# Items 0 to 4; dee never voted.
VOTES = [
    *[(0, 0, A), (0, 1, A), (0, 2, B)],
    *[(1, 0, B), (1, 1, B), (1, 2, B)],
    *[(2, 0, TIE), (2, 1, A)],
    *[(3, 0, A), (3, 2, BOTH_BAD)],
    (4, 0, A),
]
JUDGE = np.array([A, B, A, MISSING, B], dtype=np.int8)


def people(
    votes: list[tuple[int, int, int]], rule: SplitRule = SplitRule.TIE, active_ms: list[int] | None = None
) -> dict[str, ReviewerStatistics]:
    item, rater, choice = (np.array(column) for column in zip(*votes, strict=True))
    cluster = np.arange(int(item.max()) + 1)
    found = person_votes(make_poll(Votes(item, rater, np.zeros_like(item), choice.astype(np.int8)), cluster))
    told = reviewer_statistics(
        found, NAMES, {"judge": JUDGE[found.poll.items]}, rule, None if active_ms is None else np.array(active_ms)
    )
    return {one.rater: one for one in told}


def test_a_small_case_is_what_one_works_out_by_hand() -> None:
    # ann against the others: A and a split of A and B, which is a tie; B, B; tie, A; A, both bad; nobody on item 4.
    # The judge on what ann voted on: A A, B B, A tie, B A.
    found = people(VOTES)
    assert list(found) == ["ann", "bob", "cem"]
    ann = found["ann"]
    assert (ann.votes, ann.caution) == (5, FEW_VOTES)
    assert (ann.others.value, ann.others.n) == (0.25, 4)
    assert (ann.judges["judge"].value, ann.judges["judge"].n) == (0.5, 4)
    assert (ann.tie_rate.value, ann.tie_rate.n) == (0.2, 5)
    # Of four, chance agreement: ann A 2, B 1, tie 1; the others A 1, B 1, tie 1, both bad 1: (2 + 1 + 1)/16.
    assert ann.cohen_kappa.value == pytest.approx((0.25 - 0.25) / 0.75)
    # cem: both bad is no side.
    assert found["cem"].tie_rate.value == pytest.approx(1 / 3)


def test_the_split_rule_says_what_becomes_of_splits_among_the_others() -> None:
    # On item 0 the others of ann are split between A and B; A came first.
    assert people(VOTES, SplitRule.DROP)["ann"].others.n == 3
    assert people(VOTES, SplitRule.FIRST)["ann"].others.value == 0.5


def test_alone_or_of_one_choice_there_is_no_kappa() -> None:
    assert people([(0, 0, A), (1, 0, B)])["ann"].cohen_kappa.why == NO_OTHER_VOTES
    both = people([(0, 0, A), (0, 1, A), (1, 0, A), (1, 1, A)])["ann"]
    assert (both.cohen_kappa.why, both.others.value) == (CONSTANT, 1.0)


def test_the_middle_of_the_known_times_is_given() -> None:
    active_ms = [5_000, 1_000, 1_000, 9_000, 1_000, 1_000, 0, 1_000, 7_000, 0, 100_000]
    found = people(VOTES, active_ms=active_ms)
    assert found["ann"].median_active_seconds == 8.0
    assert people(VOTES)["ann"].median_active_seconds is None
    unknown = people(VOTES, active_ms=[0] * len(VOTES))
    assert unknown["ann"].median_active_seconds is None


@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=4, max_size=4).map(np.array))
def test_kappa_equals_statsmodels(table: IntArray) -> None:
    kappa, _ = kappa_with_gradient(table.astype(np.float64))
    n = int(table.sum())
    if int(table.sum(axis=0) @ table.sum(axis=1)) == n * n:
        assert not np.isfinite(kappa)
    else:
        assert kappa == pytest.approx(cohens_kappa(table, return_results=False), abs=1e-9)


def many(differing: float) -> PersonVotes:
    """Three people on 300 items in 60 clusters whose items are alike, and 100 of the same that bob has for himself."""
    rng = np.random.default_rng(1)
    cluster = np.append(np.repeat(np.arange(60), 5), np.arange(100) % 60)
    truth = rng.integers(3, size=60)[cluster]
    choices = np.where(rng.random((3, 400)) < differing, rng.integers(3, size=(3, 400)), truth).astype(np.int8)
    item, rater = np.append(np.repeat(np.arange(300), 3), np.arange(300, 400)), np.append(np.arange(900) % 3, [1] * 100)
    return person_votes(make_poll(Votes(item, rater, np.zeros_like(item), choices[rater, item]), cluster))


def test_the_interval_of_a_persons_kappa_is_that_of_the_table_by_cluster() -> None:
    found = many(0.3)
    told = reviewer_statistics(found, NAMES, {})[1]
    others = found.majority_of_the_others(SplitRule.TIE)
    own = (found.rater == 1) & (others != MISSING)
    assert (told.votes, told.cohen_kappa.n, int(own.sum())) == (400, 300, 300)
    table = Contributions(found.cluster[own], found.choice[own] * 4 + others[own], 16)

    def kappa(totals: FloatArray) -> FloatArray:
        return kappa_with_gradient(totals.reshape(*totals.shape[:-1], 4, 4))[0]

    spread = Spread(table)
    assert told.cohen_kappa.value == pytest.approx(float(kappa(table.totals)))
    assert told.cohen_kappa.ci95 is not None
    width = told.cohen_kappa.ci95[1] - told.cohen_kappa.ci95[0]
    # 2.001: t with 59 degrees of freedom.
    assert width == pytest.approx(2 * 2.00100 * spread.variance(kappa) ** 0.5, rel=1e-4)
    assert told.cohen_kappa.ci95_rule == "linearised over 60 clusters"
    assert told.caution is None


def test_a_kappa_with_few_disagreements_has_no_interval() -> None:
    told = reviewer_statistics(many(0.02), NAMES, {})[1].cohen_kappa
    assert told.value is not None
    assert "clusters with a disagreement" in (told.ci95_why or "")


def test_it_is_plain_json() -> None:
    found = json.loads(json.dumps([asdict(one) for one in people(VOTES).values()], allow_nan=False))
    assert found[0]["others"]["value"] == 0.25
