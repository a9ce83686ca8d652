"""Verdicts in long form: a row for each choice that a rater made, and for each call in which a judge failed."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from django.db.models import QuerySet

from evaluations.domain import FAILURE_STATES, INCONSISTENT, SAVED_REVIEW_STATES, PickedBy, Shown, Stage
from evaluations.formats.leaving import Tally
from evaluations.formats.preferred import Account
from evaluations.formats.verdicts_out import FromWhom, VerdictOut
from evaluations.models import Call, Comparison, Review, RubricAspect, Verdict
from evaluations.services.exporting.casting import Cast, rubric_name
from evaluations.services.exporting.collecting import CHUNK
from evaluations.services.judging.consolidating import derivations
from evaluations.services.reviewing.replaced_reviews import replaced_reviews
from evaluations.services.reviewing.tallying import choices_derived, choices_imported

SHOWN_SWAPPED: Final[Mapping[str, bool | str | None]] = {
    Shown.AS_STORED: False,
    Shown.SWAPPED: True,
    Shown.FOLDED: "folded",
    Shown.UNKNOWN: None,
}
ORDERS: Final = {str(order): place for place, order in enumerate(Shown)}
NO_ASPECT: Final = "overall"  # as a file is read that names none


class Named(NamedTuple):
    """A comparison by what its verdicts call it."""

    pk: int
    query_id: str
    cluster: str
    candidate_a: str
    candidate_b: str
    id_a: int
    id_b: int


class Choice(NamedTuple):
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
    rationale: str
    note: str
    created_at: datetime


class Failure(NamedTuple):
    """One call that a judge did not answer as it was to."""

    comparison_id: int
    rater_id: int
    shown: str
    sample: int
    state: str
    rationale: str
    created_at: datetime


class Pass(NamedTuple):
    """A review, as far as its verdicts need it."""

    pk: int
    comparison_id: int
    rater_id: int
    picked_by: str
    blind: bool
    rubric: str


NAMED: Final = (
    *("pk", "query__key", "query__cluster", "response_a__candidate__name", "response_b__candidate__name"),
    *("response_a_id", "response_b_id"),
)
FAILURE: Final = ("comparison_id", "judge__raters", "shown", "sample", "state", "rationale", "created_at")
PASS: Final = (
    *("pk", "comparison_id", "rater_id", "picked_by", "blind"),
    *("rubric_version__rubric__name", "rubric_version__number"),
)


@dataclass(frozen=True)
class Listed:
    """What was read of a chunk of comparisons, by comparison id; reviews by their own.

    ``replaced``: the (review id, aspect id) pairs whose vote a later review of the same person holds.
    """

    choices: Mapping[int, list[Choice]]
    failures: Mapping[int, list[Failure]]
    passes: Mapping[int, Pass]
    replaced: frozenset[tuple[int, int]]


def verdict_rows(comparisons: "QuerySet[Comparison]", cast: Cast, tally: Tally) -> Iterator[tuple[str, VerdictOut]]:
    """The cluster of each row and the row: comparison by comparison, raters by name, then sample, order and aspect.

    What counts nowhere is left out: passes of calibration, and choices that a later review of the same person replaced.
    Choices that are derived from scores are counted: the scores are in an export of their own.
    """
    first_asked = aspects_asked_first(cast)
    for chunk in in_chunks(comparisons):
        listed = read([one.pk for one in chunk], cast)
        if cast.archived and (left := of_archived([one.pk for one in chunk], cast)):
            tally.excluded["judge_archived"] += left
        if derived := made_by_scores(chunk, listed, cast):
            tally.excluded["given_as_scores"] += derived
        for one in chunk:
            tally.comparisons += 1
            told = [*chosen(one, listed, cast, tally), *failed(one, listed, cast, first_asked)]
            for _, row in sorted(told, key=lambda pair: pair[0]):
                yield one.cluster, row


def in_chunks(comparisons: "QuerySet[Comparison]") -> Iterator[list[Named]]:
    after = 0
    while chunk := list(comparisons.filter(pk__gt=after).order_by("pk").values_list(*NAMED)[:CHUNK]):
        yield [Named._make(row) for row in chunk]
        after = chunk[-1][0]


def read(ids: Sequence[int], cast: Cast) -> Listed:
    """Verdicts are read before their reviews: none is met without its own."""
    choices: dict[int, list[Choice]] = defaultdict(list)
    for row in Verdict.objects.filter(comparison__in=ids).order_by("pk").values_list(*Choice._fields):
        one = Choice._make(row)
        if one.rater_id in cast.raters and one.aspect_id in cast.aspects:
            choices[one.comparison_id].append(one)
    failures: dict[int, list[Failure]] = defaultdict(list)
    calls = Call.objects.filter(comparison__in=ids, state__in=FAILURE_STATES).order_by("pk")
    for row in calls.values_list(*FAILURE):
        call = Failure._make(row)
        if call.rater_id in cast.raters:
            failures[call.comparison_id].append(call)
    reviews = Review.objects.filter(comparison__in=ids, state__in=SAVED_REVIEW_STATES).order_by("pk")
    passes = {row[0]: Pass._make((*row[:5], f"{row[5]} {row[6]}")) for row in reviews.values_list(*PASS)}
    return Listed(choices, failures, passes, replaced_reviews(ids))


def of_archived(ids: Sequence[int], cast: Cast) -> int:
    """How many rows the verdicts and failures of archived judges would be."""
    given = Verdict.objects.filter(comparison__in=ids, rater__in=cast.archived).count()
    failures = Call.objects.filter(comparison__in=ids, judge__raters__in=cast.archived, state__in=FAILURE_STATES)
    return given + failures.count()


def made_by_scores(chunk: Sequence[Named], listed: Listed, cast: Cast) -> int:
    """How many choices on these comparisons people and judges made by scoring both responses."""
    ids, count = [one.pk for one in chunk], 0
    if cast.scored:
        votes = [*choices_derived(ids), *choices_imported(ids)]
        count += sum(vote.rater in cast.raters and (vote.review, vote.aspect) not in listed.replaced for vote in votes)
    if cast.scorers:
        told = derivations(cast.scorers, {one.pk: (one.id_a, one.id_b) for one in chunk})
        count += sum(len(choices) for of_rater in told.values() for choices in of_rater.values())
    return count


def chosen(
    one: Named, listed: Listed, cast: Cast, account: Account
) -> Iterator[tuple[tuple[int, int, int, int], VerdictOut]]:
    """A row for each choice, with where it stands among those of its comparison."""
    places = {pk: place for place, pk in enumerate(cast.aspects)}
    given = listed.choices.get(one.pk, ())
    finals: dict[tuple[int | None, int], Choice] = {
        (said.review_id, said.aspect_id): said for said in given if said.stage == Stage.FINAL and said.review_id
    }
    for said in given:
        if said.stage == Stage.FINAL and said.review_id:
            continue  # stands beside the first one
        made = listed.passes.get(said.review_id or 0)
        if said.review_id and (reason := left_out(said, made, listed)):
            account.excluded[reason] += 1
            continue
        place = cast.order[said.rater_id], said.sample, ORDERS[said.shown], places[said.aspect_id]
        yield place, verdict(one, said, finals.get((said.review_id, said.aspect_id)), made, cast)


def left_out(said: Choice, made: Pass | None, listed: Listed) -> str:
    """Why a choice of a review counts nowhere; empty where it counts."""
    if made is None:
        return "undone_meanwhile"
    if made.picked_by == PickedBy.CALIBRATION:
        return "calibration"
    return "replaced_by_newer_review" if (made.pk, said.aspect_id) in listed.replaced else ""


def verdict(one: Named, said: Choice, final: Choice | None, made: Pass | None, cast: Cast) -> VerdictOut:
    """The first choice, which statistics are about, with the final one beside it. What was imported is both at once."""
    choice = INCONSISTENT if said.inconsistent else said.choice
    return {
        "query_id": one.query_id,
        "candidate_a": one.candidate_a,
        "candidate_b": one.candidate_b,
        "aspect": cast.aspects[said.aspect_id],
        "choice": choice,
        "shown_swapped": SHOWN_SWAPPED[said.shown],
        "sample": said.sample,
        "stage": str(Stage.FIRST if made else Stage.FINAL),
        "final_choice": (final.choice if final else None) if made else choice,
        "rationale": said.rationale,
        "note": (final.note if final else "") or said.note,
        "created_at": moment(said.created_at),
        "blind": made.blind if made else None,
        **from_whom(said.rater_id, made.rubric if made else None, cast),
    }


def failed(
    one: Named, listed: Listed, cast: Cast, first_asked: Mapping[int, str]
) -> Iterator[tuple[tuple[int, int, int, int], VerdictOut]]:
    """A failure is of all aspects of its call: one row says so, under the first that the judge was asked about."""
    some = next(iter(cast.aspects.values()), NO_ASPECT)
    for call in listed.failures.get(one.pk, ()):
        yield (
            (cast.order[call.rater_id], call.sample, ORDERS[call.shown], -1),
            {
                "query_id": one.query_id,
                "candidate_a": one.candidate_a,
                "candidate_b": one.candidate_b,
                "aspect": first_asked.get(call.rater_id, some),
                "choice": call.state,
                "shown_swapped": SHOWN_SWAPPED[call.shown],
                "sample": call.sample,
                "stage": str(Stage.FINAL),
                "final_choice": None,
                "rationale": call.rationale,
                "note": "",
                "created_at": moment(call.created_at),
                "blind": None,
                **from_whom(call.rater_id, None, cast),
            },
        )


def aspects_asked_first(cast: Cast) -> dict[int, str]:
    """Rater id → the first aspect that its judge's rubric asks about; of an imported judge one that it spoke of."""
    versions = {pk: judge.rubric_version_id for pk, judge in cast.judges.items() if judge.rubric_version_id}
    asked = RubricAspect.objects.filter(version__in=set(versions.values())).order_by("-position")
    first = dict(asked.values_list("version", "aspect"))
    told = {pk: cast.aspects[first[version]] for pk, version in versions.items() if first.get(version) in cast.aspects}
    for pk in cast.judges.keys() - told.keys():
        said = Verdict.objects.filter(rater=pk).order_by("comparison", "aspect").first()
        if said and said.aspect_id in cast.aspects:
            told[pk] = cast.aspects[said.aspect_id]
    return told


def from_whom(rater_id: int, rubric: str | None, cast: Cast) -> FromWhom:
    rater, judge = cast.raters[rater_id], cast.judges.get(rater_id)
    return {
        "rater": rater.name,
        "rater_kind": rater.kind,
        "rubric": rubric or (rubric_name(judge.rubric_version) if judge and judge.rubric_version else None),
        "judge_kind": judge.kind if judge else None,
        "model": judge.model if judge else None,
    }


def moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()
