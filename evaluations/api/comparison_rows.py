"""Rows of a list of comparisons as the API shows them."""

from collections.abc import Sequence
from typing import Final

from django.db.models import QuerySet
from ninja import Field, Schema

from evaluations.access import Action, is_allowed
from evaluations.models.comparisons import Comparison, load_tag_names
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.verdicts.vote_counts import VoteCounts, count_raters
from evaluations.visibility import can_see_judges, can_see_names, visible_comparisons


class ComparisonOut(Schema):
    """``candidate_a`` and ``candidate_b`` are null while you may not know them: review it first."""

    id: int
    query_id: str
    query: str
    category: str
    candidate_a: str | None
    candidate_b: str | None
    flags: list[str]
    reviewers: int
    gold: int
    judges: int | None
    calls_waiting: int | None
    calls_failed: int | None
    labelled: int | None = Field(description="aspects with a label from reviewers")
    split: int | None
    tags: list[str]


class ComparisonPageOut(Schema):
    items: list[ComparisonOut]
    next: str | None
    is_whole: bool = Field(description="false if the search reached its time limit: continue with `next`")


# Lists show neither the messages of a query nor those of its responses: they are left unread.
ROW_COLUMNS: Final = (
    *("evaluation", "query__key", "query__text", "query__category", "query__flags"),
    *("response_a__candidate__name", "response_a__flags", "response_b__candidate__name", "response_b__flags"),
)


def select_row_columns(comparisons: "QuerySet[Comparison]") -> "QuerySet[Comparison]":
    """Select the columns that lists show, in the order of the ids."""
    related = comparisons.select_related("query", "response_a__candidate", "response_b__candidate")
    return related.only(*ROW_COLUMNS).order_by("pk")


def serialize_comparisons(user: User, evaluation: Evaluation, rows: Sequence[Comparison]) -> list[ComparisonOut]:
    ids = [row.pk for row in rows]
    counts = count_raters(ids)
    visible = set(visible_comparisons(user, evaluation).filter(pk__in=ids).values_list("pk", flat=True))
    sees_names = bool(visible) and can_see_names(user, evaluation)
    sees_judges, sees_all = can_see_judges(user, evaluation), is_allowed(user, Action.SEE_ALL, evaluation)
    tags = load_tag_names(ids) if sees_all else {}
    return [
        serialize_comparison(
            row,
            counts[row.pk],
            tags.get(row.pk, []),
            is_visible=row.pk in visible,
            sees_names=sees_names,
            sees_judges=sees_judges,
        )
        for row in rows
    ]


def serialize_comparison(
    row: Comparison, counts: VoteCounts, tags: list[str], *, is_visible: bool, sees_names: bool, sees_judges: bool
) -> ComparisonOut:
    is_named = is_visible and sees_names
    return ComparisonOut(
        id=row.pk,
        query_id=row.query.key,
        query=row.query.text,
        category=row.query.category,
        candidate_a=row.response_a.candidate.name if is_named else None,
        candidate_b=row.response_b.candidate.name if is_named else None,
        flags=list(row.flags),
        reviewers=counts.people,
        gold=counts.gold,
        judges=counts.judges if sees_judges else None,
        calls_waiting=counts.waiting if sees_judges else None,
        calls_failed=counts.failed if sees_judges else None,
        labelled=counts.labelled if is_visible else None,
        split=counts.split if is_visible else None,
        tags=tags,
    )
