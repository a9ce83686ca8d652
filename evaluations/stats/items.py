"""What is known of the compared items before anyone says anything: their clusters, sides and lengths."""

from dataclasses import dataclass

from evaluations.stats.coding import IntArray


@dataclass(frozen=True)
class Items:
    """One entry for each comparison in every array; an item's number is its place.

    ``cluster``: numbers from 0. ``category``: places in ``categories``, MISSING where there is none.
    ``candidate_a`` and ``candidate_b``: places in ``candidates``, whose ``families`` stand beside them, empty where not
    set. ``characters_…``: the length of each response. ``markup_…``: the bits of `domain.Markup` it holds.
    ``query``: a number for each query. ``stratum``: numbers from 0; in each every item had the same chance to be drawn
    for people.
    """

    cluster: IntArray
    category: IntArray
    categories: tuple[str, ...]
    candidate_a: IntArray
    candidate_b: IntArray
    candidates: tuple[str, ...]
    families: tuple[str, ...]
    characters_a: IntArray
    characters_b: IntArray
    markup_a: IntArray
    markup_b: IntArray
    query: IntArray
    stratum: IntArray

    def __len__(self) -> int:
        return len(self.cluster)
