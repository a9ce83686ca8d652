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
    pk: int
    query_id: str
    cluster: str
    candidate: str


class ListedScore(NamedTuple):
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
    comparisons: "QuerySet[Comparison]", alone: "QuerySet[Response]", participants: Participants, counts: ExportCounts
) -> Iterator[tuple[str, ExportedScore]]:
    """The cluster of each row and the row, for each distinct response of the comparisons, and each of ``alone``.

    A person who scored a response in several comparisons gave it several scores: they are its samples here.
    """
    rules = score_rules_by_version(participants.evaluation, list(participants.aspects))
    aspects = find_scored_aspects(participants)
    for chunk in iterate_response_chunks(comparisons, alone):
        ids = [response.pk for response in chunk]
        scores, failures = read_listed_scores(ids, participants), read_failed_score_calls(ids, participants)
        reviewed = {
            score.comparison_id for of_response in scores.values() for score in of_response if score.comparison_id
        }
        counted = find_counted_choices(reviewed)
        if participants.archived and (left := count_archived_scores(ids, participants)):
            counts.excluded["judge_archived"] += left
        for response in chunk:
            for row in build_response_rows(response, scores.get(response.pk, ()), counted, rules, participants, counts):
                yield response.cluster, row
            for call in sorted(failures.get(response.pk, ()), key=lambda call: participants.order[call.rater_id]):
                yield (
                    response.cluster,
                    build_score_failure_row(response, call, aspects[call.rater_id], rules, participants),
                )


def iterate_response_chunks(
    comparisons: "QuerySet[Comparison]", alone: "QuerySet[Response]"
) -> Iterator[list[ListedResponse]]:
    first = comparisons.order_by().filter(response_a=OuterRef("pk"))
    second = comparisons.order_by().filter(response_b=OuterRef("pk"))
    chosen = Q(Exists(first)) | Q(Exists(second)) | Q(pk__in=alone.order_by().values("pk"))
    responses = Response.objects.filter(chosen).order_by("pk")
    after = 0
    while chunk := list(responses.filter(pk__gt=after).values_list(*RESPONSE_NAME_COLUMNS)[:CHUNK_ROWS]):
        yield [ListedResponse._make(row) for row in chunk]
        after = chunk[-1][0]


def read_listed_scores(ids: Sequence[int], participants: Participants) -> Mapping[int, list[ListedScore]]:
    by_response: dict[int, list[ListedScore]] = defaultdict(list)
    for row in Score.objects.filter(response__in=ids).order_by("sample", "pk").values_list(*LISTED_SCORE_COLUMNS):
        score = ListedScore._make(row)
        if score.rater_id in participants.raters and score.aspect_id in participants.aspects:
            by_response[score.response_id].append(score)
    return by_response


def read_failed_score_calls(ids: Sequence[int], participants: Participants) -> Mapping[int, list[FailedScoreCall]]:
    failures: dict[int, list[FailedScoreCall]] = defaultdict(list)
    if not participants.scorers:
        return failures
    judges = [rater.judge_id for rater in participants.scorers]
    calls = Call.objects.filter(response__in=ids, judge__in=judges, state__in=FAILURE_STATES)
    for row in calls.order_by("sample", "pk").values_list(*FAILED_SCORE_COLUMNS):
        call = FailedScoreCall._make(row)
        if call.rater_id in participants.raters:
            failures[call.response_id].append(call)
    return failures


def count_archived_scores(ids: Sequence[int], participants: Participants) -> int:
    """How many rows the scores and failures of archived judges would be."""
    scores = Score.objects.filter(response__in=ids, rater__in=participants.archived).count()
    failures = Call.objects.filter(response__in=ids, judge__raters__in=participants.archived, state__in=FAILURE_STATES)
    return scores + failures.count()


def find_scored_aspects(participants: Participants) -> Mapping[int, int]:
    """By rater id one aspect that the judge scored, under which its failures are listed."""
    first_aspect = next(iter(participants.aspects), 0)
    aspects = {}
    for rater in participants.scorers:
        scores = Score.objects.filter(rater=rater, aspect__in=list(participants.aspects))
        first = scores.order_by("response", "aspect").first()
        aspects[rater.pk] = first.aspect_id if first else first_aspect
    return aspects


def build_score_failure_row(
    response: ListedResponse, call: FailedScoreCall, aspect: int, rules: RulesByVersion, participants: Participants
) -> ExportedScore:
    version = participants.judges[call.rater_id].rubric_version_id
    rule = rules.get((version, aspect), ScoreRule())
    return {
        "query_id": response.query_id,
        "candidate": response.candidate,
        "aspect": participants.aspects.get(aspect, NO_ASPECT),
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
        **describe_rater(call.rater_id, None, participants),
    }


def build_response_rows(
    response: ListedResponse,
    scores: Sequence[ListedScore],
    counted: CountedReviews,
    rules: RulesByVersion,
    participants: Participants,
    counts: ExportCounts,
) -> Iterator[ExportedScore]:
    places = {pk: place for place, pk in enumerate(participants.aspects)}
    finals: dict[tuple[int | None, int], ListedScore] = {
        (score.review_id, score.aspect_id): score for score in scores if score.review_id and score.stage == Stage.FINAL
    }
    seen: Counter[tuple[int, int]] = Counter()
    for score in sorted(scores, key=lambda score: (participants.order[score.rater_id], places[score.aspect_id])):
        if score.review_id and score.stage == Stage.FINAL:
            continue  # is in the row of the first one
        if score.selection_method == SelectionMethod.CALIBRATION:
            counts.excluded["calibration"] += 1
            continue
        if score.review_id and counted.get_place(score.review_id, score.aspect_id) is None:
            counts.excluded["replaced_by_newer_review"] += 1
            continue
        sample = seen[score.rater_id, score.aspect_id] if score.review_id else score.sample
        seen[score.rater_id, score.aspect_id] += 1
        yield build_score_row(
            response, score, finals.get((score.review_id, score.aspect_id)), sample, rules, participants
        )


def build_score_row(
    response: ListedResponse,
    score: ListedScore,
    final: ListedScore | None,
    sample: int,
    rules: RulesByVersion,
    participants: Participants,
) -> ExportedScore:
    judge = participants.judges.get(score.rater_id)
    version = score.version or (judge.rubric_version_id if judge and score.call_id else None)
    rule = rules.get((version, score.aspect_id), ScoreRule())
    return {
        "query_id": response.query_id,
        "candidate": response.candidate,
        "aspect": participants.aspects[score.aspect_id],
        "value": score.value,
        "failure": None,
        "sample": sample,
        "stage": str(Stage.FIRST if score.review_id else Stage.FINAL),
        "final_value": (final.value if final else None) if score.review_id else score.value,
        "lower_is_better": rule.lower_is_better,
        "margin": rule.margin,
        "rationale": score.rationale,
        "note": (final.note if final else "") or score.note,
        "created_at": format_timestamp(score.created_at),
        **describe_rater(score.rater_id, f"{score.rubric} {score.number}" if score.rubric else None, participants),
    }
