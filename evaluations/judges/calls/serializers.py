"""Calls as the API returns them."""

from collections.abc import Iterable

from evaluations.api.serializers import nano_to_usd, serialize_optional_user, serialize_row
from evaluations.judges.calls.schemas import AttemptOut, CallDetailOut, CallOut, CallScoreOut, CallVerdictOut
from evaluations.models.runs import Attempt, Call
from evaluations.models.verdicts import Score, Verdict


def serialize_call(row: Call) -> CallOut:
    subject = row.comparison or row.response
    assert subject is not None
    return serialize_row(
        CallOut,
        row,
        comparison=row.comparison_id,
        response=row.response_id,
        query_id=subject.query.key,
        copied_from=row.copied_from_id,
    )


def serialize_call_detail(row: Call, attempts: Iterable[Attempt]) -> CallDetailOut:
    verdicts = Verdict.all_rows.filter(call=row).select_related("aspect").order_by("aspect__key")
    scores = Score.all_rows.filter(call=row).select_related("aspect").order_by("aspect__key")
    return CallDetailOut(
        **serialize_call(row).model_dump(),
        rationale=row.rationale,
        confirmed_by=serialize_optional_user(row.confirmed_by),
        confirmed_at=row.confirmed_at,
        attempts=[serialize_row(AttemptOut, attempt, cost_usd=nano_to_usd(attempt.cost)) for attempt in attempts],
        verdicts=[serialize_row(CallVerdictOut, verdict, aspect=verdict.aspect.key) for verdict in verdicts],
        scores=[serialize_row(CallScoreOut, score, aspect=score.aspect.key) for score in scores],
    )
