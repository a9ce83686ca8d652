"""Scores in long form: one row for each score that a rater gave a response."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet

from evaluations.domain.choices import ScoreRule, Stage
from evaluations.domain.judges import FAILURE_STATES
from evaluations.domain.reviews import SelectionMethod
from evaluations.exports.chunk_reader import CHUNK_ROWS
from evaluations.exports.participants import Participants
from evaluations.exports.verdict_rows import NO_ASPECT, describe_rater, format_timestamp
from evaluations.formats.preferences import ExportCounts
from evaluations.formats.verdicts_export import ExportedScore
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.runs import Call
from evaluations.models.verdicts import Score
from evaluations.verdicts.score_choices import score_rules_by_version
from evaluations.verdicts.votes import CountedReviews, find_counted_choices


class ListedResponse(NamedTuple):
    """A response by what its scores call it."""

    pk: int
    query_id: str
    cluster: str
    candidate: str


class ListedScore(NamedTuple):
    """One score as read from the database."""

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
    selection_method: str | None
    version: int | None
    rubric: str | None
    number: int | None


class FailedScoreCall(NamedTuple):
    """A judge's call about a response that ended without a score."""

    response_id: int
    rater_id: int
    sample: int
    state: str
    rationale: str
    created_at: datetime


FAILED_SCORE_COLUMNS: Final = ("response_id", "judge__raters", "sample", "state", "rationale", "created_at")
RESPONSE_NAME_COLUMNS: Final = ("pk", "query__key", "query__cluster", "candidate__name")
LISTED_SCORE_COLUMNS: Final = (
    *("response_id", "rater_id", "aspect_id", "stage", "value", "sample", "review_id", "call_id"),
    *("rationale", "note", "created_at", "review__comparison_id"),
    *("review__selection_method", "review__rubric_version_id"),
    *("review__rubric_version__rubric__name", "review__rubric_version__number"),
)
RulesByVersion = Mapping[tuple[int | None, int], ScoreRule]


def iterate_score_rows(
    comparisons: "QuerySet[Comparison]", cast: Participants, account: ExportCounts
) -> Iterator[tuple[str, ExportedScore]]:
    """The cluster of each row and the row, for each distinct response of the comparisons.

    A person who scored a response in several comparisons gave it several scores: they are its samples here.
    """
    rules, aspects = score_rules_by_version(cast.evaluation, list(cast.aspects)), find_scored_aspects(cast)
    for chunk in iterate_response_chunks(comparisons):
        ids = [one.pk for one in chunk]
        scores, failures = read_listed_scores(ids, cast), read_failed_score_calls(ids, cast)
        reviewed = {said.comparison_id for given in scores.values() for said in given if said.comparison_id}
        counted = find_counted_choices(reviewed)
        if cast.archived and (left := count_archived_scores(ids, cast)):
            account.excluded["judge_archived"] += left
        for one in chunk:
            for row in build_response_rows(one, scores.get(one.pk, ()), counted, rules, cast, account):
                yield one.cluster, row
            for call in sorted(failures.get(one.pk, ()), key=lambda call: cast.order[call.rater_id]):
                yield one.cluster, build_score_failure_row(one, call, aspects[call.rater_id], rules, cast)


def iterate_response_chunks(comparisons: "QuerySet[Comparison]") -> Iterator[list[ListedResponse]]:
    first = comparisons.order_by().filter(response_a=OuterRef("pk"))
    second = comparisons.order_by().filter(response_b=OuterRef("pk"))
    responses = Response.objects.filter(Q(Exists(first)) | Q(Exists(second))).order_by("pk")
    after = 0
    while chunk := list(responses.filter(pk__gt=after).values_list(*RESPONSE_NAME_COLUMNS)[:CHUNK_ROWS]):
        yield [ListedResponse._make(row) for row in chunk]
        after = chunk[-1][0]


