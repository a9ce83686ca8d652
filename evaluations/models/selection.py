"""Which comparisons or responses a report's rules, an export's values or a part of the split select."""

import json
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Final, TypeVar

from django.db import connection
from django.db.models import BigIntegerField, Count, ExpressionWrapper, F, Q, QuerySet
from django.db.models.fields.json import KeyTransform

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ImportState
from evaluations.domain.reports import ReportRules
from evaluations.domain.splits import SPLIT_MODULUS, Split, SplitPart, join_clusters
from evaluations.models.comparison_filter import apply_comparison_filter
from evaluations.models.comparisons import IS_SINGLE, Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import


def list_finished_comparisons(evaluation: Evaluation) -> "QuerySet[Comparison]":
    """The comparisons without those of unfinished imports, which are few: a join would cost more than all else."""
    rows = Comparison.all_rows.filter(evaluation=evaluation).exclude(IS_SINGLE)
    hidden = list_ids_of_unfinished_imports(evaluation)
    return rows.filter(Q(source_import=None) | ~Q(source_import__in=hidden)) if hidden else rows


def list_categories(evaluation: Evaluation, limit: int | None = 200) -> list[str]:
    """The categories of an evaluation's queries in order, up to ``limit``."""
    queries = Query.all_rows.filter(evaluation=evaluation, category__gt="")
    # Looking up the import of each query would take the answer from the index: 145 ms instead of 5 at 100,000.
    hidden = list_ids_of_unfinished_imports(evaluation)
    if hidden:
        queries = queries.exclude(source_import__in=hidden)
    elif limit is not None:
        with connection.cursor() as cursor:
            cursor.execute(DISTINCT_CATEGORIES_SQL, [evaluation.pk, evaluation.pk, limit])
            return [name for (name,) in cursor.fetchall()]
    return list(queries.order_by("category").values_list("category", flat=True).distinct()[:limit])


# PostgreSQL reads a whole index for what is distinct in it.
DISTINCT_CATEGORIES_SQL: Final = """
WITH RECURSIVE names (category) AS (
    SELECT MIN(category) FROM evaluations_query WHERE evaluation_id = %s AND category > ''
    UNION ALL
    SELECT (SELECT MIN(q.category) FROM evaluations_query q WHERE q.evaluation_id = %s AND q.category > names.category)
    FROM names WHERE names.category IS NOT NULL
)
SELECT category FROM names WHERE category IS NOT NULL LIMIT %s
"""


def list_ids_of_unfinished_imports(evaluation: Evaluation) -> list[int]:
    """The ids of imports that may have rows that are not visible yet; usually none."""
    may_have_rows = Q(finished_at=None) | Q(state=ImportState.UNDOING)
    imports = Import.objects.filter(may_have_rows, evaluation=evaluation)
    return list(imports.exclude(state__in=(ImportState.DONE, ImportState.PREVIEWED)).values_list("pk", flat=True))


CLUSTER_NUMBER: Final = "query__cluster_number"


def get_default_split(evaluation: Evaluation) -> Split:
    """The split that reports and exports use by default."""
    return Split(seed=evaluation.slug)


def map_shared_clusters(evaluation: Evaluation) -> Mapping[str, str]:
    """Cluster → the cluster whose part it takes because both contain the same query text."""
    queries = Query.objects.filter(evaluation=evaluation).order_by()
    shared = queries.values("sha256").annotate(clusters=Count("cluster", distinct=True)).filter(clusters__gt=1)
    pairs = queries.filter(sha256__in=shared.values("sha256")).values_list("cluster", "sha256").distinct()
    return join_clusters(sorted(pairs))


def build_part_lookup(evaluation: Evaluation, split: Split) -> Callable[[str], SplitPart]:
    """A function from cluster to its part of the split."""
    shared = map_shared_clusters(evaluation)
    return lambda cluster: split.part_of(shared.get(cluster, cluster))


RowWithQuery = TypeVar("RowWithQuery", Comparison, Response)


def filter_by_split_part(
    rows: "QuerySet[RowWithQuery]", evaluation: Evaluation, split: Split, part: SplitPart
) -> "QuerySet[RowWithQuery]":
    """The rows whose cluster is in this part of the split."""
    low, high = split.bounds(part)
    shared = map_shared_clusters(evaluation)
    clusters_in_part = [cluster for cluster, joined in shared.items() if split.part_of(joined) == part]
    # With the operator: Django's MOD function for SQLite computes in floating point.
    numbered = rows.alias(
        place=ExpressionWrapper(
            (F(CLUSTER_NUMBER) % SPLIT_MODULUS * split.multiplier + split.offset) % SPLIT_MODULUS,
            output_field=BigIntegerField(),
        )
    )
    by_number = Q(place__gte=low, place__lt=high)
    if not shared:
        return numbered.filter(by_number)
    return numbered.filter((by_number & ~Q(query__cluster__in=list(shared))) | Q(query__cluster__in=clusters_in_part))


COMPARISON_FILTER_COLUMNS: Final = {
    "category": ("query__category",),
    "cluster": ("query__cluster",),
    "query_id": ("query__key",),
    "candidate": ("response_a__candidate__name", "response_b__candidate__name"),
    "candidate_a": ("response_a__candidate__name",),
    "candidate_b": ("response_b__candidate__name",),
}

