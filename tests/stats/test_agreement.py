import numpy as np
import pytest

from evaluations.stats.agreement import (
    ALL_TIES,
    COEFFICIENTS,
    CONSTANT,
    CONSTANT_RATER,
    MORE_THAN_TWO,
    NO_RATERS,
    NOTHING_SHARED,
    ROW,
    TWO_SIDES_AC1,
    TWO_SIDES_KAPPA,
    Agreement,
    AgreementBlock,
    agreement_block,
    block_statistic,
)
from evaluations.stats.cluster_totals import Contributions, cross_tabulate_by_cluster
from evaluations.stats.coding import BOTH_BAD, MISSING, TIE, A, B
from evaluations.stats.confidence_intervals import BOOTSTRAP_UP_TO, Spread, differentiate
from evaluations.stats.estimates import Estimate

MEASURES = (
    "agreement",
    "cohen_kappa",
    "weighted_kappa",
    "scott_pi",
    "gwet_ac1",
    "gwet_ac2",
    "prevalence_index",
    "bias_index",
)


def table(counts: dict[tuple[int, int], int], times: int = 1, each: int = 1) -> Contributions:
    """So many items of each kind ``times`` over; ``each``: how many of them share a cluster, kind by kind."""
    kinds = np.repeat(np.array(list(counts)), np.array(list(counts.values())) * times, axis=0)
    return cross_tabulate_by_cluster(kinds[:, 0], kinds[:, 1], np.arange(len(kinds)) // each)


def numbers(found: Agreement) -> dict[str, Estimate]:
    return {name: getattr(found, name) for name in MEASURES}


def both_ways(found: AgreementBlock) -> list[Estimate]:
    return [*numbers(found.with_ties).values(), *numbers(found.without_ties).values(), found.dropped]


MIXED = {(A, A): 8, (B, B): 5, (A, B): 3, (B, A): 2, (TIE, A): 2, (TIE, TIE): 1, (B, BOTH_BAD): 2}


def test_without_ties_drops_what_either_side_left_open_and_prints_the_share() -> None:
    # 23 items: 8 + 5 agree on a side, 5 disagree, 5 have a tie or both bad on a side.
    found = agreement_block(table(MIXED), 4)
    assert (found.with_ties.agree, found.with_ties.n) == (14, 23)
    assert (found.without_ties.agree, found.without_ties.n) == (13, 18)
    assert found.dropped.value == pytest.approx(5 / 23)
    # The bias of A over B: 3 − 2 of 18; prevalence 8 − 5 of 18.
    assert found.without_ties.bias_index.value == pytest.approx(1 / 18)
    assert found.without_ties.prevalence_index.value == pytest.approx(3 / 18)


def test_every_number_has_its_interval_or_says_why_it_has_none() -> None:
    for times in (1, 4, 200):
        for number in both_ways(agreement_block(table(MIXED, times), 4)):
            assert (number.value is None) == (number.why is not None)
            assert (number.ci95 is None) == (number.ci95_why is not None)
            if number.ci95 is not None and number.value is not None:
                assert number.ci95[0] < number.value < number.ci95[1]


def test_what_needs_two_choices_or_an_order_of_more_says_where_to_look() -> None:
    found = agreement_block(table(MIXED), 4)
    assert found.with_ties.prevalence_index.why == found.with_ties.bias_index.why == MORE_THAN_TWO
    assert found.without_ties.weighted_kappa.why == TWO_SIDES_KAPPA
    assert found.without_ties.gwet_ac2.why == TWO_SIDES_AC1


def test_few_clusters_leave_shares_with_wilsons_interval_and_coefficients_without() -> None:
    found = agreement_block(table(MIXED), 4)
    assert found.with_ties.agreement.ci95_rule == "Wilson, 23 ÷ design effect 1.05 over 23 clusters"
    assert found.without_ties.agreement.ci95_rule == "Wilson, 18 ÷ design effect 1.06 over 18 clusters"  # 18 ÷ 17
    assert (found.dropped.ci95_rule or "").startswith("Wilson, 23")
    for name in ("cohen_kappa", "weighted_kappa", "gwet_ac1"):
        withheld = numbers(found.with_ties)[name]
        assert withheld.value is not None
        assert withheld.ci95_why == "Too few clusters for a CI (23 < 40)."
    assert (found.without_ties.cohen_kappa.ci95_why or "") == "Too few clusters for a CI (18 < 40)."


def test_high_agreement_has_wilsons_interval_however_many_clusters_there_are() -> None:
    # 9 of 3,000 disagree.
    found = agreement_block(table({(A, A): 1_500, (B, B): 1_491, (A, B): 9}), 2).with_ties
    assert (found.agreement.ci95_rule or "").startswith("Wilson")
    assert "Too few clusters with a disagreement for a CI (9 < 10)" in (found.cohen_kappa.ci95_why or "")


def test_up_to_2000_clusters_are_drawn_and_more_linearised() -> None:
    few, many = (
        agreement_block(table(MIXED, times), 4) for times in (BOOTSTRAP_UP_TO // 23, BOOTSTRAP_UP_TO // 23 + 1)
    )
    assert few.with_ties.cohen_kappa.ci95_rule == "bootstrap, 2,000 resamples of 1,978 clusters"
    assert many.with_ties.cohen_kappa.ci95_rule == "linearised over 2,001 clusters"
    for one, other in zip(both_ways(few), both_ways(many), strict=True):
        if one.ci95 is not None:
            assert one.ci95 == pytest.approx(other.ci95, abs=0.01)


def test_items_of_one_cluster_that_are_alike_widen_every_interval() -> None:
    apart, together = agreement_block(table(MIXED, 100), 4), agreement_block(table(MIXED, 100, each=10), 4)
    for one, other in zip(both_ways(apart), both_ways(together), strict=True):
        if one.ci95 is not None and other.ci95 is not None:
            assert other.ci95[1] - other.ci95[0] > 1.5 * (one.ci95[1] - one.ci95[0])


def test_tie_against_both_bad_is_no_disagreement_in_order() -> None:
    # 40 items, of which 12 differ, all tie against both bad: in order nothing does.
    found = agreement_block(table({(A, A): 14, (B, B): 14, (TIE, BOTH_BAD): 12}), 4).with_ties
    assert found.cohen_kappa.ci95 is not None
    assert found.weighted_kappa.value == 1
    assert "Too few clusters with a disagreement for a CI (0 < 10)" in (found.weighted_kappa.ci95_why or "")


def test_a_standard_error_is_that_of_irrcac() -> None:
    # "cont3x3abstractors", each item a cluster: irrCAC prints .05891072, .05905473 and .04321747 and divides by n
    # where we divide by n − 1. An interval of 100 clusters is drawn, so the variance is asked for itself.
    counts = {(0, 0): 13, (1, 1): 20, (1, 2): 7, (2, 1): 4, (2, 2): 56}
    spread = Spread(table(counts))
    variances = spread.variances(differentiate(block_statistic(3), spread.contributions.totals).slopes)
    errors = np.sqrt(variances * 99 / 100)[[ROW.index(name) for name in ("cohen_kappa", "scott_pi", "gwet_ac1")]]
    assert errors.tolist() == pytest.approx([0.05891072, 0.05905473, 0.04321747], abs=5e-8)


def test_a_constant_aspect_has_no_kappa_and_says_why() -> None:
    found = agreement_block(table({(A, A): 12}), 3).with_ties
    assert (found.cohen_kappa.value, found.cohen_kappa.why) == (None, CONSTANT)
    assert (found.scott_pi.value, found.scott_pi.n) == (None, 12)
    assert found.gwet_ac1.value == 1


def test_a_rater_who_is_constant_has_no_coefficient() -> None:
    # A judge that says A throughout, people A on 80 of 100: AC1 would be .76, far above 0, of no information.
    found = agreement_block(table({(A, A): 80, (A, B): 15, (A, TIE): 5}), 3)
    for one in (found.with_ties, found.without_ties):
        assert one.agreement.ci95 is not None
        for name in COEFFICIENTS:
            number = getattr(one, name)
            assert number.value is None
            if name in ("cohen_kappa", "scott_pi", "gwet_ac1"):
                assert (number.why, number.ci95) == (CONSTANT_RATER, None)
    # One of two columns alone is constant, or only without ties.
    assert agreement_block(table({(A, B): 30, (B, B): 40, (TIE, B): 9}), 3).with_ties.gwet_ac1.why == CONSTANT_RATER
    late = agreement_block(table({(A, A): 40, (A, B): 20, (TIE, TIE): 30}), 3)
    assert late.with_ties.cohen_kappa.value is not None
    assert late.without_ties.gwet_ac1.why == CONSTANT_RATER


def test_a_rater_who_is_constant_in_order_has_no_weighted_coefficient() -> None:
    # Tie and both bad are one place of the order.
    found = agreement_block(table({(TIE, A): 20, (BOTH_BAD, B): 20, (TIE, TIE): 20}), 4).with_ties
    assert found.cohen_kappa.value is not None
    assert (found.weighted_kappa.why, found.gwet_ac2.why) == (CONSTANT_RATER, CONSTANT_RATER)


def test_ac1_counts_the_choices_that_the_rubric_offers() -> None:
    # An inconsistent judge of a rubric without ties: po = .9, π = (.45, .5, .05), pe = Σ π (1 − π) ÷ (2 − 1).
    found = agreement_block(table({(A, A): 42, (B, B): 48, (TIE, A): 4, (TIE, B): 6}), 2).with_ties
    pe = 0.44 * 0.56 + 0.51 * 0.49 + 0.05 * 0.95
    assert found.gwet_ac1.value == pytest.approx((0.9 - pe) / (1 - pe))


def test_nothing_shared_gives_no_number_and_a_reason_never_nought() -> None:
    found = agreement_block(table({(A, A): 0}), 3)
    assert (found.with_ties.agree, found.with_ties.n) == (0, 0)
    for number in both_ways(found):
        assert (number.value, number.why, number.ci95) == (None, NOTHING_SHARED, None)


def test_where_only_ties_are_left_the_reason_says_so() -> None:
    found = agreement_block(table({(TIE, TIE): 3}), 3)
    assert found.without_ties.agreement.value is None
    assert found.without_ties.agreement.why == found.without_ties.cohen_kappa.why == ALL_TIES


def test_pooled_votes_have_no_cohen_but_scotts_pi() -> None:
    found = agreement_block(table({(A, A): 4, (A, B): 2, (B, B): 3}), 2, raters_known=False)
    pooled = found.with_ties.cohen_kappa, found.with_ties.weighted_kappa, found.without_ties.bias_index
    assert {(number.value, number.why) for number in pooled} == {(None, NO_RATERS)}
    assert found.with_ties.scott_pi.value is not None
    assert found.without_ties.cohen_kappa.why == NO_RATERS


def test_an_entry_that_is_missing_on_one_side_is_in_no_cell() -> None:
    found = cross_tabulate_by_cluster(np.array([A, MISSING, B]), np.array([A, A, MISSING]), np.arange(3))
    assert (found.totals.sum(), found.clusters) == (1, 1)
