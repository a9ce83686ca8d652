"""Human votes as arrays, derived from the scores given in reviews."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from django.db.models import BigIntegerField, Case, F, IntegerField, QuerySet, Value, When
from django.db.models.functions import Cast, Coalesce

from evaluations.domain.choices import Stage
from evaluations.domain.packed_votes import PACKED_ORDERS
from evaluations.domain.reviews import SAVED_REVIEW_STATES
from evaluations.models.comparisons import Comparison
from evaluations.models.verdicts import Score
from evaluations.stats.coding import IntArray
from evaluations.stats.judge_verdicts import choices_from_scores
from evaluations.stats.votes import Votes
from evaluations.verdicts.array_rows import MARKS_WIDTH, StructuredRows, encode_word, group_rows
from evaluations.verdicts.packed_votes import count_days_since_epoch
from evaluations.verdicts.score_choices import get_tie_margins
from evaluations.verdicts.vote_arrays import VOTE_MARKS, VoteArrays, decode_vote_marks, encode_vote_marks, number_raters

REVIEWED_SCORE_COLUMNS: Final = (
    "review",
    "rater",
    "comparison",
    "aspect",
    "version",
    "side",
    "marks",
    "judge",
    "active",
    "day",
)
REVIEWED_SCORE_ROW: Final = np.dtype([*((name, np.int64) for name in REVIEWED_SCORE_COLUMNS), ("value", np.float64)])
VOTE_COLUMNS: Final = ("item", "rater", "shown", "choice")


def read_scored_vote_arrays(
    comparisons: QuerySet[Comparison], place: Mapping[int, int], ids: IntArray
) -> dict[int, VoteArrays]:
    """Votes from people's first scores of both responses, by aspect id: the higher one beyond the margin wins."""
    if not place:
        return {}
    rows = read_reviewed_score_rows(comparisons, place, ids)
    if not len(rows):
        return {}
    margins = get_tie_margins(set(rows["version"].tolist()))
    found = {}
    for (about,), part in group_rows(rows, "aspect"):
        found[about] = pair_reviewed_scores(part, place, ids, margins)
    return found


def read_reviewed_score_rows(
    comparisons: QuerySet[Comparison], place: Mapping[int, int], ids: IntArray
) -> StructuredRows:
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
    told = encode_word("review__shown", PACKED_ORDERS) * MARKS_WIDTH + encode_vote_marks()
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
    told_when = ((*row[:-2], count_days_since_epoch(row[-2]), row[-1]) for row in columns.iterator(chunk_size=10_000))
    rows = np.fromiter(told_when, dtype=REVIEWED_SCORE_ROW)
    return rows[np.isin(rows["comparison"], ids)]


def pair_reviewed_scores(
    rows: StructuredRows, place: Mapping[int, int], ids: IntArray, margins: Mapping[tuple[int, int], float]
) -> VoteArrays:
    """The two scores of each review on one aspect, as one vote."""
    first = rows[rows["side"] == 0]
    second = rows[rows["side"] == 1]
    _, at_first, at_second = np.intersect1d(first["review"], second["review"], return_indices=True)
    first, second = first[at_first], second[at_second]
    margin = np.array([margins.get((int(one["version"]), int(one["aspect"])), 0.0) for one in first])
    choice = choices_from_scores(first["value"], second["value"], margin)
    return build_reviewed_votes(first, np.searchsorted(ids, first["comparison"]), choice, place)


def build_reviewed_votes(
    rows: StructuredRows, item: IntArray, choice: IntArray, place: Mapping[int, int]
) -> VoteArrays:
    """A vote for each row, with all that is known of its review."""
    shown, told = np.divmod(rows["marks"], MARKS_WIDTH)
    return VoteArrays(
        Votes(item, number_raters(rows["rater"], place), shown, choice),
        **decode_vote_marks(told),
        review=rows["review"],
        judge=rows["judge"],
        day=rows["day"],
        active=rows["active"],
    )


def join_vote_arrays(parts: list[VoteArrays]) -> VoteArrays:
    """The votes on an aspect that some people gave as choices and others as scores."""
    if len(parts) == 1:
        return parts[0]
    votes = Votes(*(np.concatenate([getattr(one.votes, name) for one in parts]) for name in VOTE_COLUMNS))
    return VoteArrays(votes, *(np.concatenate([getattr(one, name) for one in parts]) for name in VOTE_MARKS))
