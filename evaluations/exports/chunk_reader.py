"""Comparisons with all records about them, read chunk by chunk with the same few queries."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from evaluations.domain.choices import CompleteSideScores
from evaluations.domain.judges import CallState
from evaluations.domain.reviews import SAVED_REVIEW_STATES, ReviewState
from evaluations.domain.roles import RaterKind
from evaluations.exports.participants import AvailableData, Participants
from evaluations.models.comparisons import Comparison
from evaluations.models.runs import Call
from evaluations.models.verdicts import Adjudication, Comment, PackedVotes, Review, Score, Span, Verdict
from evaluations.verdicts.judge_choices import PackedVote
from evaluations.verdicts.score_choices import (
    ImportedPreference,
    ReviewScores,
    derive_score_choices,
    load_imported_preferences,
    load_review_scores,
)

CHUNK_ROWS = 1_000
FIRST_CHUNK_ROWS: Final = 100  # so that the first bytes are sent soon
CHUNK_CHARACTERS: Final = 16_000_000


class ComparisonRow(NamedTuple):
    """One comparison as read from the database, in the order of COMPARISON_COLUMNS; JSON columns are still text."""

    pk: int
    key: str
    cluster: str
    category: str
    messages: str
    context: str | None
    reference: str | None
    query_metadata: str
    metadata: str
    candidate_a: int
    response_a: str
    metadata_a: str
    candidate_b: int
    response_b: str
    metadata_b: str
    id_a: int
    id_b: int

    @property
    def characters(self) -> int:
        return len(self.messages) + len(self.context or "") + len(self.response_a) + len(self.response_b)


COMPARISON_COLUMNS: Final = (
    "pk",
    "query__key",
    "query__cluster",
    "query__category",
    "query__messages",
    "query__context",
    "query__reference",
    "query__metadata",
    "metadata",
    "response_a__candidate_id",
    "response_a__messages",
    "response_a__metadata",
    "response_b__candidate_id",
    "response_b__messages",
    "response_b__metadata",
    "response_a_id",
    "response_b_id",
)
# Read as text: Django's reading of seven JSON columns took a third of all the time.
TEXT_ANNOTATIONS: Final = {
    f"text_{name}": Cast(name, TextField()) for name in COMPARISON_COLUMNS if name.endswith(("messages", "metadata"))
}
READ_COLUMNS: Final = tuple(
    f"text_{name}" if f"text_{name}" in TEXT_ANNOTATIONS else name for name in COMPARISON_COLUMNS
)


class VerdictRecord(NamedTuple):
    comparison_id: int
    rater_id: int
    aspect_id: int
    stage: str
    shown: str
    sample: int
    choice: str
    inconsistent: bool
    review_id: int | None
    note: str
    reason: str
    rationale: str
    created_at: datetime


class CallRecord(NamedTuple):
    comparison_id: int
    judge_id: int
    shown: str
    state: str
    rationale: str
    sample: int


class ReviewRecord(NamedTuple):
    pk: int
    comparison_id: int
    rater_id: int
    rubric_version_id: int
    state: str
    blind: bool
    shown: str
    note: str
    selection_method: str
    queue_id: int | None
    probability: float | None
    reveal: str
    judge_first: bool
    judge_id: int | None
    awaits_judge: bool
    active_ms: int
    is_example: bool
    skip_reason: str
    finished_at: datetime | None


def read_comparison_chunk(comparisons: "QuerySet[Comparison]", after: int, size: int) -> list[ComparisonRow]:
    following = comparisons.filter(pk__gt=after).order_by("pk").annotate(**TEXT_ANNOTATIONS).values_list(*READ_COLUMNS)
    return [ComparisonRow._make(row) for row in following[:size]]


def iterate_chunks(comparisons: "QuerySet[Comparison]") -> Iterator[list[ComparisonRow]]:
    """A short chunk first, then chunks of a limited number of characters, so that memory stays flat."""
    after, size = 0, min(FIRST_CHUNK_ROWS, CHUNK_ROWS)
    while chunk := read_comparison_chunk(comparisons, after, size):
        yield chunk
        after = chunk[-1].pk
        each = 1 + sum(row.characters for row in chunk) // len(chunk)
        size = max(1, min(CHUNK_ROWS, CHUNK_CHARACTERS // each))


def filter_within(ids: Sequence[int]) -> Q:
    """A filter for rows of these comparisons: by first and last id if hardly any is missing between them."""
    if ids[-1] - ids[0] < 2 * len(ids):
        return Q(comparison__gte=ids[0], comparison__lte=ids[-1])
    return Q(comparison__in=ids)


def read_packed_votes(ids: Sequence[int], raters: Collection[int]) -> dict[int, dict[int, list[PackedVote]]]:
    """Comparison id → rater id → packed votes of these judges, as plain tuples in the order of their samples."""
    votes: dict[int, dict[int, list[PackedVote]]] = defaultdict(lambda: defaultdict(list))
    if raters:
        rows = PackedVotes.objects.filter(filter_within(ids), rater__in=raters).order_by("sample", "pk")
        for row in rows.values_list(*PackedVote._fields):
            votes[row[0]][row[1]].append(row)
    return votes


def read_verdicts(ids: Sequence[int], participants: Participants) -> dict[int, dict[int, list[VerdictRecord]]]:
    """Comparison id → rater id → verdicts of people and gold on the aspects of the participants."""
    by_comparison: dict[int, dict[int, list[VerdictRecord]]] = defaultdict(lambda: defaultdict(list))
    if not participants.others:
        return by_comparison
    verdicts = Verdict.objects.filter(filter_within(ids), rater__in=participants.others).order_by("sample", "pk")
    for verdict in map(VerdictRecord._make, verdicts.values_list(*VerdictRecord._fields)):
        if verdict.aspect_id in participants.aspects:
            by_comparison[verdict.comparison_id][verdict.rater_id].append(verdict)
    return by_comparison


class VerdictTexts(NamedTuple):
    """The rationale and note of an imported verdict."""

    shown: str
    sample: int
    rationale: str
    note: str


def read_judge_texts(
    ids: Sequence[int], participants: Participants
) -> Mapping[tuple[int, int, str], list[VerdictTexts]]:
    """Comparison id, rater id and aspect key → the words of verdicts that came in files."""
    texts: dict[tuple[int, int, str], list[VerdictTexts]] = defaultdict(list)
    if not participants.present.words_in_files or not participants.judges:
        return texts
    brought = Verdict.objects.filter(
        filter_within(ids), rater__in=list(participants.judges), source_import__isnull=False
    )
    rows = brought.exclude(rationale="", note="").order_by("sample", "pk")
    for pk, rater, aspect, *words in rows.values_list("comparison_id", "rater_id", "aspect_id", *VerdictTexts._fields):
        if aspect in participants.aspects:
            texts[pk, rater, participants.aspects[aspect]].append(VerdictTexts(*words))
    return texts


def read_review_scores(ids: Sequence[int], participants: Participants) -> dict[int, dict[int, list[ReviewScores]]]:
    """Comparison id → rater id → scores given in reviews; no query is made if nobody scored."""
    scores: dict[int, dict[int, list[ReviewScores]]] = defaultdict(lambda: defaultdict(list))
    if participants.scored and participants.present.reviews:
        for score in load_review_scores(ids, Q(rater__in=participants.scored)):
            if score.aspect in participants.aspects:
                scores[score.comparison][score.rater].append(score)
    return scores


def read_imported_preferences(
    ids: Sequence[int], participants: Participants
) -> dict[int, dict[int, list[ImportedPreference]]]:
    """Comparison id → rater id → preferences derived from imported scores of people or gold."""
    by_comparison: dict[int, dict[int, list[ImportedPreference]]] = defaultdict(lambda: defaultdict(list))
    for preference in load_imported_preferences(ids, (RaterKind.HUMAN, RaterKind.GOLD)) if participants.scored else ():
        if preference.rater in participants.raters and preference.aspect in participants.aspects:
            by_comparison[preference.comparison][preference.rater].append(preference)
    return by_comparison


@dataclass(frozen=True)
class ChunkReviews:
    """``saved`` by their own id, ``skipped`` by that of the comparison."""

    saved: Mapping[int, ReviewRecord]
    skipped: Mapping[int, list[ReviewRecord]]


def read_reviews(ids: Sequence[int], participants: Participants) -> ChunkReviews:
    saved: dict[int, ReviewRecord] = {}
    skipped: dict[int, list[ReviewRecord]] = defaultdict(list)
    if participants.present.reviews:
        rows = Review.objects.filter(filter_within(ids), state__in=(*SAVED_REVIEW_STATES, ReviewState.SKIPPED))
        for review in map(ReviewRecord._make, rows.order_by("pk").values_list(*ReviewRecord._fields)):
            if review.state == ReviewState.SKIPPED:
                skipped[review.comparison_id].append(review)
            else:
                saved[review.pk] = review
    return ChunkReviews(saved, skipped)


@dataclass(frozen=True)
class Discussion:
    """Comments, spans, resolutions: spans by review id, the others by comparison id."""

    spans: Mapping[int, list[Span]]
    comments: Mapping[int, list[Comment]]
    adjudications: Mapping[int, list[Adjudication]]


def read_discussion(ids: Sequence[int], present: AvailableData) -> Discussion:
    """Comments that were withdrawn are left out."""
    spans, comments, adjudications = defaultdict(list), defaultdict(list), defaultdict(list)
    if present.spans:
        for span in Span.objects.filter(review__comparison__in=ids).order_by("pk"):
            spans[span.review_id].append(span)
    if present.comments:
        current = Comment.objects.filter(filter_within(ids), withdrawn_at__isnull=True)
        for comment in current.select_related("user").order_by("pk"):
            comments[comment.comparison_id].append(comment)
    if present.adjudications:
        for adjudication in Adjudication.objects.filter(filter_within(ids)).select_related("user").order_by("pk"):
            adjudications[adjudication.comparison_id].append(adjudication)
    return Discussion(spans, comments, adjudications)


@dataclass(frozen=True)
class JudgeScores:
    """Scores of judges that rate single responses. ``derived``: rater id → comparison id → aspect key.

    ``calls``: rater id → response id → state and rationale of each.
    """

    derived: Mapping[int, Mapping[int, Mapping[str, CompleteSideScores]]]
    calls: Mapping[int, Mapping[int, list[tuple[str, str]]]]


def read_judge_scores(chunk: Iterable[ComparisonRow], participants: Participants) -> JudgeScores:
    if not participants.scorers:
        return JudgeScores({}, {})
    sides = {row.pk: (row.id_a, row.id_b) for row in chunk}
    calls_by_rater: dict[int, dict[int, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    rater_of = {rater.judge_id: rater.pk for rater in participants.scorers}
    calls = Call.objects.filter(response__in={pk for pair in sides.values() for pk in pair}, judge__in=list(rater_of))
    columns = calls.order_by("sample", "pk").values_list("judge_id", "response_id", "state", "rationale")
    for judge, response, state, rationale in columns:
        calls_by_rater[rater_of[judge]][response or 0].append((state, rationale))
    for rater_id, response, rationale in read_imported_rationales(sides, participants):
        calls_by_rater[rater_id][response].append((CallState.ANSWERED, rationale))
    return JudgeScores(derive_score_choices(participants.scorers, sides), calls_by_rater)


def read_imported_rationales(
    sides: Mapping[int, tuple[int, int]], participants: Participants
) -> Iterable[tuple[int, int, str]]:
    """Rater, response and what an imported judge wrote with its score."""
    imported = [rater.pk for rater in participants.scorers if rater.pk in participants.scored]
    if not imported:
        return ()
    scores = Score.objects.filter(response__in={pk for pair in sides.values() for pk in pair}, rater__in=imported)
    return scores.exclude(rationale="").order_by("sample", "pk").values_list("rater_id", "response_id", "rationale")


def read_judge_calls(
    ids: Sequence[int], participants: Participants, raters: Collection[int] | None = None
) -> Mapping[int, Mapping[int, list[CallRecord]]]:
    """Comparison id → rater id → calls, as plain tuples. With ``raters`` they lack state and rationale."""
    calls_by_comparison: dict[int, dict[int, list[CallRecord]]] = defaultdict(lambda: defaultdict(list))
    if not participants.judges:
        return calls_by_comparison
    calls, columns = Call.objects.filter(filter_within(ids)), list(CallRecord._fields)
    if raters is not None:
        calls = calls.filter(judge__in=[participants.judges[pk].pk for pk in raters])
        columns = ["comparison_id", "judge_id", "shown", "sample"]
    rater_of = participants.rater_of
    for call in calls.order_by("sample", "pk").values_list(*columns):
        if call[1] in rater_of:
            calls_by_comparison[call[0]][rater_of[call[1]]].append(call)
    return calls_by_comparison
