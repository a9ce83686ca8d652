"""What is known of comparisons before anyone says anything, from the database into arrays.

It changes only when comparisons come in, and reading it joins four tables: it is kept in a file until then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from django.db.models import F, QuerySet

from evaluations.models import Candidate, Comparison, Evaluation, Query
from evaluations.services.reporting.browsing import categories
from evaluations.services.reporting.columns import column_by_word, columns, pieces
from evaluations.services.reporting.keeping import keep_arrays, kept_file, loaded
from evaluations.services.reporting.unpacking import Places
from evaluations.stats.coding import MISSING, IntArray
from evaluations.stats.items import Items

MARKUPS: Final = 1 << 8  # more than all kinds of Markdown together
COLUMNS: Final = np.dtype(
    [
        *((name, np.int64) for name in ("comparison", "query", "cluster", "shuffle")),
        *((name, np.int32) for name in ("candidate_a", "candidate_b", "characters_a", "characters_b")),
        ("category", np.int32),
        *((name, np.uint8) for name in ("markup_a", "markup_b")),
    ]
)


@dataclass(frozen=True)
class KnownComparisons:
    """``rows``: one for each comparison, by id, clusters numbered from 0. Their category is a place among

    ``categories``, or MISSING.
    """

    rows: npt.NDArray[np.void]
    categories: tuple[str, ...]


def known_comparisons(evaluation: Evaluation) -> KnownComparisons:
    """All comparisons of the evaluation."""
    kept = file_of(evaluation)
    if kept is None:
        return read_known(evaluation)
    try:
        return load(kept)
    except (OSError, EOFError, ValueError):  # another reader may take it away at any moment
        known = read_known(evaluation)
        if file_of(evaluation) == kept:  # or comparisons came in meanwhile, and some of them are among these
            keep(kept, known)
        return known


def file_of(evaluation: Evaluation) -> Path | None:
    """Named by when comparisons last came in, as the database has it by now; None where that is not known."""
    changed = Evaluation.objects.values_list("comparisons_changed_at", flat=True).get(pk=evaluation.pk)
    return kept_file(f"comparisons-{evaluation.pk}", changed) if changed else None


def load(kept: Path) -> KnownComparisons:
    """ValueError or EOFError where it is no such file, or one of another version of the program."""
    rows, names = loaded(kept, 2)
    if rows.dtype != COLUMNS:
        raise ValueError(f"{kept} has the columns {rows.dtype}")
    return KnownComparisons(rows, tuple(names.tolist()))


def keep(kept: Path, known: KnownComparisons) -> None:
    """The rows, then the categories."""
    keep_arrays(kept, known.rows, np.array(known.categories, dtype=np.str_))


def read_known(evaluation: Evaluation) -> KnownComparisons:
    comparisons = Comparison.objects.filter(evaluation=evaluation)
    (ids,) = columns(comparisons.values_list("pk"), 1)
    rows = np.concatenate([read_rows(piece) for piece in pieces(comparisons, "pk", np.sort(ids))])
    names = tuple(categories(evaluation, limit=None))
    rows["cluster"] = numbered(rows["cluster"])
    rows["category"] = category_of(evaluation, names, rows["query"])
    return KnownComparisons(rows, names)


def read_rows(comparisons: "QuerySet[Comparison]") -> npt.NDArray[np.void]:
    """By id; clusters as the database has them, without the category."""
    markup = F("response_a__markup") * MARKUPS + F("response_b__markup")
    *told, marked = columns(
        comparisons.values_list(
            "pk",
            "query_id",
            "query__cluster_number",
            "shuffle",
            "response_a__candidate_id",
            "response_b__candidate_id",
            "response_a__characters",
            "response_b__characters",
            markup,
        ),
        9,
    )
    rows = np.empty(len(marked), dtype=COLUMNS)
    for name, column in zip(COLUMNS.names or (), told, strict=False):
        rows[name] = column
    rows["markup_a"], rows["markup_b"] = np.divmod(marked, MARKUPS)
    return rows[np.argsort(rows["comparison"], kind="stable")]


def category_of(evaluation: Evaluation, names: Sequence[str], query: IntArray) -> IntArray:
    """The place of the category of each query, MISSING where it has none of these."""
    found = np.full(int(query.max(initial=0)) + 1, MISSING, dtype=np.int64)
    queries = Query.all_rows.filter(evaluation=evaluation, category__gt="").values_list("category", "pk")
    place = {name: number for number, name in enumerate(names)}
    for name, of_it in column_by_word(queries).items():
        found[of_it[of_it < len(found)]] = place.get(name, MISSING)
    return found[query]


def places_of(known: KnownComparisons, comparisons: "QuerySet[Comparison] | None") -> Places:
    """The comparisons that a report is about: those of the queryset, or all that are known."""
    if comparisons is None:
        return Places(known.rows["comparison"])
    (ids,) = columns(comparisons.values_list("pk"), 1)
    return Places(np.intersect1d(ids, known.rows["comparison"], assume_unique=True))


def rows_at(known: KnownComparisons, places: Places) -> npt.NDArray[np.void]:
    """The rows of these comparisons, in their order."""
    everything = len(places.ids) == len(known.rows)
    return known.rows if everything else known.rows[np.searchsorted(known.rows["comparison"], places.ids)]


def items_of(evaluation: Evaluation, known: KnownComparisons, places: Places) -> Items:
    """One entry for each of these comparisons, in their order, all of one stratum."""
    rows = rows_at(known, places)
    cluster = np.ascontiguousarray(rows["cluster"])
    candidates = list(Candidate.objects.filter(evaluation=evaluation).order_by("name"))
    return Items(
        cluster=cluster if rows is known.rows else numbered(cluster),
        category=rows["category"],
        categories=known.categories,
        candidate_a=place_among(candidates, rows["candidate_a"]),
        candidate_b=place_among(candidates, rows["candidate_b"]),
        candidates=tuple(candidate.name for candidate in candidates),
        families=tuple(candidate.family for candidate in candidates),
        characters_a=rows["characters_a"],
        characters_b=rows["characters_b"],
        markup_a=rows["markup_a"],
        markup_b=rows["markup_b"],
        query=np.ascontiguousarray(rows["query"]),
        stratum=np.zeros(len(rows), dtype=np.int8),
        shuffle=np.ascontiguousarray(rows["shuffle"]),
    )


def place_among(candidates: Sequence[Candidate], ids: IntArray) -> IntArray:
    """Of each id the place of its candidate."""
    place = np.zeros(max((candidate.pk for candidate in candidates), default=0) + 1, dtype=np.int32)
    for number, candidate in enumerate(candidates):
        place[candidate.pk] = number
    return place[ids]


def numbered(values: IntArray) -> IntArray:
    """The place of each value among those that occur."""
    return np.asarray(np.unique(values, return_inverse=True)[1], dtype=np.int64)
