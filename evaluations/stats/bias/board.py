"""The bias board of one judge: position, length, markup and self-preference, with the same for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.bias.length_slope import length_slope
from evaluations.stats.bias.paired_sides import HumanSides, JudgeHumanPairs, JudgeSides, judge_sides, pair_sides
from evaluations.stats.bias.position import PositionBias, order_kinds, position_bias_by_stratum
from evaluations.stats.bias.strata import Strata
from evaluations.stats.bias.stratified_shares import BOTH_RATERS_ALL, PEOPLE_EVENT, stratum_shares
from evaluations.stats.bias.tendency import (
    NO_CHOICES,
    NO_VOTES,
    BiasTendency,
    paired_preference_counts,
    paired_tie_counts,
    preference_shares,
    side_preference,
    tie_shares,
    tie_tendency,
    unknown_tendency,
)
from evaluations.stats.bias.traits import ComparisonTraits, LengthTraits
from evaluations.stats.coding import MISSING, IntArray, Sides, exclusive_side, has_side, sides_of_choices
from evaluations.stats.estimates import Estimate
from evaluations.stats.items import Items


@dataclass(frozen=True)
class StratumBias:
    """The biases in one stratum. ``name``: a category, or candidates A and B.

    ``people_…``: of single votes on comparisons that the judge has a verdict on.
    """

    name: tuple[str, ...]
    position: PositionBias
    longer: Estimate
    people_longer: Estimate
    ties: Estimate
    people_ties: Estimate


@dataclass(frozen=True)
class BiasBreakdown:
    """The strata with the most comparisons first; ``left_out``: the number of further strata."""

    strata: tuple[StratumBias, ...]
    left_out: int


def break_down_bias(
    strata: Strata, pairs: JudgeHumanPairs, judge: Sides, kind: IntArray, longer: Sides
) -> BiasBreakdown:
    """Biases by stratum. ``pairs``: the judge's sides paired with single votes, in these strata.

    Of each item: ``kind`` of the judge's pair of verdicts (`order_kinds`), ``longer``: the side of the longer response.
    """
    rows = zip(
        strata.names,
        position_bias_by_stratum(strata, kind),
        preference_shares(strata, longer, judge),
        stratum_shares(paired_preference_counts(pairs.sided, longer), PEOPLE_EVENT, BOTH_RATERS_ALL, NO_CHOICES),
        tie_shares(strata, judge),
        stratum_shares(paired_tie_counts(pairs.all), PEOPLE_EVENT, BOTH_RATERS_ALL, NO_VOTES),
        strict=True,
    )
    return BiasBreakdown(tuple(StratumBias(*row) for row in rows), strata.left_out)


NO_FAMILY: Final = "The judge's family is not set."
NO_FAMILIES: Final = "No model has a family set."
NOT_ONE_OF_BOTH: Final = "No comparison has a model of the judge's family and one of another family."


def own_family_side(items: Items, family: str) -> Sides:
    """The side that alone is of this family; MISSING elsewhere, and where the family of either side is not set."""
    families = [name.strip().casefold() for name in items.families]
    is_set = np.array([bool(name) for name in families], dtype=bool)
    own = np.array([name == family.strip().casefold() for name in families], dtype=bool)
    a, b = items.candidate_a, items.candidate_b
    return np.where(is_set[a] & is_set[b], exclusive_side(own[a], own[b]), MISSING).astype(np.int8)


def explain_no_self_preference(items: Items, family: str, own: Sides) -> str | None:
    if not family.strip():
        return NO_FAMILY
    if not any(name.strip() for name in items.families):
        return NO_FAMILIES
    return None if np.any(own != MISSING) else NOT_ONE_OF_BOTH


@dataclass(frozen=True)
class LengthBias:
    """Length bias of one judge. ``longer``: how often the longer response is chosen.

    ``equal``: how many comparisons with a verdict are left out because their responses are equally long. ``slope``:
    change of the log odds per unit of the log length ratio; ``people_slope``: of people's votes on the comparisons on
    which the judge chose a side too.
    """

    longer: BiasTendency
    equal: int
    slope: Estimate
    people_slope: Estimate


def length_bias(lengths: LengthTraits, sides: JudgeSides, claims: int) -> LengthBias:
    votes = sides.votes.sided
    sided = has_side(sides.side)
    return LengthBias(
        longer=side_preference(lengths.longer, sides, claims),
        equal=int(np.count_nonzero((lengths.longer == MISSING) & (sides.side != MISSING))),
        slope=length_slope(lengths, sides.strata.where(sided), np.flatnonzero(sided), sides.side[sided]),
        people_slope=length_slope(lengths, votes.strata, votes.item, votes.people_side),
    )


@dataclass(frozen=True)
class BiasBoard:
    """All biases of one judge. ``markup``: by kind, how often the response that alone has it is chosen.

    ``same_family``: how often the response that alone is of the judge's family is chosen.
    """

    position: PositionBias
    length: LengthBias
    markup: Mapping[str, BiasTendency]
    same_family: BiasTendency
    ties: BiasTendency
    by_category: BiasBreakdown
    by_pair: BiasBreakdown


def bias_board(
    traits: ComparisonTraits,
    people: HumanSides,
    choice: IntArray,
    as_stored: IntArray,
    swapped: IntArray,
    family: str,
    claims: int = 1,
) -> BiasBoard:
    """The bias board of one judge on one aspect.

    Of each item, MISSING where there is none: ``choice``, the judge's verdict; ``as_stored`` and ``swapped``, its
    choice in either order. ``family``: the judge's, empty where not set. ``claims``: how many preferences the report
    may claim, of all judges on all aspects.
    """
    side = sides_of_choices(choice)
    sides = judge_sides(traits, people, side)
    longer, kind = traits.lengths.longer, order_kinds(as_stored, swapped)
    by_category, by_pair = pair_sides(people.by_category, side), pair_sides(people.by_pair, side)
    return BiasBoard(
        position=position_bias_by_stratum(traits.whole, kind)[0],
        length=length_bias(traits.lengths, sides, claims),
        markup={kind: side_preference(favoured, sides) for kind, favoured in traits.marked_up.items()},
        same_family=self_preference(traits.items, family, sides, claims),
        ties=tie_tendency(sides),
        by_category=break_down_bias(traits.by_category, by_category, side, kind, longer),
        by_pair=break_down_bias(traits.by_pair, by_pair, side, kind, longer),
    )


def self_preference(items: Items, family: str, sides: JudgeSides, claims: int) -> BiasTendency:
    own = own_family_side(items, family)
    why = explain_no_self_preference(items, family, own)
    return unknown_tendency(why) if why else side_preference(own, sides, claims)
