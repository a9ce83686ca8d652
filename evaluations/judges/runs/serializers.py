"""Runs as the API returns them."""

from evaluations.api.serializers import nano_to_usd, serialize_optional_person
from evaluations.domain.judges import RunChannel, RunOrders, RunState
from evaluations.judges.runs.estimates import RunEstimate, ValueRange
from evaluations.judges.runs.schemas import OpenRunOut, RangeOut, RunDetailOut, RunEstimateOut, RunOut, RunProgressOut
from evaluations.judges.runs.selectors import measure_run_progress
from evaluations.models.judges import Judge
from evaluations.models.runs import Run


def serialize_open_run(row: Run) -> OpenRunOut:
    return OpenRunOut(
        id=row.pk,
        evaluation=row.evaluation.slug,
        judge_name=row.judge.name,
        endpoint=row.judge.endpoint_id,
        state=RunState(row.state),
        spent_usd=row.spent / 1e9,
        person=serialize_optional_person(row.user),
        created_at=row.created_at,
    )


# ---- runs as answers have them -------------------------------------------------------------


def serialize_run(row: Run) -> RunOut:
    return RunOut(
        id=row.pk,
        judge=row.judge_id,
        judge_name=row.judge.name,
        batch=str(row.batch),
        state=RunState(row.state),
        channel=RunChannel(row.channel),
        orders=RunOrders(row.orders),
        samples=row.samples,
        planned=row.planned,
        reused=row.reused,
        budget_usd=nano_to_usd(row.budget),
        spent_usd=row.spent / 1e9,
        stop_reason=row.stop_reason,
        person=serialize_optional_person(row.user),
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def serialize_run_detail(row: Run) -> RunDetailOut:
    how_far = measure_run_progress(row)
    same = ("total", "settled", "failures", "per_minute", "seconds_left", "repeated", "retried", "tokens_in")
    values = {name: getattr(how_far, name) for name in (*same, "tokens_out", "unpriced", "repaired", "copied")}
    counts = {str(state): number for state, number in how_far.counts.items()}
    return RunDetailOut(
        **serialize_run(row).model_dump(),
        progress=RunProgressOut(counts=counts, **values, cost_usd=nano_to_usd(how_far.cost)),
    )


def serialize_estimate(judge: Judge, ahead: RunEstimate) -> RunEstimateOut:
    return RunEstimateOut(
        judge=judge.pk,
        comparisons=ahead.expected.comparisons,
        calls=ahead.calls,
        reused=ahead.expected.reused,
        left_as_they_are=ahead.expected.left,
        requests=serialize_range(ahead.requests),
        tokens_in=serialize_range(ahead.tokens_in),
        tokens_out=serialize_range(ahead.tokens_out),
        cost_usd=serialize_range(ahead.cost.times(1e-9)) if ahead.cost else None,
        minutes=serialize_range(ahead.minutes) if ahead.minutes else None,
        assumptions=[*ahead.warnings, *ahead.assumptions],
    )


def serialize_range(span: ValueRange) -> RangeOut:
    return RangeOut(low=span.low, high=span.high)
