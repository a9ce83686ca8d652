"""People's votes where a rubric scores single responses: the higher of the two first scores of a review wins."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from django.db.models import BigIntegerField, Case, F, IntegerField, QuerySet, Value, When
from django.db.models.functions import Cast, Coalesce

from evaluations.domain import SAVED_REVIEW_STATES, Stage
from evaluations.models import Comparison, RubricAspect, Score
from evaluations.services.balloting import day_of
from evaluations.services.reporting.packing import MARKS_WIDTH, Rows, code, groups
from evaluations.services.reporting.voting import MARKS, PeopleRows, marks, numbered, unpacked_marks
from evaluations.stats.coding import ORDERS, IntArray
from evaluations.stats.deriving import choice_of_scores
from evaluations.stats.votes import Votes

NUMBERS: Final = ("review", "rater", "comparison", "aspect", "version", "side", "marks", "judge", "active", "day")
SCORED: Final = np.dtype([*((name, np.int64) for name in NUMBERS), ("value", np.float64)])
VOTE_COLUMNS: Final = ("item", "rater", "shown", "choice")


def read_scored_votes(
    comparisons: QuerySet[Comparison], place: Mapping[int, int], ids: IntArray
) -> dict[int, PeopleRows]:
    """What people's first scores of the two responses say, by aspect id: the higher one beyond the margin wins."""
    if not place:
        return {}
    rows = read_reviewed_scores(comparisons, place, ids)
    if not len(rows):
        return {}
    margins = {
        (version, about): margin
        for version, about, margin in RubricAspect.objects.filter(version__in=set(rows["version"].tolist()))
        .order_by()
        .values_list("version_id", "aspect_id", "tie_margin")
    }
    found = {}
    for (about,), part in groups(rows, "aspect"):
        found[about] = paired(part, place, ids, margins)
    return found


def read_reviewed_scores(comparisons: QuerySet[Comparison], place: Mapping[int, int], ids: IntArray) -> Rows:
    """A row for each first score of a saved review of one of these comparisons by one of these raters."""
    given = Score.objects.filter(
        rater__in=list(place),
        stage=Stage.FIRST.value,
        review__state__in=[state.value for state in SAVED_REVIEW_STATES],
        review__comparison__in=comparisons.order_by().values("pk"),
    )
    side = Case(
        When(response=F("review__comparison__response_a"), then=Value(0)), default=Value(1), output_field=IntegerField()
    )
    told = code("review__shown", ORDERS) * MARKS_WIDTH + marks()
    columns = given.order_by("pk").values_list(
        "review_id",
        "rater_id",
        "review__comparison_id",
        "aspect_id",
        "review__rubric_version_id",
        side,
        told,
        Cast(Coalesce("review__judge_id", 0), BigIntegerField()),
        "review__active_ms",
        "review__first_saved_at",
        "value",
    )
    told_when = ((*row[:-2], day_of(row[-2]), row[-1]) for row in columns.iterator(chunk_size=10_000))
    rows = np.fromiter(told_when, dtype=SCORED)
    return rows[np.isin(rows["comparison"], ids)]


def paired(rows: Rows, place: Mapping[int, int], ids: IntArray, margins: Mapping[tuple[int, int], float]) -> PeopleRows:
    """The two scores of each review on one aspect, as one vote."""
    first = rows[rows["side"] == 0]
    second = rows[rows["side"] == 1]
    _, at_first, at_second = np.intersect1d(first["review"], second["review"], return_indices=True)
    first, second = first[at_first], second[at_second]
    margin = np.array([margins.get((int(one["version"]), int(one["aspect"])), 0.0) for one in first])
    choice = choice_of_scores(first["value"], second["value"], margin)
    return as_reviewed(first, np.searchsorted(ids, first["comparison"]), choice, place)


def as_reviewed(rows: Rows, item: IntArray, choice: IntArray, place: Mapping[int, int]) -> PeopleRows:
    """A vote for each row, with all that is known of its review."""
    shown, told = np.divmod(rows["marks"], MARKS_WIDTH)
    return PeopleRows(
        Votes(item, numbered(rows["rater"], place), shown, choice),
        **unpacked_marks(told),
        review=rows["review"],
        judge=rows["judge"],
        day=rows["day"],
        active=rows["active"],
    )


def joined(parts: list[PeopleRows]) -> PeopleRows:
    """The votes on an aspect that some people gave as choices and others as scores."""
    if len(parts) == 1:
        return parts[0]
    votes = Votes(*(np.concatenate([getattr(one.votes, name) for one in parts]) for name in VOTE_COLUMNS))
    return PeopleRows(votes, *(np.concatenate([getattr(one, name) for one in parts]) for name in MARKS))
