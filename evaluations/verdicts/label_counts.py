"""The label rows that human votes and resolutions make, updated in the transaction that changes a vote."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from django.db import connection

from evaluations.domain.choices import Choice, LabelSource
from evaluations.models.comparisons import Comparison
from evaluations.models.verdicts import Adjudication, Label
from evaluations.verdicts.votes import VoteSubject, count_votes


class LabelRow(NamedTuple):
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
    existing = {(row.comparison_id, row.aspect_id): row for row in Label.objects.filter(comparison__in=ids)}
    gone = [row.pk for subject, row in existing.items() if subject not in due]
    if gone:
        Label.objects.filter(pk__in=gone).delete()
    changed = [
        Label(pk=row.pk, **due[subject]._asdict())
        for subject, row in existing.items()
        if subject in due and due[subject] != (row.choice, row.source, row.votes, row.unanimous)
    ]
    Label.objects.bulk_update(changed, LabelRow._fields)
    new = [(subject, values) for subject, values in due.items() if subject not in existing]
    Label.objects.bulk_create(
        Label(comparison_id=comparison, aspect_id=aspect, **values._asdict()) for (comparison, aspect), values in new
    )


def lock_comparisons(comparison_ids: Collection[int]) -> None:
    """Until the transaction ends nobody else counts these: of two who vote at once, the second sees both votes."""
    if connection.features.has_select_for_update:
        rows = Comparison.all_rows.select_for_update(no_key=True).filter(pk__in=comparison_ids)
        list(rows.order_by("pk").values_list("pk", flat=True))


def compute_label_rows(comparison_ids: Iterable[int]) -> dict[VoteSubject, LabelRow]:
    ids = list(comparison_ids)
    votes = count_votes(ids)
    settled = Adjudication.objects.filter(comparison__in=ids).values_list("comparison_id", "aspect_id", "choice")
    due = {subject: compute_label_row(counts) for subject, counts in votes.items()}
    for comparison, aspect, choice in settled:
        counts = votes.get((comparison, aspect), {})
        due[comparison, aspect] = LabelRow(choice, LabelSource.ADJUDICATED, sum(counts.values()), len(counts) < 2)
    return due


def compute_label_row(votes: Mapping[Choice, int]) -> LabelRow:
    """The choice with more votes than any other; a split gives none."""
    number, leading = sum(votes.values()), max(votes.values())
    first, *others = [choice for choice, count in votes.items() if count == leading]
    if others:
        return LabelRow("", LabelSource.SPLIT, number, False)
    return LabelRow(first, LabelSource.SINGLE if number == 1 else LabelSource.MAJORITY, number, len(votes) == 1)
