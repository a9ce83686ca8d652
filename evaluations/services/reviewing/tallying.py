"""The labels that people's votes and adjudications make, kept in the transaction that changed them.

A vote is a final choice: of a saved review that is no calibration, or of a person that came with an
import which is done; derived where it was given as two scores. Who reviewed a comparison
again, by another version of the rubric, has one vote all the same: that of the newest review.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Final, NamedTuple

from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from evaluations.domain import (
    Choice,
    ImportState,
    LabelSource,
    PickedBy,
    RaterKind,
    ReviewState,
    Stage,
    derived_choice,
)
from evaluations.models import (
    Adjudication,
    Aspect,
    Comparison,
    Evaluation,
    Import,
    Label,
    Review,
    RubricAspect,
    Score,
    Verdict,
)
from evaluations.models.material import finished_imports
from evaluations.services.importing.preferring import preferences
from evaluations.services.importing.recounting import TALLIED_TO
from evaluations.services.importing.sweeping import DEAD_AFTER, rows_at_once
from evaluations.services.pacing import paced, time_is_up

COUNTED: Final = [picked_by.value for picked_by in PickedBy if picked_by is not PickedBy.CALIBRATION]

Subject = tuple[int, int]  # a comparison's id and an aspect's
Votes = Mapping[Subject, Mapping[Choice, int]]


class Kept(NamedTuple):
    """What a Label row says."""

    choice: str
    source: str
    votes: int
    unanimous: bool


class Vote(NamedTuple):
    """``review`` is None for what came with an import."""

    comparison: int
    aspect: int
    rater: int
    review: int | None
    choice: Choice


def tally(comparison_ids: Iterable[int]) -> None:
    """Count the votes on these comparisons anew. Called inside the transaction that changed one."""
    ids = sorted(set(comparison_ids))
    if not ids:
        return
    hold(ids)
    due = recount(ids)
    standing = {(row.comparison_id, row.aspect_id): row for row in Label.objects.filter(comparison__in=ids)}
    gone = [row.pk for subject, row in standing.items() if subject not in due]
    if gone:
        Label.objects.filter(pk__in=gone).delete()
    changed = [changed_to(row, due[subject]) for subject, row in standing.items() if differs(row, due.get(subject))]
    Label.objects.bulk_update(changed, Kept._fields)
    new = [(subject, kept) for subject, kept in due.items() if subject not in standing]
    Label.objects.bulk_create(
        Label(comparison_id=comparison, aspect_id=aspect, **kept._asdict()) for (comparison, aspect), kept in new
    )


def hold(comparison_ids: Collection[int]) -> None:
    """Until the transaction ends nobody else counts these: of two who vote at once, the second sees both votes."""
    if connection.features.has_select_for_update:
        held = Comparison.all_rows.select_for_update(no_key=True).filter(pk__in=comparison_ids)
        list(held.order_by("pk").values_list("pk", flat=True))


def differs(row: Label, kept: Kept | None) -> bool:
    return kept is not None and kept != (row.choice, row.source, row.votes, row.unanimous)


def changed_to(row: Label, kept: Kept) -> Label:
    for column, value in kept._asdict().items():
        setattr(row, column, value)
    return row


def recount(comparison_ids: Iterable[int]) -> dict[Subject, Kept]:
    """What the rows of these comparisons are to say, by comparison and aspect."""
    ids = list(comparison_ids)
    votes = votes_on(ids)
    settled = Adjudication.objects.filter(comparison__in=ids).values_list("comparison_id", "aspect_id", "choice")
    due = {subject: counted(given) for subject, given in votes.items()}
    for comparison, aspect, choice in settled:
        given = votes.get((comparison, aspect), {})
        due[comparison, aspect] = Kept(choice, LabelSource.ADJUDICATED, sum(given.values()), len(given) < 2)
    return due


def counted(votes: Mapping[Choice, int]) -> Kept:
    """The choice with more votes than any other; a split gives none."""
    number, leading = sum(votes.values()), max(votes.values())
    first, *others = [choice for choice, count in votes.items() if count == leading]
    if others:
        return Kept("", LabelSource.SPLIT, number, False)
    return Kept(first, LabelSource.SINGLE if number == 1 else LabelSource.MAJORITY, number, len(votes) == 1)


def votes_on(comparison_ids: Sequence[int]) -> Votes:
    """How often people finally made each choice, in three queries, or a few more where people gave scores."""
    votes: dict[Subject, Counter[Choice]] = defaultdict(Counter)
    given = (*choices_made(comparison_ids), *choices_derived(comparison_ids), *choices_imported(comparison_ids))
    for vote in one_of_each_person(given):
        votes[vote.comparison, vote.aspect][vote.choice] += 1
    return votes


def one_of_each_person(votes: Iterable[Vote]) -> list[Vote]:
    """Of a person's reviews the newest that has the aspect. Imported votes have no order: all of them count."""
    imported, newest = [], {}
    for vote in sorted(votes, key=lambda vote: vote.review or 0):
        if vote.review is None:
            imported.append(vote)
        else:
            newest[vote.comparison, vote.aspect, vote.rater] = vote
    return [*imported, *newest.values()]


