"""Traits of the comparisons that may bias a rater: longer response, markup."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.domain.texts import Markup
from evaluations.stats.bias.strata import Strata, single_stratum, strata_by_candidate_pair, strata_by_category
from evaluations.stats.coding import MISSING, A, B, FloatArray, IntArray, Sides, exclusive_side
from evaluations.stats.items import Items

ANY: Final = "any"
FINENESS: Final = 50  # log ratios of lengths are rounded to 1 ÷ this: by a percent of a length at most


@dataclass(frozen=True)
class LengthTraits:
    """The lengths of the two responses of each item.

    ``longer``: the side of the longer response, MISSING where both are equally long. ``log_ratios``: the distinct
    values of log((1 + characters of A) ÷ (1 + characters of B)), rounded; ``ratio``: of each item, its index among
    them.
    """

    longer: Sides
    ratio: IntArray
    log_ratios: FloatArray


@dataclass(frozen=True)
class ComparisonTraits:
    """The traits of all comparisons. ``marked_up``: by kind of Markdown, the side that alone has it, or MISSING."""

    items: Items
    whole: Strata
    by_category: Strata
    by_pair: Strata
    lengths: LengthTraits
    marked_up: Mapping[str, Sides]


def comparison_traits(items: Items) -> ComparisonTraits:
    return ComparisonTraits(
        items=items,
        whole=single_stratum(items.cluster),
        by_category=strata_by_category(items),
        by_pair=strata_by_candidate_pair(items),
        lengths=length_traits(items.characters_a, items.characters_b),
        marked_up=markup_sides(items.markup_a, items.markup_b),
    )


def length_traits(a: IntArray, b: IntArray) -> LengthTraits:
    longer = np.where(a == b, MISSING, np.where(a > b, A, B)).astype(np.int8)
    rounded = np.rint((np.log1p(a) - np.log1p(b)) * FINENESS).astype(np.int64)
    least = int(rounded.min(initial=0))
    log_ratios = np.arange(least, int(rounded.max(initial=0)) + 1) / FINENESS
    return LengthTraits(longer, rounded - least, log_ratios)


def markup_sides(a: IntArray, b: IntArray) -> dict[str, Sides]:
    sides = {ANY: exclusive_side(a > 0, b > 0)}
    for kind in Markup:
        sides[str(kind.name).lower()] = exclusive_side(a & kind > 0, b & kind > 0)
    return sides
