import math
from typing import Final, Literal

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from evaluations.stats.agreement import CONSTANT_RATER
from evaluations.stats.agreement_coefficients import ContingencyTables, alpha_nominal, scott_pi
from evaluations.stats.cluster_totals import ClusterSums
from evaluations.stats.coding import BOTH_BAD, MISSING, TIE, A, B, FloatArray, IntArray
from evaluations.stats.confidence_intervals import BOOTSTRAP_UP_TO, Spread, Statistic
from evaluations.stats.estimates import Estimate
from evaluations.stats.human_agreement import (
    NO_VARIATION,
    TOO_FEW_VOTES,
    ac1_by_item,
    ac1_by_tally,
    count_tallies_by_cluster,
    multi_rater_ac1_statistic,
    multi_rater_agreement,
    tally_shares,
)
from evaluations.stats.polls import Poll, make_poll
from evaluations.stats.significance import t_975
from evaluations.stats.votes import Votes

# Fleiss (1971): 15 patients, 6 psychiatrists, 5 diagnoses; as printed with irrCAC ("distrib.6raters").
DIAGNOSES = np.array(
    [
        [0, 0, 0, 6, 0],
        [0, 3, 0, 0, 3],
        [0, 1, 4, 0, 1],
        [0, 0, 0, 0, 6],
        [0, 3, 0, 3, 0],
        [2, 0, 4, 0, 0],
        [0, 0, 4, 0, 2],
        [2, 0, 3, 1, 0],
        [2, 0, 0, 4, 0],
        [0, 0, 0, 0, 6],
        [1, 0, 0, 5, 0],
        [1, 1, 0, 4, 0],
        [0, 3, 3, 0, 0],
        [1, 0, 0, 5, 0],
        [0, 2, 0, 3, 1],
    ]
)
# Krippendorff's own example with missing votes, 12 units, 4 raters (irrCAC: "cac.raw4raters"), counted.
WITH_MISSING = np.array(
    [
        [3, 0, 0, 0, 0],
        [0, 3, 1, 0, 0],
        [0, 0, 4, 0, 0],
        [0, 0, 4, 0, 0],
        [0, 4, 0, 0, 0],
        [1, 1, 1, 1, 0],
        [0, 0, 0, 4, 0],
        [3, 1, 0, 0, 0],
        [0, 4, 0, 0, 0],
        [0, 0, 0, 0, 3],
        [2, 0, 0, 0, 0],
        [0, 0, 1, 0, 0],
    ]
)

LEVELS: Final[tuple[Literal["nominal"], Literal["ordinal"]]] = "nominal", "ordinal"

of_three = st.lists(st.lists(st.integers(MISSING, TIE), min_size=4, max_size=4), min_size=2, max_size=12).map(np.array)
of_five = st.lists(st.lists(st.integers(A, TIE), min_size=5, max_size=5), min_size=2, max_size=12).map(np.array)


def asked(choices: IntArray, clusters: IntArray | None = None) -> Poll:
    """Items × people, each item a cluster of its own unless said otherwise."""
    item, rater = np.indices(choices.shape)
    votes = Votes(item.ravel(), rater.ravel(), np.zeros(choices.size, dtype=np.int64), choices.ravel())
    return make_poll(votes, np.arange(len(choices)) if clusters is None else clusters)


def coincidences(counts: IntArray) -> FloatArray:
    """By the book: o_ck = Σ n_c (n_k − δ_ck) ÷ (n − 1) over units with two votes or more; of any number of choices."""
    of_units = [
        (np.outer(row, row) - np.diag(row)) / (row.sum() - 1) for row in counts.astype(np.float64) if row.sum() > 1
    ]
    return np.asarray(sum(of_units))


def ac1(counts: IntArray) -> float:
    values = tally_shares(counts[counts.sum(axis=1) > 0].T.astype(np.float64))
    totals = np.array([len(values[0]), *(value.sum() for value in values)])
    return float(multi_rater_ac1_statistic(counts.shape[1])(totals))


def test_fleiss_own_table_gives_the_published_numbers() -> None:
    assert scott_pi(ContingencyTables(coincidences(DIAGNOSES))) == pytest.approx(0.4139265, abs=5e-8)
    assert ac1(DIAGNOSES) == pytest.approx(0.4448007, abs=5e-8)


def test_votes_with_gaps_give_the_published_numbers() -> None:
    assert alpha_nominal(coincidences(WITH_MISSING)) == pytest.approx(0.74342, abs=5e-6)
    assert ac1(WITH_MISSING) == pytest.approx(0.77544, abs=5e-6)


def test_alpha_of_a_small_poll_is_what_one_works_out_by_hand() -> None:
    # Votes: AA, AB, ABB. Disagreeing pairs of each item over votes − 1, both ways round: 0 + 2/1 + 4/2 = 4. n = 7,
    # A 4, B 3: expected = (49 − 16 − 9)/6 = 4. alpha = 1 − 4/4 = 0.
    found = multi_rater_agreement(asked(np.array([[A, A, MISSING], [A, B, MISSING], [A, B, B]])), 2)
    assert found.krippendorff_alpha.value == pytest.approx(0)
    assert found.units == 3


