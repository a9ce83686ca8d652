"""The bias board: what moves a judge besides what the responses say, with people's own beside it."""

from collections.abc import Mapping
from dataclasses import dataclass

from evaluations.stats.bias.breakdown import Breakdown, breakdown
from evaluations.stats.bias.family import own_family, without_family
from evaluations.stats.bias.ground import Ground
from evaluations.stats.bias.length import Length, length
from evaluations.stats.bias.people import Judged, People, judged, meetings
from evaluations.stats.bias.sides import sides
from evaluations.stats.bias.tendency import Tendency, preference, tie_rate, unknown
from evaluations.stats.coding import IntArray
from evaluations.stats.items import Items
from evaluations.stats.position import Position, in_both_orders, positions


@dataclass(frozen=True)
class BiasBoard:
    """``markup``: by kind, how often the response that alone has it is chosen; ``same_family``: the one that alone is
    of the judge's family.
    """

    position: Position
    length: Length
    markup: Mapping[str, Tendency]
    same_family: Tendency
    ties: Tendency
    by_category: Breakdown
    by_pair: Breakdown


def bias_board(
    ground: Ground,
    people: People,
    choice: IntArray,
    as_stored: IntArray,
    swapped: IntArray,
    family: str,
    claims: int = 1,
) -> BiasBoard:
    """Of one judge on one aspect. ``choice``: its one verdict on each item, ``as_stored`` and ``swapped`` its choice in
    either order, MISSING where there is none. ``family``: the judge's, empty where not set. ``claims``: how many
    preferences the report may claim, of all judges on all aspects.
    """
    side = sides(choice)
    of = judged(ground, people, side)
    longer, kind = ground.lengths.longer, in_both_orders(as_stored, swapped)
    by_category, by_pair = meetings(people.by_category, side), meetings(people.by_pair, side)
    return BiasBoard(
        position=positions(ground.whole, kind)[0],
        length=length(ground.lengths, of, claims),
        markup={kind: preference(favoured, of) for kind, favoured in ground.marked_up.items()},
        same_family=same_family(ground.items, family, of, claims),
        ties=tie_rate(of),
        by_category=breakdown(ground.by_category, by_category, side, kind, longer),
        by_pair=breakdown(ground.by_pair, by_pair, side, kind, longer),
    )


def same_family(items: Items, family: str, of: Judged, claims: int) -> Tendency:
    own = own_family(items, family)
    why = without_family(items, family, own)
    return unknown(why) if why else preference(own, of, claims)
