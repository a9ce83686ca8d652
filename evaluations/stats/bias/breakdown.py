"""The headlines of a board by category or by pair of candidates."""

from dataclasses import dataclass

from evaluations.stats.bias.people import Meetings
from evaluations.stats.bias.shares import OF_BOTH, PEOPLE_DID, shares
from evaluations.stats.bias.sides import Sides
from evaluations.stats.bias.strata import Strata
from evaluations.stats.bias.tendency import NO_CHOICES, NOBODY, both_preferring, both_tying, preferring, tying
from evaluations.stats.coding import IntArray
from evaluations.stats.numbers import Number
from evaluations.stats.position import Position, positions


@dataclass(frozen=True)
class Stratum:
    """``name``: a category, or candidates A and B. ``people_…``: of single votes on comparisons on which the judge has
    a say as well.
    """

    name: tuple[str, ...]
    position: Position
    longer: Number
    people_longer: Number
    ties: Number
    people_ties: Number


@dataclass(frozen=True)
class Breakdown:
    """The strata with the most comparisons, most first; ``left_out``: how many there are besides."""

    strata: tuple[Stratum, ...]
    left_out: int


def breakdown(strata: Strata, met: Meetings, judge: Sides, kind: IntArray, longer: Sides) -> Breakdown:
    """``met``: the judge and single votes in these strata. One for each item: ``kind`` of the judge's verdicts
    `in_both_orders`, ``longer``: the side of the longer response.
    """
    rows = zip(
        strata.names,
        positions(strata, kind),
        preferring(strata, longer, judge),
        shares(both_preferring(met.sided, longer), PEOPLE_DID, OF_BOTH, NO_CHOICES),
        tying(strata, judge),
        shares(both_tying(met.all), PEOPLE_DID, OF_BOTH, NOBODY),
        strict=True,
    )
    return Breakdown(tuple(Stratum(*row) for row in rows), strata.left_out)
