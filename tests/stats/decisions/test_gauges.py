"""Failures, flips and biases of a judge over all aspects, worked by hand."""

from dataclasses import replace

import numpy as np
import pytest

from evaluations.domain.decisions import DEFAULT_BARS
from evaluations.stats.coding import MISSING, IntArray
from evaluations.stats.decisions.gauges import JudgedAspect, judge_gauges
from evaluations.stats.items import Items
from evaluations.stats.judge_verdicts import ConsolidatedVerdicts
from tests.stats.decisions.study import codes, verdicts
from tests.stats.match_items import make_match_items


def items_of(n: int, longer_by: IntArray | None = None) -> Items:
    side = np.zeros(n, dtype=np.int64)
    return make_match_items(side, side + 1, longer_by=longer_by)


def judged(own: ConsolidatedVerdicts, majority: str | None = None) -> JudgedAspect:
    n = len(own.choice)
    choices = np.full(n, MISSING) if majority is None else codes(majority)
    return JudgedAspect(own, np.arange(n), choices, is_derived=False)


def in_both_orders(as_stored: str, swapped: str) -> ConsolidatedVerdicts:
    first, second = codes(as_stored), codes(swapped)
    differs = first != second
    no = np.zeros(len(first), dtype=bool)
    choice = np.where(differs, 2, first).astype(np.int8)
    return ConsolidatedVerdicts(choice, differs, no, no, ~no, (first, second, None, None))


def test_a_comparison_failed_if_a_call_on_any_aspect_did() -> None:
    gauges = judge_gauges([judged(verdicts("AA!.")), judged(verdicts("A!!."))], items_of(4), "", DEFAULT_BARS)
    assert gauges.failures.number.value == pytest.approx(2 / 3)
    assert gauges.failures.number.n == 3


def test_flips_are_counted_over_all_aspects() -> None:
    aspects = [judged(in_both_orders("AABB", "AABA")), judged(in_both_orders("AAAA", "BBAA"))]
    gauges = judge_gauges(aspects, items_of(4), "", DEFAULT_BARS)
    assert gauges.inconsistency.number.value == pytest.approx(3 / 8)
    assert gauges.inconsistency.number.n == 8


def test_the_first_shown_is_a_as_stored_and_b_swapped() -> None:
    """A then B: the first both times. A, A: once of two. Ties name no side."""
    gauges = judge_gauges([judged(in_both_orders("AA=", "BA="))], items_of(3), "", DEFAULT_BARS)
    assert gauges.position.number.value == pytest.approx(3 / 4)


def test_always_the_first_is_beyond_its_bar_though_nothing_varies() -> None:
    gauges = judge_gauges([judged(in_both_orders("A" * 60, "B" * 60))], items_of(60), "", DEFAULT_BARS)
    assert gauges.position.number.value == 1
    assert gauges.position.exceeds
    assert gauges.inconsistency.exceeds
    assert gauges.exceed


def test_length_is_compared_with_reviewers_on_the_same_items() -> None:
    """A is longer on all four. The judge takes it on 3 of the 3 on which both take a side, reviewers on 2."""
    aspect = judged(verdicts("AAA="), "AABA")
    gauges = judge_gauges([aspect], items_of(4, np.full(4, 10)), "", DEFAULT_BARS)
    assert gauges.length.number.value == pytest.approx(1 / 3)
    assert gauges.length.number.n == 3
    assert gauges.length.number.ci95 is None  # 3 clusters


def test_a_bias_counts_only_if_its_whole_interval_is_beyond_the_bar() -> None:
    rng = np.random.default_rng(3)
    longer = np.where(rng.random(200) < 0.5, 10, -10)
    side = np.where(longer > 0, 0, 1)
    people = rng.integers(2, size=200)
    letters = np.array(["A", "B"])
    majority = "".join(letters[people])
    biased = "".join(letters[np.where(rng.random(200) < 0.6, side, people)])
    slightly = "".join(letters[np.where(rng.random(200) < 0.15, side, people)])
    made = judge_gauges([judged(verdicts(biased), majority)], items_of(200, longer), "", DEFAULT_BARS)
    assert made.length.exceeds
    made = judge_gauges([judged(verdicts(slightly), majority)], items_of(200, longer), "", DEFAULT_BARS)
    assert made.length.number.ci95 is not None
    assert not made.length.exceeds
    strict = replace(DEFAULT_BARS, bias=0.01)
    assert judge_gauges([judged(verdicts(slightly), majority)], items_of(200, longer), "", strict).length.exceeds


def test_own_family_needs_a_family() -> None:
    items = replace(items_of(60), families=("gpt", "llama"))
    aspect = judged(verdicts("A" * 60), "AB" * 30)
    unknown = judge_gauges([aspect], items, "", DEFAULT_BARS).own_family
    assert unknown.number.why == "The judge's family is not set."
    known = judge_gauges([aspect], items, "GPT", DEFAULT_BARS).own_family
    assert known.number.value == pytest.approx(0.5)
    assert known.exceeds


def test_derived_choices_have_no_order() -> None:
    aspect = replace(judged(in_both_orders("AB", "BA")), is_derived=True)
    assert judge_gauges([aspect], items_of(2), "", DEFAULT_BARS).inconsistency.number.value is None
