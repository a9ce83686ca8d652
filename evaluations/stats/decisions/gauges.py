"""Failures, order-inconsistency and biases of one judge over all aspects, each with the bar that it must not exceed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from evaluations.domain.decisions import DecisionBars
from evaluations.stats.bias.board import explain_no_self_preference, own_family_side
from evaluations.stats.bias.position import (
    FIRST,
    NOT_IN_BOTH_ORDERS,
    ONE_ORDER,
    SIDES,
    judged_in_both_orders,
    order_kinds,
)
from evaluations.stats.bias.tendency import NO_CHOICES
from evaluations.stats.coding import MISSING, BoolArray, IntArray, Sides, has_side, sides_of_choices
from evaluations.stats.confidence_intervals import wilson_from_variance
from evaluations.stats.decisions.contrasts import Contrast, contrast, difference_with_interval, share_with_interval
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.items import Items
from evaluations.stats.judge_verdicts import ConsolidatedVerdicts

NO_CALLS: Final = "The judge was not asked."
NOT_OF_SCORES: Final = "Not computed for scores of single responses."
HALF: Final = 0.5
# By kind of a pair of verdicts; MISSING is the last position.
FIRST_OF_KIND: Final = np.append(FIRST, 0).astype(np.int32)
SIDES_OF_KIND: Final = np.append(SIDES, 0).astype(np.int32)


@dataclass(frozen=True)
class Gauge:
    """A number with its bar. ``exceeds``: whether its whole interval is beyond the bar."""

    number: Estimate
    bar: float
    exceeds: bool


@dataclass(frozen=True)
class Gauges:
    """``failures``: of the comparisons or responses that the judge was asked about, the share with a failed call.

    ``inconsistency``: of the comparisons judged in both orders. ``position``: the share of choices of a side that are
    for the response shown first. ``length`` and ``own_family``: how much more often the judge chooses the longer
    response, or the one of its own family, than the reviewer majority does on the same comparisons.
    """

    failures: Gauge
    inconsistency: Gauge
    position: Gauge
    length: Gauge
    own_family: Gauge

    @property
    def exceed(self) -> bool:
        """Whether one of them is beyond its bar."""
        each = (self.failures, self.inconsistency, self.position, self.length, self.own_family)
        return any(gauge.exceeds for gauge in each)


@dataclass(frozen=True)
class JudgedAspect:
    """A judge's verdicts on one aspect, and the reviewer majority: ``majority`` on ``item``, with two votes or more.

    ``is_derived``: whether its choices were derived from scores or a panel, so that there is no order.
    """

    own: ConsolidatedVerdicts
    item: IntArray
    majority: IntArray
    is_derived: bool


def judge_gauges(aspects: Sequence[JudgedAspect], items: Items, family: str, bars: DecisionBars) -> Gauges:
    """The gauges of one judge. ``family``: the judge's model family, empty where not set."""
    own_side = own_family_side(items, family)
    why_no_family = explain_no_self_preference(items, family, own_side)
    return Gauges(
        failures=failure_gauge(
            [aspect.own.failed for aspect in aspects],
            [aspect.own.choice != MISSING for aspect in aspects],
            items.cluster,
            bars.failures,
        ),
        inconsistency=share_gauge(
            inconsistent_verdicts(aspects, items.cluster), bars.inconsistency, NOT_IN_BOTH_ORDERS
        ),
        position=position_gauge(first_shown_choices(aspects, items.cluster), bars.bias),
        length=preference_gauge(aspects, longer_side(items), items.cluster, bars.bias),
        own_family=unknown_gauge(why_no_family, bars.bias)
        if why_no_family
        else preference_gauge(aspects, own_side, items.cluster, bars.bias),
    )


def response_gauges(
    failed: Sequence[BoolArray], scored: Sequence[BoolArray], cluster: IntArray, bars: DecisionBars
) -> Gauges:
    """The gauges of a judge of single responses: its failures. Parameters as of `failure_gauge`."""
    bias = unknown_gauge(NOT_OF_SCORES, bars.bias)
    return Gauges(
        failures=failure_gauge(failed, scored, cluster, bars.failures),
        inconsistency=unknown_gauge(NOT_OF_SCORES, bars.inconsistency),
        position=bias,
        length=bias,
        own_family=bias,
    )


