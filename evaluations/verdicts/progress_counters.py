"""How many comparisons are judged and reviewed: counters that follow appended changes, and equal a recount.

A comparison that changed is looked at anew, so that it does not matter how often or in which order its changes are
counted, nor whether two judges answer on it in the same moment.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from django.db import transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Greatest

from evaluations.domain.files import ImportState
from evaluations.domain.reviews import SAVED_REVIEW_STATES
from evaluations.domain.roles import RaterKind
from evaluations.models.bulk import filter_by_values
from evaluations.models.comparisons import Comparison, Query
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.judges import Judge, Rater
from evaluations.models.progress import ComparisonProgress, ProgressCounters, VerdictChange
from evaluations.models.verdicts import Review, Score, Verdict
from evaluations.verdicts.changes import list_changes

# A page looks at what up to so many changes concern, which takes it a few milliseconds; after more it shows the last
# count, at most some seconds old. And it counts up to so many comparisons itself while no counters hold.
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
    """``is_counting``: the numbers are those of the last count, and they are being counted again."""

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
    current = Review.objects.filter(rubric_version=F("comparison__evaluation__review_rubric"))
    return current.filter(state__in=SAVED_REVIEW_STATES)


def count_directly(evaluations: Collection[int]) -> dict[int, ProgressCounts]:
    """Count all comparisons of these evaluations, which takes seconds for a hundred thousand."""
    judged, reviewed = (Count("pk", filter=has_verdict_of_kind(kind)) for kind in (RaterKind.JUDGE, RaterKind.HUMAN))
    found: dict[int, dict[str, Any]] = {pk: {} for pk in evaluations}
    rows = Comparison.objects.filter(evaluation__in=evaluations).order_by("evaluation").values_list("evaluation")
    for pk, *numbers in rows.annotate(number=Count("pk"), judged=judged, reviewed=reviewed):
        found[pk] = dict(zip(("comparisons", "judged", "reviewed"), numbers, strict=True))
    queries = Query.objects.filter(evaluation__in=evaluations).order_by().values_list("evaluation")
    for pk, number in queries.annotate(Count("pk")):
        found[pk]["queries"] = number
    reviews = saved_reviews().filter(comparison__evaluation__in=evaluations).order_by()
    for pk, number in reviews.values_list("comparison__evaluation").annotate(Count("pk")):
        found[pk]["reviews"] = number
    return {pk: ProgressCounts(**numbers) for pk, numbers in found.items()}


def read_comparisons(comparisons: "QuerySet[Comparison]") -> dict[int, tuple[int, ProgressRow]]:
    """Comparison id → its evaluation, and what is to be counted of it by now.

    By ids, in a few statements: for conditions on each comparison PostgreSQL reads all verdicts.
    """
    rows = list(comparisons.order_by().values_list("pk", "evaluation_id", "response_a_id", "response_b_id"))
    ids = [row[0] for row in rows]
    kinds = read_kinds({row[1] for row in rows})
    chosen = find_kinds(filter_by_values(Verdict.objects.all(), "comparison_id", ids), "comparison_id", kinds)
    responses = {response for row in rows for response in row[2:]}
    scored = find_kinds(filter_by_values(Score.objects.all(), "response_id", responses), "response_id", kinds)
    saved = filter_by_values(saved_reviews(), "comparison_id", ids).order_by().values_list("comparison")
    reviews = dict(saved.annotate(Count("pk")))
    found = {}
    for pk, evaluation, a, b in rows:
        by_judge, by_human = (
            (pk, kind) in chosen or {(a, kind), (b, kind)} <= scored for kind in (RaterKind.JUDGE, RaterKind.HUMAN)
        )
        found[pk] = (evaluation, ProgressRow(by_judge, by_human, reviews.get(pk, 0)))
    return found


def read_kinds(evaluations: Collection[int]) -> dict[int, str]:
    """The kind of each rater that counts."""
    counted = {condition.removeprefix("rater__"): value for condition, value in COUNTED_RATERS.items()}
    return dict(Rater.objects.filter(evaluation__in=evaluations, **counted).values_list("pk", "kind"))


def find_kinds(
    rows: "QuerySet[Verdict] | QuerySet[Score]", subject: str, kinds: Mapping[int, str]
) -> set[tuple[int, str]]:
    """The kinds of raters with rows on each subject."""
    raters = rows.order_by().values_list(subject, "rater").distinct()
    return {(pk, kinds[rater]) for pk, rater in raters if rater in kinds}


def read_bases(evaluations: "QuerySet[Evaluation]") -> dict[int, str]:
    """By evaluation, all that changes what counts without changing any verdict or review.

    Imports come and go whole, judges are archived and restored, reviews are counted by the current rubric version.
    """
    archived = (
        Judge.objects.filter(evaluation=OuterRef("pk"), archived_at__isnull=False).order_by().values("evaluation")
    )
    done = Import.objects.filter(evaluation=OuterRef("pk"), state=ImportState.DONE).order_by().values("evaluation")
    rows = evaluations.order_by().annotate(
        archived_judges=Subquery(archived.annotate(n=Count("pk")).values("n")),
        last_archived=Subquery(archived.annotate(n=Max("archived_at")).values("n")),
        imports_done=Subquery(done.annotate(n=Count("pk")).values("n")),
    )
    columns = ("comparisons_changed_at", "review_rubric_id", "archived_judges", "last_archived", "imports_done")
    return {pk: " ".join(map(str, basis)) for pk, *basis in rows.values_list("pk", *columns)}


# ---- the counters of a page


def read_progress_counts(evaluations: Collection[int]) -> dict[int, ProgressCounts]:
    """The counts of each evaluation, with the changes that are not counted yet, unless these are too many."""
    for _ in range(READS):
        changed, behind = list_uncounted(evaluations)
        # Read after the changes: what was counted meanwhile is in these numbers.
        rows = ProgressCounters.objects.in_bulk(evaluations)
        bases = read_bases(Evaluation.objects.filter(pk__in=rows))
        usable = {pk: row for pk, row in rows.items() if row.basis == bases.get(pk)}
        differences = measure_changes(changed) if changed else {}
        if not changed or is_unchanged(rows):
            break
    exact = usable.keys() - behind
    counts = {pk: to_counts(rows[pk]).plus(differences.get(pk, Counter())) for pk in exact}
    unknown = [pk for pk in evaluations if pk not in counts]
    small = [pk for pk in unknown if pk not in rows or is_small(pk)]
    counts |= count_directly(small) if small else {}
    counts |= {pk: get_last_counts(rows[pk], is_usable=pk in usable) for pk in unknown if pk not in counts}
    return counts


def is_unchanged(rows: Mapping[int, ProgressCounters]) -> bool:
    """Whether nothing was counted since these counters were read."""
    versions = dict(ProgressCounters.objects.filter(pk__in=rows).values_list("pk", "version"))
    return versions == {pk: row.version for pk, row in rows.items()}


def to_counts(row: ProgressCounters) -> ProgressCounts:
    return ProgressCounts(row.queries, row.comparisons, row.judged, row.reviewed, row.reviews)


def get_last_counts(row: ProgressCounters, *, is_usable: bool) -> ProgressCounts:
    """The last counts of an evaluation that is being counted, with what it holds now."""
    last = replace(to_counts(row), is_counting=True)
    if is_usable:
        return last
    queries, comparisons = (rows.objects.filter(evaluation=row.pk).count() for rows in (Query, Comparison))
    return replace(last, queries=queries, comparisons=comparisons)


def is_small(evaluation: int) -> bool:
    return Comparison.objects.filter(evaluation=evaluation)[: MAX_COUNTED_DIRECTLY + 1].count() <= MAX_COUNTED_DIRECTLY


def list_uncounted(evaluations: Collection[int]) -> tuple[set[Subject], set[int]]:
    """What uncounted changes concern, and the evaluations that have too many of them to look at."""
    changes = VerdictChange.objects.filter(evaluation__in=evaluations).order_by()
    subjects = changes.values_list("comparison_id", "response_id")
    some = list(subjects[: MAX_UNCOUNTED + 1])
    if len(some) <= MAX_UNCOUNTED:
        return set(some), set()
    numbers = Counter(dict(changes.values_list("evaluation").annotate(Count("pk"))))
    behind = set()
    for pk, _ in numbers.most_common():
        if numbers.total() <= MAX_UNCOUNTED:
            break
        behind.add(pk)
        del numbers[pk]
    return set(subjects.filter(evaluation__in=numbers)), behind


def measure_changes(changed: Collection[Subject]) -> "dict[int, Counter[str]]":
    """By evaluation what these changes add to its counters."""
    now = read_comparisons(find_comparisons(changed))
    earlier = read_counted_rows(now)
    differences: dict[int, Counter[str]] = {}
    for pk, (evaluation, row) in now.items():
        differences.setdefault(evaluation, Counter()).update(subtract_rows(row, earlier.get(pk, NO_PROGRESS)))
    return differences


def find_comparisons(subjects: Collection[Subject]) -> "QuerySet[Comparison]":
    """The comparisons that these comparisons and responses are, or are part of."""
    comparisons = {comparison for comparison, _ in subjects if comparison}
    responses = {response for _, response in subjects if response}
    if not responses:
        return filter_by_values(Comparison.objects.all(), "id", comparisons)
    sides = Q(response_a__in=responses) | Q(response_b__in=responses)
    return Comparison.objects.filter(Q(pk__in=comparisons) | sides)


def read_counted_rows(comparisons: Collection[int]) -> dict[int, ProgressRow]:
    rows = filter_by_values(ComparisonProgress.objects.all(), "comparison_id", comparisons)
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
        VerdictChange.objects.filter(pk__in=[change.pk for change in changes]).delete()
        subjects = {(change.comparison_id, change.response_id) for change in changes}
        comparisons = sorted(find_comparisons(subjects).values_list("pk", flat=True))
        count_comparisons(evaluation, comparisons)
    return len(changes)


def lock_counters(evaluation: int) -> ProgressCounters:
    """The counters, locked until the transaction ends: one process at a time counts."""
    ProgressCounters.objects.get_or_create(evaluation_id=evaluation)
    return ProgressCounters.objects.select_for_update().get(pk=evaluation)


def add_to_raters(changes: Sequence[VerdictChange]) -> bool:
    """Add the changes to their raters' own numbers; False if another transaction has one of the raters locked."""
    numbers = Counter(change.rater_id for change in changes)
    raters = Rater.objects.filter(pk__in=numbers)
    # The lock leaves room for those that write verdicts of the rater, and waits for nobody.
    mine = set(raters.select_for_update(skip_locked=True, no_key=True).order_by("pk").values_list("pk", flat=True))
    if len(mine) < raters.count():
        return False
    for pk in sorted(mine):
        last = max(change.created_at for change in changes if change.rater_id == pk)
        raters.filter(pk=pk).update(
            verdict_changes=F("verdict_changes") + numbers[pk],
            verdicts_changed_at=Greatest(Coalesce("verdicts_changed_at", last), last),
        )
    return True


def count_comparisons(evaluation: int, comparisons: Collection[int]) -> None:
    """Look at these comparisons anew, and add what changed to the counters, which are locked."""
    earlier = read_counted_rows(comparisons)
    found = read_comparisons(filter_by_values(Comparison.objects.all(), "id", comparisons))
    now = {pk: row for pk, (_, row) in found.items() if row != NO_PROGRESS}
    changed = [pk for pk in now if now[pk] != earlier.get(pk)]
    difference: Counter[str] = Counter()
    for pk in now.keys() | earlier.keys():
        difference.update(subtract_rows(now.get(pk, NO_PROGRESS), earlier.get(pk, NO_PROGRESS)))
    ComparisonProgress.objects.bulk_create(
        [ComparisonProgress(comparison_id=pk, evaluation_id=evaluation, **now[pk]._asdict()) for pk in sorted(changed)],
        update_conflicts=True,
        unique_fields=["comparison"],
        update_fields=["is_judged", "is_reviewed", "reviews"],
    )
    ComparisonProgress.objects.filter(pk__in=earlier.keys() - now.keys()).delete()
    sums = {name: F(name) + by for name, by in difference.items() if by}
    ProgressCounters.objects.filter(pk=evaluation).update(version=F("version") + 1, **sums)