def choices_made(comparison_ids: Sequence[int]) -> Iterator[Vote]:
    """By people, in reviews and in imports that are done."""
    finished = Q(stage=Stage.FINAL, review__state=ReviewState.FINAL, review__picked_by__in=COUNTED)
    said = Verdict.objects.filter(finished | Q(review__isnull=True), rater__kind=RaterKind.HUMAN)
    rows = said.filter(comparison__in=comparison_ids).order_by("pk")
    columns = rows.values_list("comparison_id", "aspect_id", "rater_id", "review_id", "choice")
    return (Vote(one, aspect, rater, review, Choice(choice)) for one, aspect, rater, review, choice in columns)


def choices_derived(comparison_ids: Sequence[int]) -> Iterator[Vote]:
    """From the scores that a person finally gave the two responses, by the margin of the review's rubric."""
    given: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    scores = Score.objects.filter(
        review__comparison__in=comparison_ids,
        review__state=ReviewState.FINAL,
        review__picked_by__in=COUNTED,
        stage=Stage.FINAL,
    )
    for review, aspect, response, value in scores.values_list("review_id", "aspect_id", "response_id", "value"):
        given[review, aspect][response] = value
    if not given:
        return
    reviews = Review.objects.select_related("comparison").filter(pk__in={review for review, _ in given})
    known = {review.pk: review for review in reviews}
    margins = margins_of({review.rubric_version_id for review in known.values()})
    for (pk, aspect), values in given.items():
        made, sides = known[pk], known[pk].comparison
        margin = margins.get((made.rubric_version_id, aspect), 0.0)
        choice = derived_choice(values.get(sides.response_a_id), values.get(sides.response_b_id), margin)
        if choice is not None:
            yield Vote(made.comparison_id, aspect, made.rater_id, pk, choice)


def choices_imported(comparison_ids: Sequence[int]) -> Iterator[Vote]:
    """From the scores of people that came with imports, two of one sample each."""
    return (Vote(one.comparison, one.aspect, one.rater, None, one.choice) for one in preferences(comparison_ids))


def margins_of(versions: Collection[int]) -> dict[tuple[int, int], float]:
    """The margin of a tie by rubric version and aspect."""
    rows = RubricAspect.objects.filter(version__in=versions).order_by()
    columns = rows.values_list("version_id", "aspect_id", "tie_margin")
    return {(version, aspect): margin for version, aspect, margin in columns}


# ---- the votes of an import: counted once everything is stored, a little at a time ------------


def imports_left_off(evaluation: Evaluation | None = None) -> list[int]:
    """Those that are done, whose votes are not all counted yet, and at which nobody seems to be."""
    quiet = Q(seen_at__isnull=True) | Q(seen_at__lt=Now() - DEAD_AFTER)
    left = Import.objects.filter(quiet, state=ImportState.DONE, tallied=False)
    if evaluation is not None:
        left = left.filter(evaluation=evaluation)
    return list(left.order_by("pk").values_list("pk", flat=True))


def tally_import(importing: Import, seconds: float | None = None) -> bool:
    """Count the votes that came with it, for at most so long. True where more is left to do by another call."""
    until = None if seconds is None else monotonic() + seconds
    importing.refresh_from_db()
    if importing.state != ImportState.DONE or importing.tallied:
        return False
    ids = left_to_tally(importing)
    for some in chunks(ids, comparisons_at_once(importing)):
        with paced(), transaction.atomic():
            tally(some)
            importing.summary = {**importing.summary, TALLIED_TO: some[-1]}
            mine = Import.objects.filter(pk=importing.pk, state=ImportState.DONE)
            if not mine.update(summary=importing.summary, seen_at=Now()):  # it is being undone
                return False
        if some[-1] != ids[-1] and time_is_up(until):
            return True
    return not all_tallied(importing, ids)


def left_to_tally(importing: Import) -> list[int]:
    """The comparisons that its people voted on, by choices or by scores, and whose labels do not know it yet."""
    brought = {"source_import": importing, "rater__kind": RaterKind.HUMAN}
    ids = set(Verdict.objects.filter(**brought).order_by().values_list("comparison_id", flat=True).distinct())
    for comparison in ("response__comparisons_as_a", "response__comparisons_as_b"):
        scored = Score.objects.filter(finished_imports(f"{comparison}__"), **brought).order_by()
        ids.update(scored.filter(**{f"{comparison}__isnull": False}).values_list(comparison, flat=True).distinct())
    return sorted(pk for pk in ids if pk > importing.summary.get(TALLIED_TO, 0))


@transaction.atomic
def all_tallied(importing: Import, ids: Sequence[int]) -> bool:
    """Write that down, unless its votes were called to be counted anew meanwhile."""
    now = Import.objects.select_for_update().get(pk=importing.pk)
    if ids and TALLIED_TO not in now.summary:
        return False
    now.tallied = True
    now.save(update_fields=["tallied"])
    return True


def chunks(ids: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


def comparisons_at_once(importing: Import) -> int:
    """As many as make a transaction's worth of labels."""
    aspects = Aspect.objects.filter(evaluation=importing.evaluation_id).count()
    return max(1, rows_at_once() // max(1, aspects))
