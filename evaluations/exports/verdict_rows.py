"""Verdicts in long form: one row for each choice of a rater or failed call of a judge."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from django.db.models import QuerySet

from evaluations.domain.choices import INCONSISTENT, ShownOrder, Stage
from evaluations.domain.judges import FAILURE_STATES
from evaluations.domain.reviews import SAVED_REVIEW_STATES, SelectionMethod
from evaluations.exports.chunk_reader import CHUNK_ROWS, VerdictRecord
from evaluations.exports.participants import Participants, format_rubric_name
from evaluations.formats.export_format import ExportTally
from evaluations.formats.preferences import ExportCounts
from evaluations.formats.verdicts_export import ExportedRater, ExportedVerdict
from evaluations.models.comparisons import Comparison
from evaluations.models.rubrics import RubricAspect
from evaluations.models.runs import Call
from evaluations.models.verdicts import Review, Verdict
from evaluations.verdicts.score_choices import derive_score_choices
from evaluations.verdicts.votes import (
    CountedReviews,
    Vote,
    find_counted_choices,
    read_imported_votes,
    read_scored_votes,
)

SHOWN_SWAPPED: Final[Mapping[str, bool | str | None]] = {
    ShownOrder.AS_STORED: False,
    ShownOrder.SWAPPED: True,
    ShownOrder.FOLDED: "folded",
    ShownOrder.UNKNOWN: None,
}
ORDER_POSITIONS: Final = {str(order): place for place, order in enumerate(ShownOrder)}
NO_ASPECT: Final = "overall"  # as for imported files without aspects


class ListedComparison(NamedTuple):
    pk: int
    query_id: str
    cluster: str
    candidate_a: str
    candidate_b: str
    id_a: int
    id_b: int


class FailedCall(NamedTuple):
    comparison_id: int
    rater_id: int
    shown: str
    sample: int
    state: str
    rationale: str
    created_at: datetime


class ListedReview(NamedTuple):
    pk: int
    comparison_id: int
    rater_id: int
    selection_method: str
    blind: bool
    rubric: str


COMPARISON_NAME_COLUMNS: Final = (
    *("pk", "query__key", "query__cluster", "response_a__candidate__name", "response_b__candidate__name"),
    *("response_a_id", "response_b_id"),
)
FAILED_CALL_COLUMNS: Final = ("comparison_id", "judge__raters", "shown", "sample", "state", "rationale", "created_at")
LISTED_REVIEW_COLUMNS: Final = (
    *("pk", "comparison_id", "rater_id", "selection_method", "blind"),
    *("rubric_version__rubric__name", "rubric_version__number"),
)


@dataclass(frozen=True)
class ListedChunk:
    """The rows of a chunk of comparisons, by comparison id; reviews by their own id."""

    choices: Mapping[int, list[VerdictRecord]]
    failures: Mapping[int, list[FailedCall]]
    passes: Mapping[int, ListedReview]
    counted: CountedReviews


def iterate_verdict_rows(
    comparisons: "QuerySet[Comparison]", participants: Participants, tally: ExportTally
) -> Iterator[tuple[str, ExportedVerdict]]:
    """The cluster of each row and the row: comparison by comparison, raters by name, then sample, order and aspect.

    Choices that count nowhere are excluded: calibration reviews, and choices that a later review of the same person
    replaced both for the label and in the statistics. A review that saw the judge does not replace a blind one.
    Choices that are derived from scores are only counted, since the scores have their own export.
    """
    first_asked = find_first_asked_aspects(participants)
    for chunk in iterate_comparison_chunks(comparisons):
        ids = [comparison.pk for comparison in chunk]
        listed = read_listed_chunk(ids, participants)
        if participants.archived and (left := count_archived_verdicts(ids, participants)):
            tally.excluded["judge_archived"] += left
        if derived := count_score_choices(chunk, listed, participants):
            tally.excluded["given_as_scores"] += derived
        for comparison in chunk:
            tally.comparisons += 1
            rows = [
                *build_choice_rows(comparison, listed, participants, tally),
                *build_failure_rows(comparison, listed, participants, first_asked),
            ]
            for _, row in sorted(rows, key=lambda pair: pair[0]):
                yield comparison.cluster, row


def iterate_comparison_chunks(comparisons: "QuerySet[Comparison]") -> Iterator[list[ListedComparison]]:
    after = 0
    while chunk := list(
        comparisons.filter(pk__gt=after).order_by("pk").values_list(*COMPARISON_NAME_COLUMNS)[:CHUNK_ROWS]
    ):
        yield [ListedComparison._make(row) for row in chunk]
        after = chunk[-1][0]


def read_listed_chunk(ids: Sequence[int], participants: Participants) -> ListedChunk:
    """Verdicts are read before their reviews, so that none lacks its own."""
    choices: dict[int, list[VerdictRecord]] = defaultdict(list)
    for row in Verdict.objects.filter(comparison__in=ids).order_by("pk").values_list(*VerdictRecord._fields):
        verdict = VerdictRecord._make(row)
        if verdict.rater_id in participants.raters and verdict.aspect_id in participants.aspects:
            choices[verdict.comparison_id].append(verdict)
    failures: dict[int, list[FailedCall]] = defaultdict(list)
    calls = Call.objects.filter(comparison__in=ids, state__in=FAILURE_STATES).order_by("pk")
    for row in calls.values_list(*FAILED_CALL_COLUMNS):
        call = FailedCall._make(row)
        if call.rater_id in participants.raters:
            failures[call.comparison_id].append(call)
    reviews = Review.objects.filter(comparison__in=ids, state__in=SAVED_REVIEW_STATES).order_by("pk")
    passes = {
        row[0]: ListedReview._make((*row[:5], f"{row[5]} {row[6]}"))
        for row in reviews.values_list(*LISTED_REVIEW_COLUMNS)
    }
    return ListedChunk(choices, failures, passes, find_counted_choices(ids))


def count_archived_verdicts(ids: Sequence[int], participants: Participants) -> int:
    """How many rows the verdicts and failures of archived judges would be."""
    archived, calls = participants.archived, Call.objects.filter(comparison__in=ids, state__in=FAILURE_STATES)
    verdicts = Verdict.objects.filter(comparison__in=ids, rater__in=archived)
    return verdicts.count() + calls.filter(judge__raters__in=archived).count()


def count_score_choices(chunk: Sequence[ListedComparison], listed: ListedChunk, participants: Participants) -> int:
    """The number of choices on these comparisons that derive from scores of both responses."""
    sides = {comparison.pk: (comparison.id_a, comparison.id_b) for comparison in chunk}
    count = 0
    if participants.scored:
        votes = [*read_scored_votes(list(sides)), *read_imported_votes(list(sides))]
        count += sum(vote.rater in participants.raters and is_counted(vote, listed) for vote in votes)
    if participants.scorers:
        derived = derive_score_choices(participants.scorers, sides)
        count += sum(len(choices) for of_rater in derived.values() for choices in of_rater.values())
    return count


def is_counted(vote: Vote, listed: ListedChunk) -> bool:
    return vote.review is None or listed.counted.get_place(vote.review.number, vote.aspect) is not None


def build_choice_rows(
    comparison: ListedComparison, listed: ListedChunk, participants: Participants, counts: ExportCounts
) -> Iterator[tuple[tuple[int, int, int, int], ExportedVerdict]]:
    """A row for each choice, with its sort key; several of one person are samples, that of the label first."""
    places = {pk: place for place, pk in enumerate(participants.aspects)}
    verdicts = listed.choices.get(comparison.pk, ())
    finals: dict[tuple[int | None, int], VerdictRecord] = {
        (verdict.review_id, verdict.aspect_id): verdict
        for verdict in verdicts
        if verdict.stage == Stage.FINAL and verdict.review_id
    }
    for verdict in verdicts:
        if verdict.stage == Stage.FINAL and verdict.review_id:
            continue  # is in the row of the first one
        review, final, sample = None, None, verdict.sample
        if verdict.review_id:
            review = listed.passes.get(verdict.review_id)
            counted = listed.counted.get_place(verdict.review_id, verdict.aspect_id)
            if reason := get_exclusion_reason(review, counted):
                counts.excluded[reason] += 1
                continue
            final, sample = finals.get((verdict.review_id, verdict.aspect_id)), counted or 0
        place = (
            participants.order[verdict.rater_id],
            sample,
            ORDER_POSITIONS[verdict.shown],
            places[verdict.aspect_id],
        )
        yield place, build_long_verdict_row(comparison, verdict, sample, final, review, participants)


def get_exclusion_reason(review: ListedReview | None, counted: int | None) -> str:
    """Why a choice of a review is excluded; empty if it counts. ``counted``: its place among those that count."""
    if review is None:
        return "undone_meanwhile"
    if review.selection_method == SelectionMethod.CALIBRATION:
        return "calibration"
    return "replaced_by_newer_review" if counted is None else ""


def build_long_verdict_row(
    comparison: ListedComparison,
    verdict: VerdictRecord,
    sample: int,
    final: VerdictRecord | None,
    review: ListedReview | None,
    participants: Participants,
) -> ExportedVerdict:
    """The row of one choice: the first choice with the final one; both are equal if it was imported."""
    choice = INCONSISTENT if verdict.inconsistent else verdict.choice
    return {
        "query_id": comparison.query_id,
        "candidate_a": comparison.candidate_a,
        "candidate_b": comparison.candidate_b,
        "aspect": participants.aspects[verdict.aspect_id],
        "choice": choice,
        "shown_swapped": SHOWN_SWAPPED[verdict.shown],
        "sample": sample,
        "stage": str(Stage.FIRST if review else Stage.FINAL),
        "final_choice": (final.choice if final else None) if review else choice,
        "rationale": verdict.rationale,
        "note": (final.note if final else "") or verdict.note,
        "created_at": format_timestamp(verdict.created_at),
        "blind": review.blind if review else None,
        **describe_rater(verdict.rater_id, review.rubric if review else None, participants),
    }


def build_failure_rows(
    comparison: ListedComparison, listed: ListedChunk, participants: Participants, first_asked: Mapping[int, str]
) -> Iterator[tuple[tuple[int, int, int, int], ExportedVerdict]]:
    """One row for each failed call, under the first aspect that the judge was asked about."""
    default_aspect = next(iter(participants.aspects.values()), NO_ASPECT)
    for call in listed.failures.get(comparison.pk, ()):
        yield (
            (participants.order[call.rater_id], call.sample, ORDER_POSITIONS[call.shown], -1),
            {
                "query_id": comparison.query_id,
                "candidate_a": comparison.candidate_a,
                "candidate_b": comparison.candidate_b,
                "aspect": first_asked.get(call.rater_id, default_aspect),
                "choice": call.state,
                "shown_swapped": SHOWN_SWAPPED[call.shown],
                "sample": call.sample,
                "stage": str(Stage.FINAL),
                "final_choice": None,
                "rationale": call.rationale,
                "note": "",
                "created_at": format_timestamp(call.created_at),
                "blind": None,
                **describe_rater(call.rater_id, None, participants),
            },
        )


def find_first_asked_aspects(participants: Participants) -> dict[int, str]:
    """Rater id → the first aspect that its judge's rubric asks about; of an imported judge one that it spoke of."""
    versions = {pk: judge.rubric_version_id for pk, judge in participants.judges.items() if judge.rubric_version_id}
    rubric_aspects = RubricAspect.objects.filter(version__in=set(versions.values())).order_by("-position")
    first = dict(rubric_aspects.values_list("version", "aspect"))
    aspects = {
        pk: participants.aspects[first[version]]
        for pk, version in versions.items()
        if first.get(version) in participants.aspects
    }
    for pk in participants.judges.keys() - aspects.keys():
        verdict = Verdict.objects.filter(rater=pk).order_by("comparison", "aspect").first()
        if verdict and verdict.aspect_id in participants.aspects:
            aspects[pk] = participants.aspects[verdict.aspect_id]
    return aspects


def describe_rater(rater_id: int, rubric: str | None, participants: Participants) -> ExportedRater:
    rater, judge = participants.raters[rater_id], participants.judges.get(rater_id)
    return {
        "rater": rater.name,
        "rater_kind": rater.kind,
        "rubric": rubric or (format_rubric_name(judge.rubric_version) if judge and judge.rubric_version else None),
        "judge_kind": judge.kind if judge else None,
        "model": judge.model if judge else None,
    }


def format_timestamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()