def test_an_item_with_one_vote_counts_for_prevalence_alone() -> None:
    choices = np.array([[A, A], [A, B], [B, B], [TIE, MISSING]])
    found, without = multi_rater_agreement(asked(choices), 3), multi_rater_agreement(asked(choices[:3]), 3)
    assert found.units == 3
    assert found.krippendorff_alpha.value == without.krippendorff_alpha.value
    assert found.gwet_ac1.value != without.gwet_ac1.value


def test_in_order_tie_and_both_bad_are_the_same_and_the_sides_furthest_apart() -> None:
    same = multi_rater_agreement(asked(np.array([[A, A], [B, B], [TIE, BOTH_BAD]])), 4)
    assert same.krippendorff_alpha_ordinal.value == 1
    assert (same.krippendorff_alpha.value or 0) < 1
    near, far = (multi_rater_agreement(asked(np.array([[A, A], [B, B], [TIE, TIE], [A, x]])), 3) for x in (TIE, B))
    assert (near.krippendorff_alpha_ordinal.value or 0) > (far.krippendorff_alpha_ordinal.value or 0)


def test_tie_against_both_bad_is_no_disagreement_in_order() -> None:
    # 60 items, of which 15 are tie against both bad and nothing else differs.
    found = multi_rater_agreement(asked(np.array([[A, A]] * 25 + [[B, B]] * 20 + [[TIE, BOTH_BAD]] * 15)), 4)
    assert found.krippendorff_alpha.ci95 is not None
    assert "Too few clusters with a disagreement for a CI (0 < 10)" in (found.krippendorff_alpha_ordinal.ci95_why or "")


def test_fleiss_kappa_is_withheld_where_items_have_different_numbers_of_votes() -> None:
    found = multi_rater_agreement(asked(np.array([[A, A, B], [A, MISSING, B], [B, MISSING, MISSING]])), 2).fleiss_kappa
    assert found.value is None
    assert found.why == "Needs the same number of votes on every comparison; here 1 to 3."


def test_items_that_nobody_said_anything_on_are_not_items() -> None:
    choices = np.array([[A, A], [A, B], [B, B]])
    padded = np.vstack([choices, np.full((3, 2), MISSING)])
    assert multi_rater_agreement(asked(padded), 2) == multi_rater_agreement(asked(choices), 2)


def test_one_choice_throughout_leaves_nothing_to_explain() -> None:
    found = multi_rater_agreement(asked(np.full((50, 3), B)), 2)
    for number in (found.krippendorff_alpha, found.krippendorff_alpha_ordinal, found.fleiss_kappa):
        assert (number.value, number.why) == (None, NO_VARIATION)
    assert found.gwet_ac1.value == 1


def test_of_two_people_one_who_always_makes_the_same_choice_leaves_no_coefficient() -> None:
    # ann says A throughout: alpha would be below 0, and AC1 far above, and neither tells what she knows.
    found = multi_rater_agreement(asked(np.array([[A, A]] * 45 + [[A, B]] * 15)), 2)
    assert {(number.value, number.why) for number in found.numbers} == {(None, CONSTANT_RATER)}
    assert found.units == 60
    # With a third who varies there are two who do.
    three = multi_rater_agreement(asked(np.array([[A, A, A]] * 40 + [[A, B, B]] * 20)), 2)
    assert three.krippendorff_alpha.value is not None


def test_ac1_counts_the_choices_that_are_offered_not_those_that_occur() -> None:
    # 40 of 60 pairs agree; A has 80 of 120 votes, B 40: pe = 2 · (2/3 · 1/3)/(q − 1).
    choices = asked(np.array([[A, A, A, A]] * 30 + [[B, B, B, B]] * 10 + [[A, B, A, B]] * 20))
    pa = (40 + 20 / 3) / 60
    for q in (2, 3, 4):
        pe = 2 * (2 / 3 * 1 / 3) / (q - 1)
        assert multi_rater_agreement(choices, q).gwet_ac1.value == pytest.approx((pa - pe) / (1 - pe))


@pytest.mark.parametrize("choices", [np.zeros((0, 2), dtype=np.int64), np.array([[A, MISSING], [MISSING, B]])])
def test_without_two_votes_on_anything_there_is_no_number(choices: IntArray) -> None:
    for number in multi_rater_agreement(asked(choices), 3).numbers:
        assert (number.value, number.why) == (None, TOO_FEW_VOTES)


@given(of_three, st.sampled_from(LEVELS))
def test_alpha_equals_the_krippendorff_package(choices: IntArray, level: Literal["nominal", "ordinal"]) -> None:
    found = multi_rater_agreement(asked(choices), 3)
    mine = found.krippendorff_alpha if level == "nominal" else found.krippendorff_alpha_ordinal
    assume(mine.value is not None)
    # In order: A, tie, B. A vote that is missing is NaN.
    ranked = np.where(choices == MISSING, np.nan, np.array([0, 2, 1])[choices])
    theirs = krippendorff.alpha(ranked.T, value_domain=[0, 1, 2], level_of_measurement=level)
    assert mine.value == pytest.approx(theirs, abs=1e-9)


