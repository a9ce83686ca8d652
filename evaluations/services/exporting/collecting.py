"""Comparisons and everything that was said of them, read a chunk at a time with the same few queries."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast as Cast_

from evaluations.domain import SAVED_REVIEW_STATES, CallState, RaterKind, ReviewState
from evaluations.models import (
    Adjudication,
    Ballot,
    Call,
    Comment,
    Comparison,
    Review,
    Score,
    Span,
    Verdict,
)
from evaluations.services.exporting.casting import Cast, Present
from evaluations.services.exporting.unfolding import Packed
from evaluations.services.importing.preferring import Preference, preferences
from evaluations.services.judging.consolidating import Derivation, derivations

CHUNK = 1_000
FIRST_CHUNK: Final = 100  # the first bytes are not to wait for a thousand comparisons
CHUNK_CHARACTERS: Final = 16_000_000  # where texts are long a chunk has fewer of them


class Material(NamedTuple):
    """One comparison as it is read, in the order of MATERIAL_COLUMNS; what is JSON in the database is still a text."""

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


MATERIAL_COLUMNS: Final = (
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
AS_TEXT: Final = {
    f"text_{name}": Cast_(name, TextField()) for name in MATERIAL_COLUMNS if name.endswith(("messages", "metadata"))
}
READ_COLUMNS: Final = tuple(f"text_{name}" if f"text_{name}" in AS_TEXT else name for name in MATERIAL_COLUMNS)


class Said(NamedTuple):
    """One verdict, as it is read."""

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


class Asked(NamedTuple):
    """One call to a judge, as it is read."""

    comparison_id: int
    judge_id: int
    shown: str
    state: str
    rationale: str
    sample: int


class Passed(NamedTuple):
    """One review, as it is read."""

    pk: int
    comparison_id: int
    rater_id: int
    rubric_version_id: int
    state: str
    blind: bool
    shown: str
    note: str
    picked_by: str
    round_id: int | None
    probability: float | None
    reveal: str
    judge_first: bool
    judge_id: int | None
    awaits_judge: bool
    active_ms: int
    is_example: bool
    skip_reason: str
    finished_at: datetime | None


class Given(NamedTuple):
    """One score of a person, as it is read."""

    review__comparison_id: int
    rater_id: int
    review_id: int
    aspect_id: int
    response_id: int
    stage: str
    value: float
    note: str
    reason: str


def read_chunk(comparisons: "QuerySet[Comparison]", after: int, size: int) -> list[Material]:
    following = comparisons.filter(pk__gt=after).order_by("pk").annotate(**AS_TEXT).values_list(*READ_COLUMNS)
    return [Material._make(row) for row in following[:size]]


def chunks(comparisons: "QuerySet[Comparison]") -> Iterator[list[Material]]:
    """By keyset. A short one first, then as many as have about so many characters together: memory stays flat."""
    after, size = 0, min(FIRST_CHUNK, CHUNK)
    while chunk := read_chunk(comparisons, after, size):
        yield chunk
        after = chunk[-1].pk
        each = 1 + sum(one.characters for one in chunk) // len(chunk)
        size = max(1, min(CHUNK, CHUNK_CHARACTERS // each))


def within(ids: Sequence[int], column: str = "comparison") -> Q:
    """Rows of these comparisons, which stand in order; where hardly any is missing between, by first and last."""
    if ids[-1] - ids[0] < 2 * len(ids):
        return Q(**{f"{column}__gte": ids[0], f"{column}__lte": ids[-1]})
    return Q(**{f"{column}__in": ids})


def ballots_of(ids: Sequence[int], raters: Collection[int]) -> dict[int, dict[int, list[Packed]]]:
    """Comparison id → rater id → what these judges chose."""
    said: dict[int, dict[int, list[Packed]]] = defaultdict(lambda: defaultdict(list))
    if raters:
        for row in ballots_among(ids, raters):
            said[row[0]][row[1]].append(row)
    return said


def ballots_among(ids: Sequence[int], raters: Collection[int]) -> Iterable[Packed]:
    """In the order of a rater's samples; tuples without the names of `Packed`, whose columns they are."""
    return Ballot.objects.filter(within(ids), rater__in=raters).order_by("sample", "pk").values_list(*Packed._fields)


def verdicts_of(ids: Sequence[int], cast: Cast) -> dict[int, dict[int, list[Said]]]:
    """Comparison id → rater id → verdicts of people and gold on the aspects of the cast."""
    said: dict[int, dict[int, list[Said]]] = defaultdict(lambda: defaultdict(list))
    if not cast.others:
        return said
    verdicts = Verdict.objects.filter(within(ids), rater__in=cast.others).order_by("sample", "pk")
    for one in map(Said._make, verdicts.values_list(*Said._fields)):
        if one.aspect_id in cast.aspects:
            said[one.comparison_id][one.rater_id].append(one)
    return said


class Words(NamedTuple):
    """What a verdict that came in a file says beside its choice."""

    shown: str
    sample: int
    rationale: str
    note: str


def words_of_judges(ids: Sequence[int], cast: Cast) -> Mapping[tuple[int, int, str], list[Words]]:
    """Comparison id, rater id and aspect key → the words of verdicts that came in files."""
    said: dict[tuple[int, int, str], list[Words]] = defaultdict(list)
    if not cast.present.words_in_files or not cast.judges:
        return said
    brought = Verdict.objects.filter(within(ids), rater__in=list(cast.judges), source_import__isnull=False)
    rows = brought.exclude(rationale="", note="").order_by("sample", "pk")
    for pk, rater, aspect, *words in rows.values_list("comparison_id", "rater_id", "aspect_id", *Words._fields):
        if aspect in cast.aspects:
            said[pk, rater, cast.aspects[aspect]].append(Words(*words))
    return said


