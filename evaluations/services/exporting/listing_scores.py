"""Scores in long form: a row for each number that a rater gave a response."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet

from evaluations.domain import FAILURE_STATES, PickedBy, ScoreRule, Stage
from evaluations.formats.preferred import Account
from evaluations.formats.verdicts_out import ScoreOut
from evaluations.models import Call, Comparison, Response, RubricAspect, Score
from evaluations.services.exporting.casting import Cast
from evaluations.services.exporting.collecting import CHUNK
from evaluations.services.exporting.listing import NO_ASPECT, from_whom, moment
from evaluations.services.importing.scaling import score_rules
from evaluations.services.reviewing.replaced_reviews import replaced_reviews


class Answer(NamedTuple):
    """A response by what its scores call it."""

    pk: int
    query_id: str
    cluster: str
    candidate: str


class Given(NamedTuple):
    """One score, as it is read."""

    response_id: int
    rater_id: int
    aspect_id: int
    stage: str
    value: float
    sample: int
    review_id: int | None
    call_id: int | None
    rationale: str
    note: str
    created_at: datetime
    comparison_id: int | None
    picked_by: str | None
    version: int | None
    rubric: str | None
    number: int | None


class Failure(NamedTuple):
    """A judge's call about a response that ended without a score."""

    response_id: int
    rater_id: int
    sample: int
    state: str
    rationale: str
    created_at: datetime


FAILED: Final = ("response_id", "judge__raters", "sample", "state", "rationale", "created_at")
ANSWER: Final = ("pk", "query__key", "query__cluster", "candidate__name")
GIVEN: Final = (
    *("response_id", "rater_id", "aspect_id", "stage", "value", "sample", "review_id", "call_id"),
    *("rationale", "note", "created_at", "review__comparison_id"),
    *("review__picked_by", "review__rubric_version_id"),
    *("review__rubric_version__rubric__name", "review__rubric_version__number"),
)
Rules = Mapping[tuple[int | None, int], ScoreRule]


def score_rows(comparisons: "QuerySet[Comparison]", cast: Cast, account: Account) -> Iterator[tuple[str, ScoreOut]]:
    """The cluster of each row and the row, for every response that stands in one of the comparisons, once.

    A person who scored a response in several comparisons gave it several scores: they are its samples here.
    """
    rules, aspects = rules_of(cast), spoken_of(cast)
    for chunk in in_chunks(comparisons):
        ids = [one.pk for one in chunk]
        scores, failures = read(ids, cast), read_failed(ids, cast)
        reviewed = {said.comparison_id for given in scores.values() for said in given if said.comparison_id}
        replaced = replaced_reviews(reviewed)
        if cast.archived and (left := of_archived(ids, cast)):
            account.excluded["judge_archived"] += left
        for one in chunk:
            for row in of_response(one, scores.get(one.pk, ()), replaced, rules, cast, account):
                yield one.cluster, row
            for call in sorted(failures.get(one.pk, ()), key=lambda call: cast.order[call.rater_id]):
                yield one.cluster, failure(one, call, aspects[call.rater_id], rules, cast)


def in_chunks(comparisons: "QuerySet[Comparison]") -> Iterator[list[Answer]]:
    first = comparisons.order_by().filter(response_a=OuterRef("pk"))
    second = comparisons.order_by().filter(response_b=OuterRef("pk"))
    responses = Response.objects.filter(Q(Exists(first)) | Q(Exists(second))).order_by("pk")
    after = 0
    while chunk := list(responses.filter(pk__gt=after).values_list(*ANSWER)[:CHUNK]):
        yield [Answer._make(row) for row in chunk]
        after = chunk[-1][0]


def read(ids: Sequence[int], cast: Cast) -> Mapping[int, list[Given]]:
    given: dict[int, list[Given]] = defaultdict(list)
    for row in Score.objects.filter(response__in=ids).order_by("sample", "pk").values_list(*GIVEN):
        one = Given._make(row)
        if one.rater_id in cast.raters and one.aspect_id in cast.aspects:
            given[one.response_id].append(one)
    return given


def read_failed(ids: Sequence[int], cast: Cast) -> Mapping[int, list[Failure]]:
    """The calls of judges that were to score these responses and have failed."""
    failures: dict[int, list[Failure]] = defaultdict(list)
    if not cast.scorers:
        return failures
    judges = [rater.judge_id for rater in cast.scorers]
    calls = Call.objects.filter(response__in=ids, judge__in=judges, state__in=FAILURE_STATES)
    for row in calls.order_by("sample", "pk").values_list(*FAILED):
        one = Failure._make(row)
        if one.rater_id in cast.raters:
            failures[one.response_id].append(one)
    return failures


