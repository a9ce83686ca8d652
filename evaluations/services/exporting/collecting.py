"""Comparisons and everything that was said of them, read a chunk at a time with the same few queries."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Final, NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast as Cast_

from evaluations.domain import BASELINE_REMARK, SAVED_REVIEW_STATES, CallState, LabelPolicy, RaterKind, ReviewState
from evaluations.formats import exported
from evaluations.models import (
    Adjudication,
    Ballot,
    Call,
    Candidate,
    Comment,
    Comparison,
    Evaluation,
    Judge,
    Rater,
    Review,
    Round,
    RubricAspect,
    RubricVersion,
    Score,
    Span,
    Verdict,
)
from evaluations.services.exporting.aliasing import Aliases
from evaluations.services.exporting.unfolding import Group, Packed, groups_of
from evaluations.services.importing.preferring import Preference, preferences
from evaluations.services.judging.consolidating import Derivation, derivations
from evaluations.services.labelling import Bench, bench_of
from evaluations.services.reviewing.tallying import imports_left_off

CHUNK = 1_000
FIRST_CHUNK: Final = 100  # the first bytes are not to wait for a thousand comparisons
NEWCOMER: Final = "reviewer"  # who joined while a file without names was written
CHUNK_CHARACTERS: Final = 16_000_000  # where texts are long a chunk has fewer of them


@dataclass(frozen=True)
class Present:
    """What there is to be read at all: a question that nobody answered is not asked for every chunk again."""

    reviews: bool
    spans: bool
    comments: bool
    adjudications: bool
    words_in_files: bool  # verdicts of imports, which may have a rationale or a note
    untallied: bool  # imports whose votes are not all counted yet


@dataclass(frozen=True)
class Cast:
    """Who may appear in the rows, by id in the order of their names, and the aspects in page order.

    ``raters`` bear the names that the file has: those of people may be others than their own, and ``aliases``
    says so of whoever commented or settled something.
    """

    evaluation: Evaluation
    aspects: Mapping[int, str]
    places: Mapping[int, str]
    raters: Mapping[int, Rater]
    candidates: Mapping[int, str]
    bench: Bench
    scored: frozenset[int]
    # By rubric version and aspect: within which two scores of a person make a tie.
    margins: Mapping[tuple[int, int], float]
    present: Present
    aliases: Aliases | None = None
    # The labels that judges' answers make, by the answers met so far.
    patterns: dict[object, dict[str, exported.Label]] = field(default_factory=dict)

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
        present = (self.raters[pk] for pk in sorted(said.keys() & self.raters.keys(), key=self.order.__getitem__))
        return ((rater, said[rater.pk]) for rater in present if rater.kind == kind)

    def username(self, name: str) -> str:
        """What whoever has this account is called in the file."""
        return self.aliases.by_username.get(name, NEWCOMER) if self.aliases else name

    def words(self, text: str) -> str:
        """A comment, with those it calls by the names that they have in the file."""
        return self.aliases.in_text(text) if self.aliases else text

    @cached_property
    def judges(self) -> dict[int, Judge]:
        return {pk: rater.judge for pk, rater in self.raters.items() if rater.judge}

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        return groups_of(self.places)

    @cached_property
    def rater_of(self) -> dict[int, int]:
        """Judge id → rater id."""
        return {judge.pk: pk for pk, judge in self.judges.items()}

    @cached_property
    def introduced(self) -> dict[int, exported.JudgesName]:
        return {pk: introduced(judge) for pk, judge in self.judges.items()}

    @cached_property
    def others(self) -> list[int]:
        """The raters who are no judges."""
        return [pk for pk, rater in self.raters.items() if rater.kind != RaterKind.JUDGE]

    @cached_property
    def scorers(self) -> list[Rater]:
        """The judges that score single responses, or whose scores came in files."""
        return [self.raters[pk] for pk, judge in self.judges.items() if judge.is_pointwise or pk in self.scored]

    @cached_property
    def order(self) -> dict[int, int]:
        return {pk: place for place, pk in enumerate(self.raters)}

    @cached_property
    def rubrics(self) -> Mapping[int, str]:
        versions = RubricVersion.objects.filter(rubric__evaluation=self.evaluation).select_related("rubric")
        return Named(lambda: ((one.pk, rubric_name(one)) for one in versions.all()))

    @cached_property
    def people(self) -> Mapping[int, str]:
        """Of everyone, also of those who only ever skipped."""
        known = Rater.objects.filter(evaluation=self.evaluation, kind=RaterKind.HUMAN)
        return Named(lambda: ((one.pk, self.called(one)) for one in known.all()))

    def called(self, rater: Rater) -> str:
        return self.aliases.by_rater.get(rater.pk, NEWCOMER) if self.aliases else rater.name

    @cached_property
    def judge_names(self) -> Mapping[int, str]:
        """Of every judge, asked or not: one that is to be shown may have said nothing yet."""
        known = Judge.objects.filter(evaluation=self.evaluation).values_list("pk", "name")
        return Named(lambda: known.all())

    @cached_property
    def rounds(self) -> Mapping[int, str]:
        known = Round.objects.filter(evaluation=self.evaluation).values_list("pk", "name")
        return Named(lambda: known.all())


class Named(dict[int, str]):
    """Names by id, read when one is first asked for, and again for one that came while the file is written."""

    def __init__(self, read: Callable[[], Iterable[tuple[int, str]]]) -> None:
        super().__init__()
        self.read = read

    def __missing__(self, pk: int) -> str:
        self.update(self.read())
        return self.setdefault(pk, "")


def rubric_name(version: RubricVersion) -> str:
    return f"{version.rubric.name} {version.number}"


def introduced(judge: Judge) -> exported.JudgesName:
    name: exported.JudgesName = {
        "judge": judge.name,
        "kind": judge.kind,
        "model": judge.model,
        "rubric": rubric_name(judge.rubric_version) if judge.rubric_version else None,
    }
    if judge.is_baseline:
        name["remark"] = BASELINE_REMARK
    return name


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


MARGIN: Final = ("version_id", "aspect_id", "tie_margin")
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


def cast_of(evaluation: Evaluation, policy: LabelPolicy | None = None, aliases: Aliases | None = None) -> Cast:
    """Everyone who gave a verdict or was asked for one. Whoever comes later waits for the next export."""
    said = Verdict.objects.filter(rater=OuterRef("pk"))
    asked = Call.objects.filter(judge=OuterRef("judge"))
    scored = Score.objects.filter(rater=OuterRef("pk"), call__isnull=True)  # in reviews, or in files
    known = Rater.objects.filter(evaluation=evaluation).annotate(has_scored=Exists(scored))
    raters = list(
        known.filter(Exists(said) | Exists(asked) | Exists(scored)).select_related("judge__rubric_version__rubric")
    )
    for rater in raters:
        if aliases and rater.kind == RaterKind.HUMAN:
            rater.name = aliases.by_rater.get(rater.pk, NEWCOMER)
    # Sorted here and not by the database, whose order of letters is its own.
    those = {rater.pk: rater for rater in sorted(raters, key=lambda rater: (rater.name, rater.pk))}
    aspects = aspects_of(evaluation)
    return Cast(
        evaluation=evaluation,
        aspects=aspects,
        places={place: aspects[pk] for place, pk in evaluation.aspects.values_list("place", "pk") if pk in aspects},
        raters=those,
        candidates=Named(lambda: Candidate.objects.filter(evaluation=evaluation).values_list("pk", "name")),
        bench=bench_of(evaluation, policy),
        scored=frozenset(pk for pk, rater in those.items() if rater.has_scored),
        margins=margins_of(evaluation),
        present=what_is_there(evaluation),
        aliases=aliases,
    )


def what_is_there(evaluation: Evaluation) -> Present:
    """One question each, answered by the first row that is found.

    What was said is looked through, not the comparisons: joined, SQLite read all of these where nothing was said.
    """
    of_here = Exists(Comparison.all_rows.filter(pk=OuterRef("comparison"), evaluation=evaluation))
    return Present(
        reviews=Review.objects.filter(rater__evaluation=evaluation).exists(),
        spans=Span.objects.filter(review__rater__evaluation=evaluation).exists(),
        comments=Comment.objects.filter(of_here).exists(),
        adjudications=Adjudication.objects.filter(of_here).exists(),
        words_in_files=Verdict.objects.filter(source_import__evaluation=evaluation).exists(),
        untallied=bool(imports_left_off(evaluation)),
    )


def margins_of(evaluation: Evaluation) -> dict[tuple[int, int], float]:
    rows = RubricAspect.objects.filter(version__rubric__evaluation=evaluation).order_by()
    return {(version, aspect): margin for version, aspect, margin in rows.values_list(*MARGIN)}


def aspects_of(evaluation: Evaluation) -> dict[int, str]:
    """The aspects of the rubric that people review by, in page order, then the others by key."""
    asked = RubricAspect.objects.filter(version=evaluation.review_rubric_id).order_by("position")
    others = sorted(evaluation.aspects.values_list("key", "pk"))
    return {**dict(asked.values_list("aspect_id", "aspect__key")), **{pk: key for key, pk in others}}


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


def words_of_judges(ids: Sequence[int], cast: Cast) -> Mapping[tuple[int, int, str], list[tuple[str, str]]]:
    """Comparison, rater and aspect key → the orders and rationales of verdicts that came in files."""
    said: dict[tuple[int, int, str], list[tuple[str, str]]] = defaultdict(list)
    if not cast.present.words_in_files or not cast.judges:
        return said
    brought = Verdict.objects.filter(within(ids), rater__in=list(cast.judges), source_import__isnull=False)
    rows = brought.exclude(rationale="").order_by("sample", "pk")
    for pk, rater, aspect, shown, rationale in rows.values_list(
        "comparison_id", "rater_id", "aspect_id", "shown", "rationale"
    ):
        if aspect in cast.aspects:
            said[pk, rater, cast.aspects[aspect]].append((shown, rationale))
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
