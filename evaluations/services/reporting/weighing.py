"""With which probability each comparison came before people, where that is known."""

import numpy as np
from django.db.models import BigIntegerField, F
from django.db.models.functions import Cast

from evaluations.domain import PickedBy
from evaluations.models import Rater, Review
from evaluations.services.reporting.columns import columns
from evaluations.services.reporting.unpacking import Places, inside
from evaluations.services.reporting.voting import DRAWN_AT_RANDOM, DRAWN_IN_STRATA, PeopleBallots
from evaluations.stats.contributions import FloatArray

STEPS = 10**12  # of a probability, read as a whole number


def read_probability(people: PeopleBallots, places: Places, raters: list[Rater]) -> FloatArray:
    """One entry for each comparison, NaN where nobody reviewed it that counts.

    All that were drawn in the one random order weigh alike: by the share of comparisons that were. What was drawn in
    strata has the share of its stratum. Both samples stand for all comparisons, so each is weighed by its own.
    """
    found = np.full(len(places.ids), np.nan)
    in_strata, at_random = (people.item[people.picked == way] for way in (DRAWN_IN_STRATA, DRAWN_AT_RANDOM))
    if not len(in_strata):
        found[at_random] = 1.0
        return found
    reviews = Review.objects.filter(rater__in=raters, picked_by=PickedBy.STRATIFIED.value, probability__isnull=False)
    share = Cast(F("probability") * STEPS, BigIntegerField())
    item, probability = inside(places, *columns(reviews.values_list("comparison_id", share), 2))
    found[item] = probability / STEPS
    found[at_random] = len(np.unique(at_random)) / len(places.ids)
    return found