def of_archived(ids: Sequence[int], cast: Cast) -> int:
    """How many rows the scores and failures of archived judges would be."""
    given = Score.objects.filter(response__in=ids, rater__in=cast.archived).count()
    failures = Call.objects.filter(response__in=ids, judge__raters__in=cast.archived, state__in=FAILURE_STATES)
    return given + failures.count()


def spoken_of(cast: Cast) -> Mapping[int, int]:
    """By rater id an aspect that a judge scored: a failure is of all, and stands under one."""
    some = next(iter(cast.aspects), 0)
    told = {}
    for rater in cast.scorers:
        first = Score.objects.filter(rater=rater, aspect__in=list(cast.aspects)).order_by("response", "aspect").first()
        told[rater.pk] = first.aspect_id if first else some
    return told


def failure(one: Answer, call: Failure, aspect: int, rules: Rules, cast: Cast) -> ScoreOut:
    version = cast.judges[call.rater_id].rubric_version_id
    rule = rules.get((version, aspect), ScoreRule())
    return {
        "query_id": one.query_id,
        "candidate": one.candidate,
        "aspect": cast.aspects.get(aspect, NO_ASPECT),
        "value": None,
        "failure": call.state,
        "sample": call.sample,
        "stage": str(Stage.FINAL),
        "final_value": None,
        "lower_is_better": rule.lower_is_better,
        "margin": rule.margin,
        "rationale": call.rationale,
        "note": "",
        "created_at": moment(call.created_at),
        **from_whom(call.rater_id, None, cast),
    }


def of_response(
    one: Answer,
    given: Sequence[Given],
    replaced: AbstractSet[tuple[int, int]],
    rules: Rules,
    cast: Cast,
    account: Account,
) -> Iterator[ScoreOut]:
    places = {pk: place for place, pk in enumerate(cast.aspects)}
    finals: dict[tuple[int | None, int], Given] = {
        (said.review_id, said.aspect_id): said for said in given if said.review_id and said.stage == Stage.FINAL
    }
    seen: Counter[tuple[int, int]] = Counter()
    for said in sorted(given, key=lambda said: (cast.order[said.rater_id], places[said.aspect_id])):
        if said.review_id and said.stage == Stage.FINAL:
            continue  # stands beside the first one
        if said.picked_by == PickedBy.CALIBRATION:
            account.excluded["calibration"] += 1
            continue
        if (said.review_id, said.aspect_id) in replaced:
            account.excluded["replaced_by_newer_review"] += 1
            continue
        sample = seen[said.rater_id, said.aspect_id] if said.review_id else said.sample
        seen[said.rater_id, said.aspect_id] += 1
        yield score(one, said, finals.get((said.review_id, said.aspect_id)), sample, rules, cast)


def score(one: Answer, said: Given, final: Given | None, sample: int, rules: Rules, cast: Cast) -> ScoreOut:
    judge = cast.judges.get(said.rater_id)
    version = said.version or (judge.rubric_version_id if judge and said.call_id else None)
    rule = rules.get((version, said.aspect_id), ScoreRule())
    return {
        "query_id": one.query_id,
        "candidate": one.candidate,
        "aspect": cast.aspects[said.aspect_id],
        "value": said.value,
        "failure": None,
        "sample": sample,
        "stage": str(Stage.FIRST if said.review_id else Stage.FINAL),
        "final_value": (final.value if final else None) if said.review_id else said.value,
        "lower_is_better": rule.lower_is_better,
        "margin": rule.margin,
        "rationale": said.rationale,
        "note": (final.note if final else "") or said.note,
        "created_at": moment(said.created_at),
        **from_whom(said.rater_id, f"{said.rubric} {said.number}" if said.rubric else None, cast),
    }


def rules_of(cast: Cast) -> Rules:
    """By rubric version and aspect how two scores are held against each other; under None for those of files."""
    rows = RubricAspect.objects.filter(version__rubric__evaluation=cast.evaluation).order_by()
    columns = rows.values_list("version_id", "aspect_id", "tie_margin", "lower_is_better")
    own: dict[tuple[int | None, int], ScoreRule] = {
        (version, aspect): ScoreRule(margin, lower) for version, aspect, margin, lower in columns
    }
    imported = score_rules(Q(aspect__in=list(cast.aspects)))
    return {**own, **{(None, aspect): rule for aspect, rule in imported.items()}}
