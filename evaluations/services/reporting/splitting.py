"""Which comparisons are in which part of a split, in Python and in SQL."""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from django.db.models import BigIntegerField, Count, ExpressionWrapper, F, Q, QuerySet

from evaluations.domain import FOLD, Split, SplitPart, joined
from evaluations.models import Comparison, Evaluation, Query, Response

NUMBER: Final = "query__cluster_number"


def default_split(evaluation: Evaluation) -> Split:
    """The one that report and export use where nobody asked for another."""
    return Split(seed=evaluation.slug)


def together(evaluation: Evaluation) -> Mapping[str, str]:
    """Cluster → the cluster whose part it takes, of those that share a query word for word."""
    queries = Query.objects.filter(evaluation=evaluation).order_by()
    shared = queries.values("sha256").annotate(clusters=Count("cluster", distinct=True)).filter(clusters__gt=1)
    pairs = queries.filter(sha256__in=shared.values("sha256")).values_list("cluster", "sha256").distinct()
    return joined(sorted(pairs))


def parting(evaluation: Evaluation, split: Split) -> Callable[[str], SplitPart]:
    """What says of a cluster which part it is in."""
    moved = together(evaluation)
    return lambda cluster: split.part_of(moved.get(cluster, cluster))


Parted = TypeVar("Parted", Comparison, Response)


def in_part(rows: "QuerySet[Parted]", evaluation: Evaluation, split: Split, part: SplitPart) -> "QuerySet[Parted]":
    """Those whose cluster is in this part."""
    low, high = split.bounds(part)
    of = parting(evaluation, split)
    moved = together(evaluation)
    here = [cluster for cluster in moved if of(cluster) == part]
    # By the operator: SQLite's function of that name, which is Django's own, counts in floating point.
    placed = rows.alias(
        place=ExpressionWrapper(
            (F(NUMBER) % FOLD * split.multiplier + split.offset) % FOLD, output_field=BigIntegerField()
        )
    )
    by_number = Q(place__gte=low, place__lt=high)
    if not moved:
        return placed.filter(by_number)
    return placed.filter((by_number & ~Q(query__cluster__in=list(moved))) | Q(query__cluster__in=here))
