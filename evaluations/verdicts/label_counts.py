"""The label rows that human votes and resolutions make, updated in the transaction that changes a vote."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from evaluations.domain.choices import Choice, LabelSource
from evaluations.domain.files import ImportState
from evaluations.domain.roles import RaterKind
from evaluations.models.batch_sizes import rows_per_transaction
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import, finished_imports
from evaluations.models.jobs import IMPORT_LEASE
from evaluations.models.rubrics import Aspect
from evaluations.models.transactions import is_time_up, pause_after_transaction
from evaluations.models.verdicts import Adjudication, Label, Score, Verdict
from evaluations.verdicts.recounts import TALLIED_TO
from evaluations.verdicts.votes import VoteSubject, count_human_votes


class LabelRow(NamedTuple):
    """What a Label row says."""

    choice: str
    source: str
    votes: int
    unanimous: bool


def update_labels(comparison_ids: Iterable[int]) -> None:
    """Count the votes on these comparisons anew. Called inside the transaction that changed one."""
    ids = sorted(set(comparison_ids))
    if not ids:
        return
    lock_comparisons(ids)
    due = compute_label_rows(ids)
    standing = {(row.comparison_id, row.aspect_id): row for row in Label.objects.filter(comparison__in=ids)}
    gone = [row.pk for subject, row in standing.items() if subject not in due]
    if gone:
        Label.objects.filter(pk__in=gone).delete()
    changed = [
        apply_label_row(row, due[subject])
        for subject, row in standing.items()
        if is_label_outdated(row, due.get(subject))
    ]
    Label.objects.bulk_update(changed, LabelRow._fields)
    new = [(subject, kept) for subject, kept in due.items() if subject not in standing]
    Label.objects.bulk_create(
        Label(comparison_id=comparison, aspect_id=aspect, **kept._asdict()) for (comparison, aspect), kept in new
    )


def lock_comparisons(comparison_ids: Collection[int]) -> None:
    """Until the transaction ends nobody else counts these: of two who vote at once, the second sees both votes."""
    if connection.features.has_select_for_update:
        held = Comparison.all_rows.select_for_update(no_key=True).filter(pk__in=comparison_ids)
        list(held.order_by("pk").values_list("pk", flat=True))


def is_label_outdated(row: Label, kept: LabelRow | None) -> bool:
    return kept is not None and kept != (row.choice, row.source, row.votes, row.unanimous)


def apply_label_row(row: Label, kept: LabelRow) -> Label:
    for column, value in kept._asdict().items():
        setattr(row, column, value)
    return row


def compute_label_rows(comparison_ids: Iterable[int]) -> dict[VoteSubject, LabelRow]:
    """What the rows of these comparisons are to say, by comparison and aspect."""
    ids = list(comparison_ids)
    votes = count_human_votes(ids)
    settled = Adjudication.objects.filter(comparison__in=ids).values_list("comparison_id", "aspect_id", "choice")
    due = {subject: compute_label_row(given) for subject, given in votes.items()}
    for comparison, aspect, choice in settled:
        given = votes.get((comparison, aspect), {})
        due[comparison, aspect] = LabelRow(choice, LabelSource.ADJUDICATED, sum(given.values()), len(given) < 2)
    return due


def compute_label_row(votes: Mapping[Choice, int]) -> LabelRow:
    """The choice with more votes than any other; a split gives none."""
    number, leading = sum(votes.values()), max(votes.values())
    first, *others = [choice for choice, count in votes.items() if count == leading]
    if others:
        return LabelRow("", LabelSource.SPLIT, number, False)
    return LabelRow(first, LabelSource.SINGLE if number == 1 else LabelSource.MAJORITY, number, len(votes) == 1)


# ---- the votes of an import: counted once everything is stored, a little at a time ------------


def find_uncounted_imports(evaluation: Evaluation | None = None) -> list[int]:
    """Those that are done, whose votes are not all counted yet, and at which nobody seems to be."""
    quiet = Q(seen_at__isnull=True) | Q(seen_at__lt=Now() - IMPORT_LEASE)
    left = Import.objects.filter(quiet, state=ImportState.DONE, tallied=False)
    if evaluation is not None:
        left = left.filter(evaluation=evaluation)
    return list(left.order_by("pk").values_list("pk", flat=True))


def count_import_labels(importing: Import, seconds: float | None = None) -> bool:
    """Count the votes that came with it, for at most so long. True where more is left to do by another call."""
    until = None if seconds is None else monotonic() + seconds
    importing.refresh_from_db()
    if importing.state != ImportState.DONE or importing.tallied:
        return False
    ids = find_uncounted_comparisons(importing)
    for some in split_ids(ids, get_comparisons_per_batch(importing)):
        with pause_after_transaction(), transaction.atomic():
            update_labels(some)
            importing.summary = {**importing.summary, TALLIED_TO: some[-1]}
            mine = Import.objects.filter(pk=importing.pk, state=ImportState.DONE)
            if not mine.update(summary=importing.summary, seen_at=Now()):  # it is being undone
                return False
        if some[-1] != ids[-1] and is_time_up(until):
            return True
    return not mark_import_counted(importing, ids)


def find_uncounted_comparisons(importing: Import) -> list[int]:
    """The comparisons that its people voted on, by choices or by scores, and whose labels do not know it yet."""
    brought = {"source_import": importing, "rater__kind": RaterKind.HUMAN}
    ids = set(Verdict.objects.filter(**brought).order_by().values_list("comparison_id", flat=True).distinct())
    for comparison in ("response__comparisons_as_a", "response__comparisons_as_b"):
        scored = Score.objects.filter(finished_imports(f"{comparison}__"), **brought).order_by()
        ids.update(scored.filter(**{f"{comparison}__isnull": False}).values_list(comparison, flat=True).distinct())
    return sorted(pk for pk in ids if pk > importing.summary.get(TALLIED_TO, 0))


@transaction.atomic
def mark_import_counted(importing: Import, ids: Sequence[int]) -> bool:
    """Write that down, unless its votes were called to be counted anew meanwhile."""
    now = Import.objects.select_for_update().get(pk=importing.pk)
    if ids and TALLIED_TO not in now.summary:
        return False
    now.tallied = True
    now.save(update_fields=["tallied"])
    return True


def split_ids(ids: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


def get_comparisons_per_batch(importing: Import) -> int:
    """As many as make a transaction's worth of labels."""
    aspects = Aspect.objects.filter(evaluation=importing.evaluation_id).count()
    return max(1, rows_per_transaction() // max(1, aspects))
