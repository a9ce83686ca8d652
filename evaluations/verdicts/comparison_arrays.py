"""What is known of comparisons before anyone judges them, as arrays that are cached until comparisons change."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from django.db.models import F, QuerySet

from evaluations.models.comparisons import Candidate, Comparison, Query
from evaluations.models.evaluations import Evaluation
from evaluations.models.selection import list_categories
from evaluations.stats.coding import MISSING, IntArray
from evaluations.stats.items import Items
from evaluations.verdicts.array_files import get_array_file, load_arrays, save_arrays
from evaluations.verdicts.judge_arrays import ComparisonPositions
from evaluations.verdicts.sql import read_column_by_word, read_columns, split_into_pieces

MARKUP_KINDS: Final = 1 << 8  # more than all kinds of Markdown together
COMPARISON_DTYPE: Final = np.dtype(
    [
        *((name, np.int64) for name in ("comparison", "query", "cluster", "random_order")),
        *((name, np.int32) for name in ("candidate_a", "candidate_b", "characters_a", "characters_b")),
        ("category", np.int32),
        *((name, np.uint8) for name in ("markup_a", "markup_b")),
    ]
)


@dataclass(frozen=True)
class ComparisonTable:
    """``rows``: by comparison id, clusters from 0; ``category`` is a place in ``categories``, or MISSING."""

    rows: npt.NDArray[np.void]
    categories: tuple[str, ...]


def get_comparison_table(evaluation: Evaluation) -> ComparisonTable:
    path = get_comparison_file(evaluation)
    if path is None:
        return read_comparison_table(evaluation)
    try:
        return load_comparison_table(path)
    except (OSError, EOFError, ValueError):  # another reader may delete it at any moment
        table = read_comparison_table(evaluation)
        if get_comparison_file(evaluation) == path:  # else the table may hold comparisons that were just added
            save_comparison_table(path, table)
        return table


def get_comparison_file(evaluation: Evaluation) -> Path | None:
    """Named by when comparisons last came in, as the database has it by now; None where that is not known."""
    changed = Evaluation.objects.values_list("comparisons_changed_at", flat=True).get(pk=evaluation.pk)
    return get_array_file(f"comparisons-{evaluation.pk}", changed) if changed else None


def load_comparison_table(path: Path) -> ComparisonTable:
    """ValueError or EOFError where it is no such file, or one of another version of the program."""
    rows, names = load_arrays(path, 2)
    if rows.dtype != COMPARISON_DTYPE:
        raise ValueError(f"{path} has the columns {rows.dtype}")
    return ComparisonTable(rows, tuple(names.tolist()))


def save_comparison_table(path: Path, table: ComparisonTable) -> None:
    save_arrays(path, table.rows, np.array(table.categories, dtype=np.str_))


def read_comparison_table(evaluation: Evaluation) -> ComparisonTable:
    comparisons = Comparison.objects.filter(evaluation=evaluation)
    (ids,) = read_columns(comparisons.values_list("pk"), 1)
    rows = np.concatenate([read_comparison_rows(piece) for piece in split_into_pieces(comparisons, "pk", np.sort(ids))])
    names = tuple(list_categories(evaluation, limit=None))
    rows["cluster"] = number_values(rows["cluster"])
    rows["category"] = map_categories(evaluation, names, rows["query"])
    return ComparisonTable(rows, names)


def read_comparison_rows(comparisons: "QuerySet[Comparison]") -> npt.NDArray[np.void]:
    """By id; clusters as the database has them, without the category."""
    markup = F("response_a__markup") * MARKUP_KINDS + F("response_b__markup")
    columns = (
        *("pk", "query_id", "query__cluster_number", "random_order"),
        *("response_a__candidate_id", "response_b__candidate_id"),
        *("response_a__characters", "response_b__characters"),
    )
    *values, marked = read_columns(comparisons.values_list(*columns, markup), 9)
    rows = np.empty(len(marked), dtype=COMPARISON_DTYPE)
    for name, column in zip(COMPARISON_DTYPE.names or (), values, strict=False):
        rows[name] = column
    rows["markup_a"], rows["markup_b"] = np.divmod(marked, MARKUP_KINDS)
    return rows[np.argsort(rows["comparison"], kind="stable")]


def map_categories(evaluation: Evaluation, names: Sequence[str], query: IntArray) -> IntArray:
    """The place of the category of each query, MISSING where it has none of these."""
    categories = np.full(int(query.max(initial=0)) + 1, MISSING, dtype=np.int64)
    queries = Query.all_rows.filter(evaluation=evaluation, category__gt="").values_list("category", "pk")
    place = {name: number for number, name in enumerate(names)}
    for name, query_ids in read_column_by_word(queries).items():
        categories[query_ids[query_ids < len(categories)]] = place.get(name, MISSING)
    return categories[query]


def index_report_comparisons(table: ComparisonTable, comparisons: "QuerySet[Comparison] | None") -> ComparisonPositions:
    """The comparisons that a report is about: those of the queryset, or all that are known."""
    if comparisons is None:
        return ComparisonPositions(table.rows["comparison"])
    (ids,) = read_columns(comparisons.values_list("pk"), 1)
    return ComparisonPositions(np.intersect1d(ids, table.rows["comparison"], assume_unique=True))


def build_items(evaluation: Evaluation, table: ComparisonTable, places: ComparisonPositions) -> Items:
    """One entry for each of these comparisons, in their order, all of one stratum."""
    is_whole = len(places.ids) == len(table.rows)
    rows = table.rows if is_whole else table.rows[np.searchsorted(table.rows["comparison"], places.ids)]
    cluster = np.ascontiguousarray(rows["cluster"])
    candidates = list(Candidate.objects.filter(evaluation=evaluation).order_by("name"))
    return Items(
        cluster=cluster if is_whole else number_values(cluster),
        category=rows["category"],
        categories=table.categories,
        candidate_a=map_candidates(candidates, rows["candidate_a"]),
        candidate_b=map_candidates(candidates, rows["candidate_b"]),
        candidates=tuple(candidate.name for candidate in candidates),
        families=tuple(candidate.family for candidate in candidates),
        characters_a=rows["characters_a"],
        characters_b=rows["characters_b"],
        markup_a=rows["markup_a"],
        markup_b=rows["markup_b"],
        query=np.ascontiguousarray(rows["query"]),
        stratum=np.zeros(len(rows), dtype=np.int8),
        random_order=np.ascontiguousarray(rows["random_order"]),
    )


def map_candidates(candidates: Sequence[Candidate], ids: IntArray) -> IntArray:
    """Map each candidate id to its index."""
    place = np.zeros(max((candidate.pk for candidate in candidates), default=0) + 1, dtype=np.int32)
    for number, candidate in enumerate(candidates):
        place[candidate.pk] = number
    return place[ids]


def number_values(values: IntArray) -> IntArray:
    """The place of each value among those that occur."""
    return np.asarray(np.unique(values, return_inverse=True)[1], dtype=np.int64)
