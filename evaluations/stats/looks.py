"""When one judge may be called better than another: on the test part of a split, a few times, over all aspects."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.comparing import Comparison
from evaluations.stats.multiplicity import holm

ALPHA: Final = 0.05
LOOKS: Final = 3

NO_TEST_PART: Final = (
    "This is no report on the whole test part under the default rules, so no judge is called better: the p values are "
    "exploratory."
)


@dataclass(frozen=True)
class Look:
    """One look at the test part, counted from 1. ``of`` is how many there are, fixed when the split was made."""

    number: int
    of: int = LOOKS

    @property
    def is_left(self) -> bool:
        return self.number <= self.of

    @property
    def level(self) -> float:
        """Every look has its share of α, so that all of them together err no more often than one (Bonferroni)."""
        return ALPHA / self.of


@dataclass(frozen=True)
class ComparedAspect:
    """``p_adjusted``: by Holm over the aspects that have a p value.

    ``better``: the name of a judge, decided by Holm over all judges and aspects of the report; or None.
    """

    comparison: Comparison
    p_adjusted: float | None
    better: str | None


@dataclass(frozen=True)
class ComparedJudges:
    """``level``: what an adjusted p value is held against; None where the comparison is ``exploratory``."""

    first: str
    second: str
    aspects: dict[str, ComparedAspect]
    exploratory: bool
    look: int | None
    looks: int | None
    level: float | None
    words: str


def over_aspects(
    first: str,
    second: str,
    by_aspect: Mapping[str, Comparison],
    look: Look | None,
    family: Mapping[str, float | None] | None = None,
    size: int | None = None,
) -> ComparedJudges:
    """Two judges on all aspects. ``look``: which look at a test part this is, None where it is none.

    ``family``: p by aspect, adjusted over all ``size`` comparisons of judges and aspects in the report, by which a
    judge is called better; without it these two are all.
    """
    counts = look if look and look.is_left else None
    adjusted = adjusted_by_aspect(by_aspect)
    decisive = adjusted if family is None else family
    return ComparedJudges(
        first=first,
        second=second,
        aspects={
            aspect: ComparedAspect(one, adjusted[aspect], better(one, decisive[aspect], counts, first, second))
            for aspect, one in by_aspect.items()
        },
        exploratory=counts is None,
        look=look.number if look else None,
        looks=look.of if look else None,
        level=counts.level if counts else None,
        words=in_words(look, sum(p is not None for p in adjusted.values()) if size is None else size),
    )


def adjusted_by_aspect(by_aspect: Mapping[str, Comparison]) -> dict[str, float | None]:
    found = {aspect: one.p for aspect, one in by_aspect.items() if one.p is not None}
    adjusted = dict(zip(found, holm(np.array(list(found.values()))).tolist(), strict=True))
    return {aspect: adjusted.get(aspect) for aspect in by_aspect}


def better(one: Comparison, p: float | None, look: Look | None, first: str, second: str) -> str | None:
    if look is None or p is None or p > look.level or not one.difference.value:
        return None
    return first if one.difference.value > 0 else second


def in_words(look: Look | None, comparisons: int) -> str:
    if look is None:
        return NO_TEST_PART
    if not look.is_left:
        return (
            f"The {look.of} looks at the test part are used up, so no judge is called better: the p values are "
            "exploratory."
        )
    return (
        f"Look {look.number} of {look.of} at the test part. A judge is called better where p, adjusted by Holm over "
        f"{comparisons} comparison{'s' * (comparisons != 1)} of judges and aspects, is at most {ALPHA:g} ÷ {look.of} = "
        f"{look.level:.4f}."
    )
