"""Changes of what raters said: appended where they are made, and read as the state of each rater."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import Count, DateTimeField, F, IntegerField, Max, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from evaluations.models.bulk import insert_many
from evaluations.models.judges import Rater
from evaluations.models.progress import VerdictChange

CHANGE_COLUMNS: Final = ("created_at", "evaluation_id", "rater_id", "comparison_id", "response_id")


class ChangedRow(NamedTuple):
    """A rater, and the comparison or response on which what it said has changed."""

    rater: int
    comparison: int | None = None
    response: int | None = None


def record_changes(evaluation_id: int, changes: Iterable[ChangedRow], now: datetime | None = None) -> None:
    """Append these changes in the transaction that makes them."""
    moment = now or timezone.now()
    insert_many(VerdictChange, CHANGE_COLUMNS, [(moment, evaluation_id, *change) for change in changes])


def mark_raters_changed(raters: Iterable[int]) -> None:
    """Mark raters as changed by one bulk change, such as an import, after which the evaluation is recounted."""
    locked = Rater.objects.filter(pk__in=raters).order_by("pk").select_for_update(no_key=True)
    Rater.objects.filter(pk__in=[rater.pk for rater in locked]).update(
        verdicts_changed_at=Now(), verdict_changes=F("verdict_changes") + 1
    )


class RaterState(NamedTuple):
    """``changes`` grows with every change, and counting the changes leaves both values as they are."""

    changed_at: datetime | None
    changes: int
    is_counted: bool  # whether no change is left to count


def read_rater_states(raters: "QuerySet[Rater]") -> dict[int, RaterState]:
    """The state of each rater, of one moment: the sweep counts changes meanwhile."""
    uncounted = VerdictChange.objects.filter(rater=OuterRef("pk")).order_by().values("rater")
    number = Subquery(uncounted.annotate(number=Count("pk")).values("number"), output_field=IntegerField())
    last = Subquery(uncounted.annotate(last=Max("created_at")).values("last"), output_field=DateTimeField())
    rows = raters.annotate(uncounted=Coalesce(number, 0), last_change=last).values_list(
        "pk", "verdicts_changed_at", "last_change", "verdict_changes", "uncounted"
    )
    return {
        pk: RaterState(max((at for at in (counted_at, last_at) if at), default=None), counted + left, not left)
        for pk, counted_at, last_at, counted, left in rows
    }


class UncountedChange(NamedTuple):
    pk: int
    created_at: datetime
    rater: int
    comparison: int | None
    response: int | None


def list_changes(evaluation: int, limit: int) -> Sequence[UncountedChange]:
    """The first changes of an evaluation that are not counted yet."""
    rows = VerdictChange.objects.filter(evaluation=evaluation).order_by("pk")
    columns = rows.values_list("pk", "created_at", "rater_id", "comparison_id", "response_id")
    return [UncountedChange(*row) for row in columns[:limit]]
