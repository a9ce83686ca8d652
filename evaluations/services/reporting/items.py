"""What is known of comparisons before anyone says anything, from the database into arrays.

It changes only when comparisons come in, and reading it joins four tables: it is kept in a file until then.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from django.conf import settings
from django.db.models import F, QuerySet

from evaluations.models import Candidate, Comparison, Evaluation, Query
from evaluations.services.reporting.browsing import categories
from evaluations.services.reporting.columns import column_by_word, columns
from evaluations.services.reporting.unpacking import Places
from evaluations.stats.coding import MISSING, IntArray
from evaluations.stats.contributions import FloatArray
from evaluations.stats.items import Items

MARKUPS: Final = 1 << 8  # more than all kinds of Markdown together
COLUMNS: Final = np.dtype(
    [
        *((name, np.int64) for name in ("comparison", "query", "cluster")),
        *((name, np.int32) for name in ("candidate_a", "candidate_b", "characters_a", "characters_b")),
        ("category", np.int16),
        *((name, np.uint8) for name in ("markup_a", "markup_b")),
    ]
)

Known = npt.NDArray[np.void]


def known_comparisons(evaluation: Evaluation) -> Known:
    """A row for each comparison of the evaluation, by id."""
    kept = file_of(evaluation)
    if kept is None:
        return read_known(evaluation)
    if not kept.exists():
        keep(kept, read_known(evaluation))
    return np.asarray(np.load(kept, mmap_mode="r", allow_pickle=False))


def file_of(evaluation: Evaluation) -> Path | None:
    """Named by when comparisons last came in; None where that is not known."""
    changed = evaluation.comparisons_changed_at
    return settings.CACHE_DIR / f"comparisons-{evaluation.pk}-{changed:%Y%m%d%H%M%S%f}.npy" if changed else None


def keep(kept: Path, known: Known) -> None:
    """Written beside and moved into place: whoever reads meanwhile finds it whole or not at all."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    older = list(kept.parent.glob(f"{kept.name.rpartition('-')[0]}-*.npy"))
    beside = kept.with_name(f"{uuid4()}.part")
    with beside.open("wb") as file:
        np.save(file, known)
    beside.replace(kept)
    for one in older:
        one.unlink(missing_ok=True)


def read_known(evaluation: Evaluation) -> Known:
    comparisons = Comparison.objects.filter(evaluation=evaluation)
    markup = F("response_a__markup") * MARKUPS + F("response_b__markup")
    *told, marked = columns(
        comparisons.values_list(
            "pk",
            "query_id",
            "query__cluster_number",
            "response_a__candidate_id",
            "response_b__candidate_id",
            "response_a__characters",
            "response_b__characters",
            markup,
        ),
        8,
    )
    known = np.empty(len(marked), dtype=COLUMNS)
    for name, column in zip(COLUMNS.names or (), told, strict=False):
        known[name] = column
    known["category"] = category_of(evaluation, categories(evaluation), known["query"])
    known["markup_a"], known["markup_b"] = np.divmod(marked, MARKUPS)
    return known[np.argsort(known["comparison"], kind="stable")]


def category_of(evaluation: Evaluation, names: Sequence[str], query: IntArray) -> IntArray:
    """The place of the category of each query, MISSING where it has none of these."""
    found = np.full(int(query.max(initial=0)) + 1, MISSING, dtype=np.int64)
    queries = Query.all_rows.filter(evaluation=evaluation, category__in=names).values_list("category", "pk")
    for name, of_it in column_by_word(queries).items():
        found[of_it[of_it < len(found)]] = names.index(name)
    return found[query]


def places_of(known: Known, comparisons: "QuerySet[Comparison] | None") -> Places:
    """The comparisons that a report is about: those of the queryset, or all that are known."""
    if comparisons is None:
        return Places(known["comparison"])
    (ids,) = columns(comparisons.values_list("pk"), 1)
    return Places(np.intersect1d(ids, known["comparison"], assume_unique=True))


def items_of(evaluation: Evaluation, known: Known, places: Places, probability: FloatArray) -> Items:
    """One entry for each of these comparisons, in their order."""
    if len(places.ids) < len(known):
        known = known[np.searchsorted(known["comparison"], places.ids)]
    candidates = list(Candidate.objects.filter(evaluation=evaluation).order_by("name"))
    return Items(
        cluster=numbered(known["cluster"]),
        category=known["category"],
        categories=tuple(categories(evaluation)),
        candidate_a=place_among(candidates, known["candidate_a"]),
        candidate_b=place_among(candidates, known["candidate_b"]),
        candidates=tuple(candidate.name for candidate in candidates),
        families=tuple(candidate.family for candidate in candidates),
        characters_a=known["characters_a"],
        characters_b=known["characters_b"],
        markup_a=known["markup_a"].astype(np.int64),
        markup_b=known["markup_b"].astype(np.int64),
        probability=probability,
    )


def place_among(candidates: Sequence[Candidate], ids: IntArray) -> IntArray:
    """Of each id the place of its candidate."""
    place = np.zeros(max((candidate.pk for candidate in candidates), default=0) + 1, dtype=np.int64)
    for number, candidate in enumerate(candidates):
        place[candidate.pk] = number
    return place[ids]


def numbered(values: IntArray) -> IntArray:
    """The place of each value among those that occur."""
    return np.asarray(np.unique(values, return_inverse=True)[1], dtype=np.int64)
