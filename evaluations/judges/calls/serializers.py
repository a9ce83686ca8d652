"""Calls as the API returns them."""

from collections.abc import Sequence
from typing import Final

from evaluations.api.serializers import nano_to_usd, serialize_optional_person
from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.judges import CallState
from evaluations.judges.calls.schemas import AttemptOut, CallDetailOut, CallOut, CallScoreOut, CallVerdictOut
from evaluations.models.runs import Attempt, Call
from evaluations.models.verdicts import Score, Verdict


def serialize_call(row: Call) -> CallOut:
    subject = row.comparison or row.response
    assert subject is not None
    return CallOut(
        id=row.pk,
        comparison=row.comparison_id,
        response=row.response_id,
        query_id=subject.query.key,
        shown=ShownOrder(row.shown),
        sample=row.sample,
        state=CallState(row.state),
        repaired=row.repaired,
        copied_from=row.copied_from_id,
        error=row.error,
    )


def serialize_call_detail(row: Call, attempts: Sequence[Attempt]) -> CallDetailOut:
    verdicts = Verdict.all_rows.filter(call=row).select_related("aspect").order_by("aspect__key")
    scores = Score.all_rows.filter(call=row).select_related("aspect").order_by("aspect__key")
    return CallDetailOut(
        **serialize_call(row).model_dump(),
        rationale=row.rationale,
        confirmed_by=serialize_optional_person(row.confirmed_by),
        confirmed_at=row.confirmed_at,
        attempts=[serialize_attempt(one) for one in attempts],
        verdicts=[
            CallVerdictOut(
                aspect=one.aspect.key,
                choice=Choice(one.choice),
                inconsistent=one.inconsistent,
                rationale=one.rationale,
            )
            for one in verdicts
        ],
        scores=[CallScoreOut(aspect=one.aspect.key, value=one.value, rationale=one.rationale) for one in scores],
    )


LATER_ATTEMPT_FIELDS: Final = ("reasoning", "aspect", "error")


def serialize_attempt(one: Attempt) -> AttemptOut:
    same = ("number", "step", "outcome", "http_status", "raw", "finish_reason", "model_returned", "tokens_in")
    values = {
        name: getattr(one, name)
        for name in (*same, "tokens_out", "tokens_reasoning", "latency_ms", *LATER_ATTEMPT_FIELDS)
    }
    return AttemptOut(**values, cost_usd=nano_to_usd(one.cost))