def share_gauge(share: Contrast | None, bar: float, why: str) -> Gauge:
    if share is None:
        return unknown_gauge(why, bar)
    number = wilson_from_variance(
        Estimate(share.value, share.n), len(share.cluster), share.standard_error**2, share.effective
    )
    return Gauge(number, bar, number.ci95 is not None and number.ci95[0] > bar)


def unknown_gauge(why: str, bar: float) -> Gauge:
    return Gauge(undefined_estimate(why), bar, exceeds=False)


def failure_gauge(failed: Sequence[BoolArray], answered: Sequence[BoolArray], cluster: IntArray, bar: float) -> Gauge:
    """Of each item that the judge answered or failed on, whether it failed on an aspect. Both masks: of each aspect."""
    on_any, answered_any = (np.logical_or.reduce(masks) for masks in (failed, answered))
    return share_gauge(mean_where(on_any, on_any | answered_any, cluster), bar, NO_CALLS)


def mean_where(value: BoolArray, counted: BoolArray, cluster: IntArray) -> Contrast | None:
    return contrast(value[counted].astype(np.float64), cluster[counted])


def inconsistent_verdicts(aspects: Sequence[JudgedAspect], cluster: IntArray) -> Contrast | None:
    """Of each verdict made from both orders, whether they disagree, aspects pooled."""
    part, whole = np.zeros((2, len(cluster)), dtype=np.int32)
    for aspect in aspects:
        if not aspect.is_derived:
            judged = judged_in_both_orders(aspect.own)
            whole += judged
            part += judged & aspect.own.inconsistent
    return ratio_contrast(part, whole, cluster)


def ratio_contrast(part: IntArray, whole: IntArray, cluster: IntArray) -> Contrast | None:
    """Σ part ÷ Σ whole; both of each comparison."""
    counted = np.flatnonzero(whole)
    made = contrast(part[counted] / whole[counted], cluster[counted], whole[counted].astype(np.float64))
    return None if made is None else replace(made, n=int(whole.sum()))


def first_shown_choices(aspects: Sequence[JudgedAspect], cluster: IntArray) -> Contrast | None:
    """Of each choice of a side on a comparison answered in both orders, whether it is for the first shown."""
    part, whole = np.zeros((2, len(cluster)), dtype=np.int32)
    for aspect in aspects:
        as_stored, swapped = aspect.own.by_order[:2]
        if as_stored is not None and swapped is not None:
            kind = order_kinds(as_stored, swapped)
            part += FIRST_OF_KIND[kind]
            whole += SIDES_OF_KIND[kind]
    return ratio_contrast(part, whole, cluster)


def position_gauge(first: Contrast | None, bar: float) -> Gauge:
    number = share_with_interval(first, ONE_ORDER)
    return Gauge(number, bar, is_beyond(number, bar, HALF))


def is_beyond(number: Estimate, bar: float, neutral: float = 0.0) -> bool:
    """Whether the whole interval is further than the bar from the neutral value."""
    if number.ci95 is None:
        return False
    low, high = number.ci95
    return low > neutral + bar or high < neutral - bar


def longer_side(items: Items) -> Sides:
    """The side of the longer response of each comparison, MISSING where both are equally long."""
    return np.select(
        [items.characters_a > items.characters_b, items.characters_a < items.characters_b], [0, 1], MISSING
    ).astype(np.int8)


def preference_gauge(aspects: Sequence[JudgedAspect], favoured: Sides, cluster: IntArray, bar: float) -> Gauge:
    """The judge − the reviewer majority, of choices of the favoured side where both chose a side, aspects pooled."""
    values, clusters = [], []
    for aspect in aspects:
        judge, people = sides_of_choices(aspect.own.choice[aspect.item]), sides_of_choices(aspect.majority)
        favoured_side = favoured[aspect.item]
        counted = has_side(judge) & has_side(people) & (favoured_side != MISSING)
        values.append((judge == favoured_side)[counted].astype(np.float64) - (people == favoured_side)[counted])
        clusters.append(cluster[aspect.item[counted]])
    pooled = contrast(np.concatenate(values), np.concatenate(clusters))
    number = difference_with_interval(pooled, NO_CHOICES)
    return Gauge(number, bar, is_beyond(number, bar))
