"""Scores of single responses as they were given, so that raters of responses can be held against each other."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from evaluations.domain import SAVED_REVIEW_STATES, PickedBy, RaterKind, Stage
from evaluations.models import Aspect, Comparison, Rater, Score
from evaluations.services.reporting.deriving import read_sides
from evaluations.services.reporting.items import numbered
from evaluations.services.reporting.packing import Rows, groups
from evaluations.services.reporting.unpacking import Places, unfinished_imports
from evaluations.stats.deriving import means
from evaluations.stats.parts import AspectScores
from evaluations.stats.several_scores import Scores

NUMBERS: Final = ("rater", "response", "aspect", "comparison", "cluster")
SCORE: Final = np.dtype([*((name, np.int64) for name in NUMBERS), ("value", np.float64)])


def read_aspect_scores(
    aspects: Sequence[Aspect], raters: Sequence[Rater], comparisons: QuerySet[Comparison], places: Places
) -> dict[str, AspectScores]:
    """By the aspect's key, in the order of the aspects: people's first scores, those that came in files, and judges'.

    What was scored in a review counts where its comparison is one of these, whatever else its responses stand in;
    what came in files, and what judges said, where the response stands in one of them.
    """
    wanted = [rater for rater in raters if rater.kind != RaterKind.GOLD]
    rows = np.fromiter(given_by(wanted).iterator(chunk_size=10_000), dtype=SCORE)
    if not len(rows):
        return {}
    _, stands = read_sides(comparisons, places.ids).known(rows["response"])
    rows = rows[np.where(rows["comparison"] > 0, np.isin(rows["comparison"], places.ids), stands)]
    given = {about: part for (about,), part in groups(rows, "aspect")}
    return {one.key: on_aspect(one, given[one.pk], wanted) for one in aspects if one.pk in given}


def given_by(raters: Sequence[Rater]) -> "QuerySet[Score, Any]":
    saved = [state.value for state in SAVED_REVIEW_STATES]
    given = Score.all_rows.filter(Q(review__isnull=True) | Q(review__state__in=saved), rater__in=raters)
    given = given.exclude(review__isnull=False, review__picked_by=PickedBy.CALIBRATION.value)
    if hidden := unfinished_imports({rater.evaluation_id for rater in raters}):
        given = given.exclude(source_import__in=hidden)
    reviewed = Coalesce("review__comparison_id", Value(0))
    columns = ("rater_id", "response_id", "aspect_id", reviewed, F("response__query__cluster_number"))
    return given.filter(stage=Stage.FIRST.value).order_by("pk").values_list(*columns, "value")


def on_aspect(aspect: Aspect, rows: Rows, raters: Sequence[Rater]) -> AspectScores:
    """Responses numbered from 0; a judge's samples as their mean, NaN where it has none."""
    responses, first, unit = np.unique(rows["response"], return_index=True, return_inverse=True)
    people = [rater for rater in raters if rater.kind == RaterKind.HUMAN]
    number = {rater.pk: place for place, rater in enumerate(people)}
    by_person = np.isin(rows["rater"], list(number))
    whose = np.array([number[one] for one in rows["rater"][by_person].tolist()], dtype=np.int64)
    return AspectScores(
        name=aspect.name,
        people=Scores(unit[by_person], whose, rows["value"][by_person]),
        names=tuple(rater.name for rater in people),
        judges=means_of(rows, unit, len(responses), raters),
        cluster=numbered(rows["cluster"][first]),
    )


def means_of(rows: Rows, unit: Any, responses: int, raters: Sequence[Rater]) -> Mapping[str, Any]:
    found = {}
    for rater in raters:
        own = rows["rater"] == rater.pk
        if rater.kind == RaterKind.JUDGE and own.any():
            found[rater.name] = means(unit[own], rows["value"][own], responses)
    return found
