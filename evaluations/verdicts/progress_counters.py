"""How many comparisons are judged and reviewed: counters that follow appended changes, and equal a recount.

A comparison that changed is looked at anew, so that it does not matter how often or in which order its changes are
counted, nor whether two judges answer on it in the same moment.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, NamedTuple

from django.db import transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Greatest

from evaluations.domain.files import ImportState
from evaluations.domain.reviews import SAVED_REVIEW_STATES
from evaluations.domain.roles import RaterKind
from evaluations.models.bulk import filter_by_values, insert_many
from evaluations.models.comparisons import Comparison, Query
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.judges import Judge, Rater
from evaluations.models.progress import ComparisonProgress, ProgressCounters, VerdictChange
from evaluations.models.verdicts import Review, Score, Verdict
from evaluations.verdicts.changes import UncountedChange, list_changes

# A page looks at up to this many changes of an evaluation, which takes a few milliseconds. If there are more, it shows
# the last count, a few seconds old. Without valid counters, it counts up to this many comparisons itself.
MAX_UNCOUNTED: Final = 200
MAX_COUNTED_DIRECTLY: Final = 1_000
# How often a page reads the counters again that were changed while it read.
READS: Final = 5


class ProgressRow(NamedTuple):
    """What is counted of one comparison."""

    is_judged: bool
    is_reviewed: bool
    reviews: int


# A comparison or a response that a change concerns.
Subject = tuple[int | None, int | None]
NO_PROGRESS: Final = ProgressRow(False, False, 0)


@dataclass(frozen=True)
class ProgressCounts:
    """``is_counting``: the numbers are those of the last count, and what has changed since is being counted."""

    queries: int = 0
    comparisons: int = 0
    judged: int = 0
    reviewed: int = 0
    reviews: int = 0
    is_counting: bool = False

    def plus(self, difference: "Counter[str]") -> "ProgressCounts":
        return replace(self, **{name: max(getattr(self, name) + by, 0) for name, by in difference.items()})


# ---- what is counted


# Archived judges do not count.
COUNTED_RATERS: Final = {"rater__judge__archived_at__isnull": True}


def has_verdict_of_kind(kind: RaterKind) -> Q:
    """A condition: a rater of this kind has a verdict on the comparison, or scores of both responses."""
    by_kind = {"rater__kind": kind, **COUNTED_RATERS}
    chosen = Exists(Verdict.objects.filter(comparison=OuterRef("pk"), **by_kind))
    a, b = (Exists(Score.objects.filter(response=OuterRef(side), **by_kind)) for side in ("response_a", "response_b"))
    return Q(chosen) | (Q(a) & Q(b))


def saved_reviews() -> "QuerySet[Review]":
    """Reviews saved by the rubric version that reviews use now."""
    current = Review.objects.filter(rubric_version=F("rater__evaluation__review_rubric"))
    return current.filter(state__in=SAVED_REVIEW_STATES)


def count_directly(evaluations: Collection[int]) -> dict[int, ProgressCounts]:
    """Count all comparisons of these evaluations, which takes seconds for a hundred thousand."""
    judged, reviewed = (Count("pk", filter=has_verdict_of_kind(kind)) for kind in (RaterKind.JUDGE, RaterKind.HUMAN))
    found: dict[int, dict[str, Any]] = {pk: {} for pk in evaluations}
    rows = Comparison.reviewable.filter(evaluation__in=evaluations).order_by("evaluation").values_list("evaluation")
    for pk, *numbers in rows.annotate(number=Count("pk"), judged=judged, reviewed=reviewed):
        found[pk] = dict(zip(("comparisons", "judged", "reviewed"), numbers, strict=True))
    queries = Query.objects.filter(evaluation__in=evaluations).order_by().values_list("evaluation")
    for pk, number in queries.annotate(Count("pk")):
        found[pk]["queries"] = number
    reviews = saved_reviews().filter(rater__evaluation__in=evaluations).order_by()
    for pk, number in reviews.values_list("rater__evaluation").annotate(Count("pk")):
        found[pk]["reviews"] = number
    return {pk: ProgressCounts(**numbers) for pk, numbers in found.items()}


def read_comparisons(comparisons: Collection[int]) -> dict[int, tuple[int, ProgressRow]]:
    """Comparison id → its evaluation, and what is to be counted of it by now.

    By ids, in a few statements: for conditions on each comparison PostgreSQL reads all verdicts.
    """
    present = filter_by_values(Comparison.reviewable.order_by(), "id", comparisons)
    rows = list(present.values_list("pk", "evaluation_id", "response_a_id", "response_b_id"))
    kinds = read_kinds({evaluation for _, evaluation, _, _ in rows})
    responses = {response for _, _, *sides in rows for response in sides}
    chosen, scored, reviews = read_verdicts([pk for pk, *_ in rows], responses, kinds)
    found = {}
    for pk, evaluation, a, b in rows:
        by_judge, by_human = (
            (pk, kind) in chosen or ((a, kind) in scored and (b, kind) in scored)
            for kind in (RaterKind.JUDGE, RaterKind.HUMAN)
        )
        found[pk] = (evaluation, ProgressRow(by_judge, by_human, reviews.get(pk, 0)))
    return found


def read_kinds(evaluations: Collection[int]) -> dict[int, str]:
    """The kind of each rater that counts."""
    counted = {condition.removeprefix("rater__"): value for condition, value in COUNTED_RATERS.items()}
    return dict(Rater.objects.filter(evaluation__in=evaluations, **counted).values_list("pk", "kind"))


def read_verdicts(
    comparisons: Collection[int], responses: Collection[int], kinds: Mapping[int, str]
) -> tuple[set[tuple[int, str]], set[tuple[int, str]], dict[int, int]]:
    """Who chose and who scored, as comparison or response and kind of rater, and the saved reviews of comparisons."""
    chosen = filter_by_values(Verdict.objects.order_by(), "comparison_id", comparisons)
    scored = filter_by_values(Score.objects.order_by(), "response_id", responses)
    saved = filter_by_values(saved_reviews().order_by(), "comparison_id", comparisons)
    rows = chosen.values_list(Value("chosen"), "comparison_id", "rater_id").union(
        scored.values_list(Value("scored"), "response_id", "rater_id"),
        saved.values_list(Value("saved"), "comparison_id").annotate(Count("pk")),
    )
    by_kind: dict[str, set[tuple[int, str]]] = {"chosen": set(), "scored": set()}
    reviews = {}
    for what, subject, number in rows:
        if what == "saved":
            reviews[subject] = number
        elif number in kinds:
            by_kind[what].add((subject, kinds[number]))
    return by_kind["chosen"], by_kind["scored"], reviews


BASIS_COLUMNS: Final = (
    "comparisons_changed_at",
    "review_rubric_id",
    "archived_judges",
    "last_archived",
    "imports_done",
)


def read_bases(evaluations: "QuerySet[Evaluation]") -> dict[int, str]:
    """By evaluation, all that changes what counts without changing any verdict or review.

    Imports come and go whole, judges are archived and restored, reviews are counted by the current rubric version.
    """
    rows = add_basis(evaluations).values_list("pk", *BASIS_COLUMNS)
    return {pk: write_basis(basis) for pk, *basis in rows}


def add_basis(evaluations: "QuerySet[Evaluation]") -> "QuerySet[Evaluation]":
    archived = (
        Judge.objects.filter(evaluation=OuterRef("pk"), archived_at__isnull=False).order_by().values("evaluation")
    )
    done = Import.objects.filter(evaluation=OuterRef("pk"), state=ImportState.DONE).order_by().values("evaluation")
    return evaluations.order_by().annotate(
        archived_judges=Subquery(archived.annotate(n=Count("pk")).values("n")),
        last_archived=Subquery(archived.annotate(n=Max("archived_at")).values("n")),
        imports_done=Subquery(done.annotate(n=Count("pk")).values("n")),
    )


def write_basis(columns: Iterable[object]) -> str:
    return " ".join(map(str, columns))


# ---- the counters of a page


COUNTER_COLUMNS: Final = ("queries", "comparisons", "judged", "reviewed", "reviews")
READ_COLUMNS: Final = (
    *("pk", "has_changes", "has_many_changes"),
    *(f"progress_counters__{name}" for name in ("version", "basis", *COUNTER_COLUMNS)),
    *BASIS_COLUMNS,
)


class ReadCounters(NamedTuple):
    """The counters of an evaluation, and what is not in them, of one moment."""

    counts: ProgressCounts
    version: int
    holds: bool  # whether they were counted on the present basis
    has_changes: bool  # whether changes are not counted yet
    has_many_changes: bool  # whether these are too many to look at


def read_progress_counts(evaluations: Collection[int]) -> dict[int, ProgressCounts]:
    """The counts of each evaluation, with the changes that are not counted yet.

    If these are too many, as while a run works, the counts are those of the last sweep.
    """
    for _ in range(READS):
        rows = read_counters(evaluations)
        exact = {pk: row for pk, row in rows.items() if row.holds and not row.has_many_changes}
        changed = {pk: row.version for pk, row in exact.items() if row.has_changes}
        differences = measure_uncounted(changed) if changed else {}
        if not changed or is_unchanged(changed):
            break
    counts = {pk: row.counts.plus(differences.get(pk, Counter())) for pk, row in exact.items()}
    others = [pk for pk in evaluations if pk not in counts]
    small = [pk for pk in others if pk not in rows or is_small(pk, rows[pk])]
    counts |= count_directly(small) if small else {}
    return {pk: counts.get(pk) or get_last_counts(pk, rows[pk]) for pk in evaluations}


def read_counters(evaluations: Collection[int]) -> dict[int, ReadCounters]:
    """The counters of those evaluations that have any, in one statement."""
    rows = prepare_counters(MAX_UNCOUNTED).filter(pk__in=evaluations)
    found = {}
    for pk, some, many, version, basis, *columns in rows.values_list(*READ_COLUMNS):
        counts, present = columns[: len(COUNTER_COLUMNS)], columns[len(COUNTER_COLUMNS) :]
        found[pk] = ReadCounters(ProgressCounts(*counts), version, basis == write_basis(present), some, many)
    return found


@cache
def prepare_counters(most: int) -> "QuerySet[Evaluation]":
    """All evaluations with counters, the columns of their basis, and whether they have changes, and more than most.

    Queries begin with a copy: to build these subqueries takes longer.
    """
    changes = VerdictChange.objects.filter(evaluation=OuterRef("pk")).order_by("pk")
    return add_basis(Evaluation.objects.filter(progress_counters__isnull=False)).annotate(
        has_changes=Exists(changes), has_many_changes=Exists(changes[most : most + 1])
    )


def is_unchanged(versions: Mapping[int, int]) -> bool:
    """Whether nothing was counted since the counters had these versions."""
    return dict(ProgressCounters.objects.filter(pk__in=versions).values_list("pk", "version")) == versions


def to_counts(row: ProgressCounters) -> ProgressCounts:
    return ProgressCounts(row.queries, row.comparisons, row.judged, row.reviewed, row.reviews)


def get_last_counts(evaluation: int, row: ReadCounters) -> ProgressCounts:
    """The last counts of an evaluation that is being counted; on another basis with what it holds now."""
    if row.holds:
        return replace(row.counts, is_counting=True)
    queries = Query.objects.filter(evaluation=evaluation).count()
    comparisons = Comparison.reviewable.filter(evaluation=evaluation).count()
    return replace(row.counts, queries=queries, comparisons=comparisons, is_counting=True)


def is_small(evaluation: int, row: ReadCounters) -> bool:
    if row.holds:
        return row.counts.comparisons <= MAX_COUNTED_DIRECTLY
    return (
        Comparison.reviewable.filter(evaluation=evaluation)[: MAX_COUNTED_DIRECTLY + 1].count() <= MAX_COUNTED_DIRECTLY
    )


def measure_uncounted(evaluations: Collection[int]) -> "dict[int, Counter[str]]":
    """By evaluation what its uncounted changes add to its counters."""
    changes = VerdictChange.objects.filter(evaluation__in=evaluations).order_by()
    changed = find_comparisons(set(changes.values_list("comparison_id", "response_id")))
    now = read_comparisons(changed)
    earlier = read_counted_rows(now)
    differences: dict[int, Counter[str]] = {}
    for pk, (evaluation, row) in now.items():
        differences.setdefault(evaluation, Counter()).update(subtract_rows(row, earlier.get(pk, NO_PROGRESS)))
    return differences


def find_comparisons(subjects: Collection[Subject]) -> set[int]:
    """The comparisons that these comparisons and responses are, or are part of; they may be deleted by now."""
    found = {comparison for comparison, _ in subjects if comparison}
    responses = {response for _, response in subjects if response}
    for side in ("response_a_id", "response_b_id") if responses else ():
        found.update(filter_by_values(Comparison.reviewable.order_by(), side, responses).values_list("pk", flat=True))
    return found


def read_counted_rows(comparisons: Collection[int]) -> dict[int, ProgressRow]:
    rows = filter_by_values(ComparisonProgress.objects.order_by(), "comparison_id", comparisons)
    columns = rows.values_list("pk", "is_judged", "is_reviewed", "reviews")
    return {pk: ProgressRow(judged, reviewed, reviews) for pk, judged, reviewed, reviews in columns}


def subtract_rows(now: ProgressRow, earlier: ProgressRow) -> dict[str, int]:
    return {
        "judged": now.is_judged - earlier.is_judged,
        "reviewed": now.is_reviewed - earlier.is_reviewed,
        "reviews": now.reviews - earlier.reviews,
    }


# ---- counting


def count_changes(evaluation: int, limit: int) -> int:
    """Count the first changes of an evaluation, and return how many were counted.

    The changes are deleted before their comparisons are looked at: what is committed in between is seen, and its own
    change stays to be counted once more.
    """
    with transaction.atomic():
        lock_counters(evaluation)
        changes = list_changes(evaluation, limit)
        if not changes or not add_to_raters(changes):
            return 0
        filter_by_values(VerdictChange.objects.all(), "id", [change.pk for change in changes]).delete()
        count_comparisons(evaluation, find_comparisons({(change.comparison, change.response) for change in changes}))
    return len(changes)


def lock_counters(evaluation: int) -> ProgressCounters:
    """The counters, locked until the transaction ends: one process at a time counts."""
    ProgressCounters.objects.get_or_create(evaluation_id=evaluation)
    return ProgressCounters.objects.select_for_update().get(pk=evaluation)


def add_to_raters(changes: Sequence[UncountedChange]) -> bool:
    """Add the changes to their raters' own numbers; False if another transaction has one of the raters locked."""
    numbers = Counter(change.rater for change in changes)
    raters = Rater.objects.filter(pk__in=numbers)
    # The lock leaves room for those that write verdicts of the rater, and waits for nobody.
    mine = set(raters.select_for_update(skip_locked=True, no_key=True).order_by("pk").values_list("pk", flat=True))
    if len(mine) < raters.count():
        return False
    for pk in sorted(mine):
        last = max(change.created_at for change in changes if change.rater == pk)
        raters.filter(pk=pk).update(
            verdict_changes=F("verdict_changes") + numbers[pk],
            verdicts_changed_at=Greatest(Coalesce("verdicts_changed_at", last), last),
        )
    return True


def count_comparisons(evaluation: int, comparisons: Collection[int]) -> None:
    """Look at these comparisons anew, and add what changed to the counters, which are locked."""
    earlier = read_counted_rows(comparisons)
    now = {pk: row for pk, (_, row) in read_comparisons(comparisons).items() if row != NO_PROGRESS}
    difference: Counter[str] = Counter()
    changed = [pk for pk in now.keys() | earlier.keys() if now.get(pk) != earlier.get(pk)]
    for pk in changed:
        difference.update(subtract_rows(now.get(pk, NO_PROGRESS), earlier.get(pk, NO_PROGRESS)))
    if outdated := earlier.keys() & changed:
        filter_by_values(ComparisonProgress.objects.all(), "comparison_id", outdated).delete()
    insert_many(
        ComparisonProgress,
        ("comparison_id", "evaluation_id", "is_judged", "is_reviewed", "reviews"),
        [(pk, evaluation, *now[pk]) for pk in sorted(changed) if pk in now],
    )
    sums = {name: F(name) + by for name, by in difference.items() if by}
    ProgressCounters.objects.filter(pk=evaluation).update(version=F("version") + 1, **sums)
