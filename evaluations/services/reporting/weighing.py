"""Which comparisons had the same chance to come before people."""

from dataclasses import replace

import numpy as np
from django.db.models import Exists, OuterRef

from evaluations.domain import PickedBy, Strata
from evaluations.models import Evaluation, Review, Round
from evaluations.services.reporting.items import numbered
from evaluations.stats.items import Items


def with_strata(items: Items, evaluation: Evaluation) -> Items:
    """With the strata that reviewed rounds drew equally from: where both kinds did, each pair within each category.

    Rounds take the next of each stratum in the one random order, so that all that is drawn of a stratum is together a
    simple random sample of it, whether it was drawn equally or at random.
    """
    kinds = drawn_from(evaluation)
    stratum = np.zeros(len(items), dtype=np.int64)
    if Strata.CATEGORY in kinds:
        stratum += items.category
    if Strata.CANDIDATE_PAIR in kinds:
        names = len(items.candidates)
        stratum = (stratum * names + items.candidate_a) * names + items.candidate_b
    return replace(items, stratum=numbered(stratum)) if kinds else items


def drawn_from(evaluation: Evaluation) -> set[str]:
    """By what the rounds were stratified of which something is reviewed."""
    reviewed = Review.objects.filter(round=OuterRef("pk"), picked_by=PickedBy.STRATIFIED.value)
    rounds = Round.objects.filter(Exists(reviewed), evaluation=evaluation, strategy=PickedBy.STRATIFIED.value)
    return set(rounds.values_list("strata", flat=True))
