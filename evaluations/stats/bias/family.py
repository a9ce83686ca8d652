"""Which response comes from the judge's own family of models."""

from typing import Final

import numpy as np

from evaluations.stats.bias.sides import Sides, only_one
from evaluations.stats.coding import MISSING
from evaluations.stats.items import Items

NO_FAMILY: Final = "The judge's family is not set."
NO_FAMILIES: Final = "No candidate has a family set."
NOT_ONE_OF_BOTH: Final = "No comparison is between a candidate of the judge's family and one of another."


def own_family(items: Items, family: str) -> Sides:
    """The side that alone is of this family, MISSING elsewhere and where the family of either is not set."""
    families = [one.strip().casefold() for one in items.families]
    known = np.array([bool(one) for one in families], dtype=bool)
    own = np.array([one == family.strip().casefold() for one in families], dtype=bool)
    a, b = items.candidate_a, items.candidate_b
    return np.where(known[a] & known[b], only_one(own[a], own[b]), MISSING).astype(np.int8)


def without_family(items: Items, family: str, own: Sides) -> str | None:
    """Why nothing can be said of a preference for it."""
    if not family.strip():
        return NO_FAMILY
    if not any(one.strip() for one in items.families):
        return NO_FAMILIES
    return None if np.any(own != MISSING) else NOT_ONE_OF_BOTH