def read_listed_scores(ids: Sequence[int], cast: Participants) -> Mapping[int, list[ListedScore]]:
    given: dict[int, list[ListedScore]] = defaultdict(list)
    for row in Score.objects.filter(response__in=ids).order_by("sample", "pk").values_list(*LISTED_SCORE_COLUMNS):
        one = ListedScore._make(row)
        if one.rater_id in cast.raters and one.aspect_id in cast.aspects:
            given[one.response_id].append(one)
    return given


def read_failed_score_calls(ids: Sequence[int], cast: Participants) -> Mapping[int, list[FailedScoreCall]]:
    """Failed calls of judges about these responses."""
    failures: dict[int, list[FailedScoreCall]] = defaultdict(list)
    if not cast.scorers:
        return failures
    judges = [rater.judge_id for rater in cast.scorers]
    calls = Call.objects.filter(response__in=ids, judge__in=judges, state__in=FAILURE_STATES)
    for row in calls.order_by("sample", "pk").values_list(*FAILED_SCORE_COLUMNS):
        one = FailedScoreCall._make(row)
        if one.rater_id in cast.raters:
            failures[one.response_id].append(one)
    return failures


def count_archived_scores(ids: Sequence[int], cast: Participants) -> int:
    """How many rows the scores and failures of archived judges would be."""
    given = Score.objects.filter(response__in=ids, rater__in=cast.archived).count()
    failures = Call.objects.filter(response__in=ids, judge__raters__in=cast.archived, state__in=FAILURE_STATES)
    return given + failures.count()


def find_scored_aspects(cast: Participants) -> Mapping[int, int]:
    """By rater id one aspect that the judge scored, under which its failures are listed."""
    some = next(iter(cast.aspects), 0)
    told = {}
    for rater in cast.scorers:
        first = Score.objects.filter(rater=rater, aspect__in=list(cast.aspects)).order_by("response", "aspect").first()
        told[rater.pk] = first.aspect_id if first else some
    return told


def build_score_failure_row(
    one: ListedResponse, call: FailedScoreCall, aspect: int, rules: RulesByVersion, cast: Participants
) -> ExportedScore:
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
        "created_at": format_timestamp(call.created_at),
        **describe_rater(call.rater_id, None, cast),
    }


def build_response_rows(
    one: ListedResponse,
    given: Sequence[ListedScore],
    counted: CountedReviews,
    rules: RulesByVersion,
    cast: Participants,
    account: ExportCounts,
) -> Iterator[ExportedScore]:
    places = {pk: place for place, pk in enumerate(cast.aspects)}
    finals: dict[tuple[int | None, int], ListedScore] = {
        (said.review_id, said.aspect_id): said for said in given if said.review_id and said.stage == Stage.FINAL
    }
    seen: Counter[tuple[int, int]] = Counter()
    for said in sorted(given, key=lambda said: (cast.order[said.rater_id], places[said.aspect_id])):
        if said.review_id and said.stage == Stage.FINAL:
            continue  # is in the row of the first one
        if said.selection_method == SelectionMethod.CALIBRATION:
            account.excluded["calibration"] += 1
            continue
        if said.review_id and counted.get_place(said.review_id, said.aspect_id) is None:
            account.excluded["replaced_by_newer_review"] += 1
            continue
        sample = seen[said.rater_id, said.aspect_id] if said.review_id else said.sample
        seen[said.rater_id, said.aspect_id] += 1
        yield build_score_row(one, said, finals.get((said.review_id, said.aspect_id)), sample, rules, cast)


def build_score_row(
    one: ListedResponse,
    said: ListedScore,
    final: ListedScore | None,
    sample: int,
    rules: RulesByVersion,
    cast: Participants,
) -> ExportedScore:
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
        "created_at": format_timestamp(said.created_at),
        **describe_rater(said.rater_id, f"{said.rubric} {said.number}" if said.rubric else None, cast),
    }
