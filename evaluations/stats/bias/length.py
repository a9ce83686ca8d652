"""Whether the longer response is chosen more often."""

from dataclasses import dataclass

import numpy as np

from evaluations.stats.bias.ground import Lengths
from evaluations.stats.bias.people import Judged
from evaluations.stats.bias.sides import has_side
from evaluations.stats.bias.slope import slope
from evaluations.stats.bias.tendency import Tendency, preference
from evaluations.stats.coding import MISSING
from evaluations.stats.numbers import Number


@dataclass(frozen=True)
class Length:
    """``longer``: how often the longer response is chosen. ``equal``: comparisons that the judge has a verdict on and
    whose responses are equally long, left out. ``slope``: change of the log odds per unit of the log length ratio;
    ``people_slope``: that of people's votes on the comparisons on which the judge chose a side too.
    """

    longer: Tendency
    equal: int
    slope: Number
    people_slope: Number


def length(lengths: Lengths, of: Judged, claims: int) -> Length:
    votes = of.votes.sided
    sided = has_side(of.side)
    return Length(
        longer=preference(lengths.longer, of, claims),
        equal=int(np.count_nonzero((lengths.longer == MISSING) & (of.side != MISSING))),
        slope=slope(lengths, of.strata.where(sided), np.flatnonzero(sided), of.side[sided]),
        people_slope=slope(lengths, votes.strata, votes.item, votes.people),
    )