# The columns of single responses, which have no sides.
RESPONSE_FILTER_COLUMNS: Final = {
    "category": "query__category",
    "cluster": "query__cluster",
    "query_id": "query__key",
    "candidate": "candidate__name",
}

SMALL_REPORT_COMPARISONS: Final = 10  # a report on no more comparisons gives single choices away


def select_report_comparisons(
    comparisons: QuerySet[Comparison], evaluation: Evaluation, rules: ReportRules, *, or_responses: bool = False
) -> QuerySet[Comparison]:
    """The comparisons that a report by these rules is about; refused if there are none.

    ``or_responses``: there may be none where there are single responses.
    """
    selected = filter_by_rules(comparisons, evaluation, rules)
    saved = rules.saved_filter
    if saved and not apply_comparison_filter(comparisons, evaluation, saved.comparison_filter).exists():
        raise InputRefused(f"The saved filter {saved.in_words()}, matches no comparisons.")
    if (
        rules.where
        and not selected.exists()
        and not (or_responses and select_single_responses(evaluation, rules).exists())
    ):
        raise InputRefused(describe_no_match(rules.where))
    return selected


def filter_by_rules(
    comparisons: QuerySet[Comparison], evaluation: Evaluation, rules: ReportRules
) -> QuerySet[Comparison]:
    if rules.saved_filter:
        comparisons = apply_comparison_filter(comparisons, evaluation, rules.saved_filter.comparison_filter)
    if rules.part:
        comparisons = filter_by_split_part(comparisons, evaluation, get_default_split(evaluation), rules.part)
    return filter_by_pairs(comparisons, rules.where)


def filter_by_pairs(comparisons: QuerySet[Comparison], where: Sequence[tuple[str, str]]) -> QuerySet[Comparison]:
    """The comparisons with all of these values. Keys that are not columns are looked up in the metadata."""
    for key, value in where:
        comparisons = filter_by_pair(comparisons, key, value)
    return comparisons


def select_single_responses(evaluation: Evaluation, rules: ReportRules) -> QuerySet[Response]:
    """The responses whose scores a report by these rules counts, in a comparison or not.

    A saved filter is of comparisons: it leaves none.
    """
    responses: QuerySet[Response] = Response.objects.filter(query__evaluation=evaluation)
    if rules.saved_filter:
        return responses.none()
    if rules.part:
        responses = filter_by_split_part(responses, evaluation, get_default_split(evaluation), rules.part)
    for key, value in rules.where:
        if key in COMPARISON_FILTER_COLUMNS:
            column = RESPONSE_FILTER_COLUMNS.get(key)
            responses = responses.filter(**{column: value}) if column else responses.none()
        else:
            with_metadata = responses.alias(
                own=KeyTransform(key, "metadata"), of_query=KeyTransform(key, "query__metadata")
            )
            responses = with_metadata.filter(
                Q(own__in=parse_filter_value(value)) | Q(of_query__in=parse_filter_value(value))
            )
    return responses


def describe_no_match(where: Sequence[tuple[str, str]]) -> str:
    pairs = " and ".join(f"{key}={value}" for key, value in where)
    hint = f" Keys are {', '.join(COMPARISON_FILTER_COLUMNS)}, or a name in the metadata."
    return f"No comparison has {pairs}." + ("" if all(key in COMPARISON_FILTER_COLUMNS for key, _ in where) else hint)


def list_if_small_report(
    comparisons: QuerySet[Comparison], evaluation: Evaluation, rules: ReportRules
) -> list[Comparison]:
    """The comparisons of a report that is so small that it reveals single choices; none of a larger one."""
    rows = filter_by_rules(comparisons, evaluation, rules).only("evaluation", "response_a", "response_b")
    first = list(rows[: SMALL_REPORT_COMPARISONS + 1])
    return first if len(first) <= SMALL_REPORT_COMPARISONS else []


def filter_by_pair(comparisons: QuerySet[Comparison], key: str, value: str) -> QuerySet[Comparison]:
    if key in COMPARISON_FILTER_COLUMNS:
        condition = Q()
        for column in COMPARISON_FILTER_COLUMNS[key]:
            condition |= Q(**{column: value})
        return comparisons.filter(condition)
    return filter_by_metadata(comparisons, key, value)


def filter_by_metadata(rows: "QuerySet[RowWithQuery]", key: str, value: str) -> "QuerySet[RowWithQuery]":
    """The rows whose own metadata, or whose query's, has this value."""
    values = parse_filter_value(value)
    both = rows.alias(own=KeyTransform(key, "metadata"), of_query=KeyTransform(key, "query__metadata"))
    return both.filter(Q(own__in=values) | Q(of_query__in=values))


def parse_filter_value(value: str) -> list[object]:
    """The metadata values that the text of a filter matches: itself, a number, true or false."""
    try:
        parsed = json.loads(value, parse_constant=str)
    except ValueError:
        return [value]
    return [value, parsed] if isinstance(parsed, (int, float)) and isfinite(parsed) else [value]
