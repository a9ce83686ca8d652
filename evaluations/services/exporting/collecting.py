"""Comparisons and everything that was said of them, read a chunk at a time with the same few queries."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from django.db.models import Exists, OuterRef, QuerySet

from evaluations.domain import SAVED_REVIEW_STATES, CallState, Message, RaterKind, ReviewState
from evaluations.formats import exported
from evaluations.models import (
    Adjudication,
    Call,
    Comment,
    Comparison,
    Evaluation,
    Judge,
    Rater,
    Review,
    RubricAspect,
    Score,
    Span,
    Verdict,
)
from evaluations.services.importing.preferring import Preference, preferences
from evaluations.services.judging.consolidating import Derivation, derivations
from evaluations.services.labelling import Bench, bench_of

CHUNK = 500


@dataclass(frozen=True)
class Cast:
    """Who may appear in the rows, by id in the order of their names, and the aspects in page order."""

    evaluation: Evaluation
    aspects: Mapping[int, str]
    raters: Mapping[int, Rater]
    bench: Bench
    scored: frozenset[int]
    # By rubric version and aspect: within which two scores of a person make a tie.
    margins: Mapping[tuple[int, int], float]
    # The labels that judges' choices made so far, by these choices.
    patterns: dict[tuple[tuple[int, str], ...], exported.Label | None] = field(default_factory=dict)

    def names(self) -> exported.Raters:
        names = {kind: [one.name for one in self.raters.values() if one.kind == kind] for kind in RaterKind}
        return exported.Raters(
            aspects=list(self.aspects.values()),
            people=names[RaterKind.HUMAN],
            judges=names[RaterKind.JUDGE],
            gold=names[RaterKind.GOLD],
            scored={self.raters[pk].name for pk in self.scored},
        )

    def those(self, kind: RaterKind, said: Mapping[int, list["Said"]]) -> Iterator[tuple[Rater, list["Said"]]]:
        """The raters of one kind who said something, in the order of their names."""
        present = (self.raters[pk] for pk in sorted(said.keys() & self.raters.keys(), key=self.places.__getitem__))
        return ((rater, said[rater.pk]) for rater in present if rater.kind == kind)

    @cached_property
    def judges(self) -> dict[int, Judge]:
        return {pk: rater.judge for pk, rater in self.raters.items() if rater.judge}

    @cached_property
    def scorers(self) -> list[Rater]:
        """The judges that score single responses, or whose scores came in files."""
        return [self.raters[pk] for pk, judge in self.judges.items() if judge.is_pointwise or pk in self.scored]

    @cached_property
    def places(self) -> dict[int, int]:
        return {pk: place for place, pk in enumerate(self.raters)}


class Material(NamedTuple):
    """One comparison as it is read, in the order of MATERIAL_COLUMNS."""

    pk: int
    key: str
    cluster: str
    category: str
    messages: list[Message]
    context: str | None
    reference: str | None
    query_metadata: dict[str, Any]
    metadata: dict[str, Any]
    candidate_a: str
    response_a: list[Message]
    metadata_a: dict[str, Any]
    candidate_b: str
    response_b: list[Message]
    metadata_b: dict[str, Any]
    id_a: int
    id_b: int


MARGIN: Final = ("version_id", "aspect_id", "tie_margin")
MATERIAL_COLUMNS = (
    "pk",
    "query__key",
    "query__cluster",
    "query__category",
    "query__messages",
    "query__context",
    "query__reference",
    "query__metadata",
    "metadata",
    "response_a__candidate__name",
    "response_a__messages",
    "response_a__metadata",
    "response_b__candidate__name",
    "response_b__messages",
    "response_b__metadata",
    "response_a_id",
    "response_b_id",
)


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
    rater_id: int
    shown: str
    state: str
    rationale: str


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


def cast_of(evaluation: Evaluation) -> Cast:
    """Everyone who gave a verdict or was asked for one. Whoever comes later waits for the next export."""
    said = Verdict.objects.filter(rater=OuterRef("pk"))
    asked = Call.objects.filter(judge=OuterRef("judge"))
    scored = Score.objects.filter(rater=OuterRef("pk"), call__isnull=True)  # in reviews, or in files
    known = Rater.objects.filter(evaluation=evaluation).annotate(has_scored=Exists(scored))
    raters = known.filter(Exists(said) | Exists(asked) | Exists(scored)).select_related("judge__rubric_version__rubric")
    # Sorted here and not by the database, whose order of letters is its own.
    those = {rater.pk: rater for rater in sorted(raters, key=lambda rater: (rater.name, rater.pk))}
    return Cast(
        evaluation=evaluation,
        aspects=aspects_of(evaluation),
        raters=those,
        bench=bench_of(evaluation),
        scored=frozenset(pk for pk, rater in those.items() if rater.has_scored),
        margins=margins_of(evaluation),
    )


def margins_of(evaluation: Evaluation) -> dict[tuple[int, int], float]:
    rows = RubricAspect.objects.filter(version__rubric__evaluation=evaluation).order_by()
    return {(version, aspect): margin for version, aspect, margin in rows.values_list(*MARGIN)}


def aspects_of(evaluation: Evaluation) -> dict[int, str]:
    """The aspects of the rubric that people review by, in page order, then the others by key."""
    asked = RubricAspect.objects.filter(version=evaluation.review_rubric_id).order_by("position")
    others = sorted(evaluation.aspects.values_list("key", "pk"))
    return {**dict(asked.values_list("aspect_id", "aspect__key")), **{pk: key for key, pk in others}}


def read_chunk(comparisons: "QuerySet[Comparison]", after: int) -> list[Material]:
    following = comparisons.filter(pk__gt=after).order_by("pk").values_list(*MATERIAL_COLUMNS)
    return [Material._make(row) for row in following[:CHUNK]]


def verdicts_of(ids: Iterable[int], cast: Cast) -> dict[int, dict[int, list[Said]]]:
    """Comparison id → rater id → verdicts of the cast on its aspects."""
    said: dict[int, dict[int, list[Said]]] = defaultdict(lambda: defaultdict(list))
    verdicts = Verdict.objects.filter(comparison__in=ids).order_by("sample", "pk")
    for one in map(Said._make, verdicts.values_list(*Said._fields)):
        if one.rater_id in cast.raters and one.aspect_id in cast.aspects:
            said[one.comparison_id][one.rater_id].append(one)
    return said


def scores_of(ids: Iterable[int], cast: Cast) -> dict[int, dict[int, list[Given]]]:
    """Comparison id → rater id → scores that people gave in reviews. Nothing is read where nobody did."""
    given: dict[int, dict[int, list[Given]]] = defaultdict(lambda: defaultdict(list))
    if not cast.scored:
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

    saved: Mapping[int, Review]
    skipped: Mapping[int, list[Review]]


def reviews_of(ids: Iterable[int]) -> Reviews:
    saved: dict[int, Review] = {}
    skipped: dict[int, list[Review]] = defaultdict(list)
    made = Review.objects.filter(comparison__in=ids, state__in=(*SAVED_REVIEW_STATES, ReviewState.SKIPPED))
    for review in made.select_related("rater", "rubric_version__rubric", "round", "judge").defer("draft"):
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


def discussion_of(ids: Sequence[int]) -> Discussion:
    """Comments that were withdrawn are left out."""
    spans, comments, adjudications = defaultdict(list), defaultdict(list), defaultdict(list)
    for span in Span.objects.filter(review__comparison__in=ids).order_by("pk"):
        spans[span.review_id].append(span)
    standing = Comment.objects.filter(comparison__in=ids, withdrawn_at__isnull=True)
    for comment in standing.select_related("user").order_by("pk"):
        comments[comment.comparison_id].append(comment)
    for settled in Adjudication.objects.filter(comparison__in=ids).select_related("user").order_by("pk"):
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


def calls_of(ids: Iterable[int]) -> Mapping[int, Mapping[int, list[Asked]]]:
    """Comparison id → rater id → calls."""
    asked: dict[int, dict[int, list[Asked]]] = defaultdict(lambda: defaultdict(list))
    calls = Call.objects.filter(comparison__in=ids).order_by("sample", "pk")
    for one in map(Asked._make, calls.values_list("comparison_id", "judge__raters", "shown", "state", "rationale")):
        asked[one.comparison_id][one.rater_id].append(one)
    return asked