@given(of_five)
def test_fleiss_kappa_equals_statsmodels(choices: IntArray) -> None:
    mine = multi_rater_agreement(asked(choices), 3).fleiss_kappa
    assume(mine.value is not None)
    counts = np.array([[list(row).count(choice) for choice in range(3)] for row in choices])
    assert mine.value == pytest.approx(statsmodels_fleiss(counts), abs=1e-9)


def standard_error(of_units: FloatArray, statistic: Statistic) -> float:
    """``of_units``: what each unit, a cluster of its own, adds to each total."""
    return math.sqrt(Spread(ClusterSums(of_units)).variance(statistic))


def test_standard_errors_are_those_of_irrcac() -> None:
    # What irrCAC prints beside the coefficients of "distrib.6raters" and "cac.raw4raters", units being independent.
    def of_pairs(statistic: Statistic, counts: IntArray) -> float:
        met = np.array([coincidences(row[None]).ravel() for row in counts if row.sum() > 1])
        return standard_error(met, lambda totals: statistic(totals.reshape(*totals.shape[:-1], 5, 5)))

    def of_ac1(counts: IntArray) -> float:
        values = tally_shares(counts.T.astype(np.float64))
        return standard_error(np.stack([np.ones(len(counts)), *values], axis=1), multi_rater_ac1_statistic(5))

    assert of_pairs(lambda met: scott_pi(ContingencyTables(met)), DIAGNOSES) == pytest.approx(0.08119291, abs=5e-8)
    assert of_ac1(DIAGNOSES) == pytest.approx(0.08418757, abs=5e-8)
    # Of alpha irrCAC takes the small-sample term as given; and of AC1 with gaps, .14295, how many units have pairs.
    assert of_pairs(alpha_nominal, DIAGNOSES) == pytest.approx(0.08243228, rel=0.03)
    assert of_pairs(alpha_nominal, WITH_MISSING) == pytest.approx(0.14548, rel=0.03)


@pytest.mark.parametrize("items", [90, BOOTSTRAP_UP_TO + 1])
def test_ac1_is_the_same_from_items_and_from_how_many_have_each_tally(items: int) -> None:
    rng = np.random.default_rng(6)
    found = asked(rng.integers(MISSING, TIE + 1, size=(items, 4)))
    counted = count_tallies_by_cluster(found)
    assert counted is not None
    (spread, ac1_of_items), (of_tallies, ac1_of_tallies) = ac1_by_item(found, 3), ac1_by_tally(*counted, 3)
    value = float(ac1_of_items(spread.contributions.totals))
    assert ac1_of_tallies(of_tallies.contributions.totals) == pytest.approx(value)
    number = Estimate(value, items)
    one, other = (
        found.ci95 for found in (spread.interval(number, ac1_of_items), of_tallies.interval(number, ac1_of_tallies))
    )
    assert one == pytest.approx(other, abs=1e-6)


def test_votes_of_a_crowd_are_too_many_kinds_to_be_counted() -> None:
    crowd = asked(np.random.default_rng(7).integers(A, TIE + 1, size=(60, 30)))
    assert count_tallies_by_cluster(crowd) is None
    counts = np.array([[list(row).count(choice) for choice in range(3)] for row in crowd.choice.reshape(60, 30)])
    assert multi_rater_agreement(crowd, 3).gwet_ac1.value == pytest.approx(ac1(counts))


def test_intervals_are_as_wide_as_those_of_a_jackknife_of_clusters() -> None:
    # Each of some 75 clusters left out in turn; three people of whom some say nothing now and then.
    rng = np.random.default_rng(3)
    clusters = np.sort(rng.integers(75, size=150))
    truth = rng.integers(3, size=(150, 1))
    choices = np.where(rng.random((150, 3)) < 0.7, truth, rng.integers(3, size=(150, 3)))
    choices[rng.random((150, 3)) < 0.1] = MISSING
    kept = np.unique(clusters)
    left = [values_alone(choices[clusters != one]) for one in kept]
    found = multi_rater_agreement(asked(choices, clusters), 3)
    for number, without in zip(
        (found.krippendorff_alpha, found.krippendorff_alpha_ordinal, found.gwet_ac1), np.array(left).T, strict=True
    ):
        assert number.ci95 is not None
        error = math.sqrt((len(kept) - 1) * without.var())
        assert (number.ci95[1] - number.ci95[0]) / 2 == pytest.approx(t_975(len(kept) - 1) * error, rel=0.1)


def values_alone(choices: IntArray) -> list[float]:
    """Both alphas by the package, and AC1, which has no other."""
    ranked = np.where(choices == MISSING, np.nan, np.array([0, 2, 1])[choices])
    alphas = [krippendorff.alpha(ranked.T, value_domain=[0, 1, 2], level_of_measurement=level) for level in LEVELS]
    return [*alphas, ac1(np.array([[list(row).count(choice) for choice in range(3)] for row in choices]))]
