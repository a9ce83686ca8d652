"""Calls as the API returns them."""

from collections.abc import Iterable

from evaluations.api.serializers import nano_to_usd, serialize_optional_person, serialize_row
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
        confirmed_by=serialize_optional_person(row.confirmed_by),
        confirmed_at=row.confirmed_at,
        attempts=[serialize_row(AttemptOut, one, cost_usd=nano_to_usd(one.cost)) for one in attempts],
        verdicts=[serialize_row(CallVerdictOut, one, aspect=one.aspect.key) for one in verdicts],
        scores=[serialize_row(CallScoreOut, one, aspect=one.aspect.key) for one in scores],
    )
