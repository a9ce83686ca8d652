"""The compared items: their clusters, candidates, response lengths and strata."""

from dataclasses import dataclass, fields, replace

import numpy as np

from evaluations.domain.json_values import JsonDict
from evaluations.stats.coding import BoolArray, IntArray


@dataclass(frozen=True)
class Items:
    """The compared items: one entry for each comparison in every array, indexed by item number.

    ``cluster``: numbers from 0. ``category``: indices in ``categories``, MISSING where there is none.
    ``candidate_a`` and ``candidate_b``: indices in ``candidates``; ``families``: of each candidate, empty where not
    set. ``characters_…``: the length of each response. ``markup_…``: the bits of `domain.Markup` it holds.
    ``query``: a number for each query. ``stratum``: numbers from 0; in each every item had the same chance to be drawn
    for people. ``random_order``: numbers in the random order in which judges and people meet the comparisons, if known.
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
    random_order: IntArray | None = None

    def __len__(self) -> int:
        return len(self.cluster)

    def where(self, chosen: BoolArray) -> "Items":
        """The chosen comparisons, with all candidates and categories."""
        columns = ((field.name, getattr(self, field.name)) for field in fields(self))
        selected: JsonDict = {name: column[chosen] for name, column in columns if isinstance(column, np.ndarray)}
        return replace(self, **selected)