def scores_of(ids: Sequence[int], cast: Cast) -> dict[int, dict[int, list[Given]]]:
    """Comparison id → rater id → scores that people gave in reviews. Nothing is read where nobody did."""
    given: dict[int, dict[int, list[Given]]] = defaultdict(lambda: defaultdict(list))
    if not cast.scored or not cast.present.reviews:
        return given
    scores = Score.objects.filter(review__comparison__in=ids, rater__in=cast.scored).order_by("pk")
    for one in map(Given._make, scores.values_list(*Given._fields)):
        if one.aspect_id in cast.aspects:
            given[one.review__comparison_id][one.rater_id].append(one)
    return given


def preferences_of(ids: Sequence[int], cast: Cast) -> dict[int, dict[int, list[Preference]]]:
    """Comparison id → rater id → what scores of people and gold say that came in files."""
    given: dict[int, dict[int, list[Preference]]] = defaultdict(lambda: defaultdict(list))
    for one in preferences(ids, (RaterKind.HUMAN, RaterKind.GOLD)) if cast.scored else ():
        if one.rater in cast.raters and one.aspect in cast.aspects:
            given[one.comparison][one.rater].append(one)
    return given


@dataclass(frozen=True)
class Reviews:
    """``saved`` by their own id, ``skipped`` by that of the comparison."""

    saved: Mapping[int, Passed]
    skipped: Mapping[int, list[Passed]]


def reviews_of(ids: Sequence[int], cast: Cast) -> Reviews:
    saved: dict[int, Passed] = {}
    skipped: dict[int, list[Passed]] = defaultdict(list)
    if cast.present.reviews:
        made = Review.objects.filter(within(ids), state__in=(*SAVED_REVIEW_STATES, ReviewState.SKIPPED))
        for review in map(Passed._make, made.order_by("pk").values_list(*Passed._fields)):
            if review.state == ReviewState.SKIPPED:
                skipped[review.comparison_id].append(review)
            else:
                saved[review.pk] = review
    return Reviews(saved, skipped)


@dataclass(frozen=True)
class Discussion:
    """What people said to each other, and how it was settled: spans by review, the rest by comparison."""

    spans: Mapping[int, list[Span]]
    comments: Mapping[int, list[Comment]]
    adjudications: Mapping[int, list[Adjudication]]


def discussion_of(ids: Sequence[int], present: Present) -> Discussion:
    """Comments that were withdrawn are left out."""
    spans, comments, adjudications = defaultdict(list), defaultdict(list), defaultdict(list)
    if present.spans:
        for span in Span.objects.filter(review__comparison__in=ids).order_by("pk"):
            spans[span.review_id].append(span)
    if present.comments:
        standing = Comment.objects.filter(within(ids), withdrawn_at__isnull=True)
        for comment in standing.select_related("user").order_by("pk"):
            comments[comment.comparison_id].append(comment)
    if present.adjudications:
        for settled in Adjudication.objects.filter(within(ids)).select_related("user").order_by("pk"):
            adjudications[settled.comparison_id].append(settled)
    return Discussion(spans, comments, adjudications)


@dataclass(frozen=True)
class Scoring:
    """What judges of single responses say. ``derived``: rater id → comparison id → aspect key.

    ``calls``: rater id → response id → state and rationale of each.
    """

    derived: Mapping[int, Mapping[int, Mapping[str, Derivation]]]
    calls: Mapping[int, Mapping[int, list[tuple[str, str]]]]


def scoring_of(chunk: Iterable[Material], cast: Cast) -> Scoring:
    """Nothing is read where no judge scores."""
    if not cast.scorers:
        return Scoring({}, {})
    sides = {one.pk: (one.id_a, one.id_b) for one in chunk}
    asked: dict[int, dict[int, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    rater_of = {rater.judge_id: rater.pk for rater in cast.scorers}
    calls = Call.objects.filter(response__in={pk for pair in sides.values() for pk in pair}, judge__in=list(rater_of))
    columns = calls.order_by("sample", "pk").values_list("judge_id", "response_id", "state", "rationale")
    for judge, response, state, rationale in columns:
        asked[rater_of[judge]][response or 0].append((state, rationale))
    for rater_id, response, rationale in written_in_files(sides, cast):
        asked[rater_id][response].append((CallState.ANSWERED, rationale))
    return Scoring(derivations(cast.scorers, sides), asked)


def written_in_files(sides: Mapping[int, tuple[int, int]], cast: Cast) -> Iterable[tuple[int, int, str]]:
    """Rater, response and what an imported judge wrote with its score."""
    imported = [rater.pk for rater in cast.scorers if rater.pk in cast.scored]
    if not imported:
        return ()
    scores = Score.objects.filter(response__in={pk for pair in sides.values() for pk in pair}, rater__in=imported)
    return scores.exclude(rationale="").order_by("sample", "pk").values_list("rater_id", "response_id", "rationale")


def calls_of(ids: Sequence[int], cast: Cast) -> Mapping[int, Mapping[int, list[Asked]]]:
    """Comparison id → rater id → calls."""
    asked: dict[int, dict[int, list[Asked]]] = defaultdict(lambda: defaultdict(list))
    if not cast.judges:
        return asked
    calls = Call.objects.filter(within(ids)).order_by("sample", "pk").values_list(*Asked._fields)
    rater_of = cast.rater_of
    for one in calls:
        if one[1] in rater_of:
            asked[one[0]][rater_of[one[1]]].append(one)
    return asked
