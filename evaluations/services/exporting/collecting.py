"""Comparisons and everything that was said of them, read a chunk at a time with the same few queries."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, QuerySet

from evaluations.domain import Message, RaterKind, ReviewState
from evaluations.formats import exported
from evaluations.models import Call, Comparison, Evaluation, Judge, Rater, Review, RubricAspect, Verdict
from evaluations.services.judging.consolidating import Derivation, derivations

CHUNK = 500


@dataclass(frozen=True)
class Cast:
    """Who may appear in the rows, by id in the order of their names, and the aspects in page order."""

    aspects: Mapping[int, str]
    raters: Mapping[int, Rater]

    def names(self) -> exported.Raters:
        names = {kind: [one.name for one in self.raters.values() if one.kind == kind] for kind in RaterKind}
        return exported.Raters(
            aspects=list(self.aspects.values()),
            people=names[RaterKind.HUMAN],
            judges=names[RaterKind.JUDGE],
            gold=names[RaterKind.GOLD],
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
        """The judges that score single responses."""
        return [self.raters[pk] for pk, judge in self.judges.items() if judge.is_pointwise]

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
    rationale: str


class Asked(NamedTuple):
    """One call to a judge, as it is read."""

    comparison_id: int
    rater_id: int
    shown: str
    state: str
    rationale: str


def cast_of(evaluation: Evaluation) -> Cast:
    """Everyone who gave a verdict or was asked for one. Whoever comes later waits for the next export."""
    said = Verdict.objects.filter(rater=OuterRef("pk"))
    asked = Call.objects.filter(judge=OuterRef("judge"))
    raters = Rater.objects.filter(Exists(said) | Exists(asked), evaluation=evaluation)
    # Sorted here and not by the database, whose order of letters is its own.
    known = sorted(raters.select_related("judge__rubric_version__rubric"), key=lambda rater: (rater.name, rater.pk))
    return Cast(aspects_of(evaluation), {rater.pk: rater for rater in known})


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


def reviews_of(ids: Iterable[int]) -> dict[int, Review]:
    saved = Review.objects.filter(comparison__in=ids, state__in=(ReviewState.FIRST, ReviewState.FINAL))
    return {review.pk: review for review in saved.select_related("rubric_version__rubric")}


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
    return Scoring(derivations(cast.scorers, sides), asked)


def calls_of(ids: Iterable[int]) -> Mapping[int, Mapping[int, list[Asked]]]:
    """Comparison id → rater id → calls."""
    asked: dict[int, dict[int, list[Asked]]] = defaultdict(lambda: defaultdict(list))
    calls = Call.objects.filter(comparison__in=ids).order_by("sample", "pk")
    for one in map(Asked._make, calls.values_list("comparison_id", "judge__raters", "shown", "state", "rationale")):
        asked[one.comparison_id][one.rater_id].append(one)
    return asked
