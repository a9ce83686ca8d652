"""Runs as the API returns them."""

from evaluations.api.serializers import nano_to_usd, serialize_optional_user, serialize_row
from evaluations.domain.judges import RunState
from evaluations.judges.endpoints.outages import describe_outage
from evaluations.judges.runs.estimates import RunEstimate
from evaluations.judges.runs.schemas import OpenRunOut, RunDetailOut, RunEstimateOut, RunOut, RunProgressOut
from evaluations.judges.runs.selectors import measure_run_progress
from evaluations.models.judges import Judge
from evaluations.models.runs import Run


def serialize_open_run(row: Run) -> OpenRunOut:
    return serialize_row(
        OpenRunOut,
        row,
        evaluation=row.evaluation.slug,
        judge_name=row.judge.name,
        endpoint=row.judge.endpoint_id,
        spent_usd=row.spent / 1e9,
        created_by=serialize_optional_user(row.user),
    )


def serialize_run(row: Run) -> RunOut:
    return serialize_row(
        RunOut,
        row,
        judge=row.judge_id,
        judge_name=row.judge.name,
        batch=str(row.batch),
        budget_usd=nano_to_usd(row.budget),
        archived=row.archived_at is not None,
        spent_usd=row.spent / 1e9,
        waits_for=describe_outage(row.judge.endpoint) if row.state == RunState.RUNNING else "",
        next_try_at=row.judge.endpoint.next_probe_at if row.judge.endpoint and row.state == RunState.RUNNING else None,
        created_by=serialize_optional_user(row.user),
    )


def serialize_run_detail(row: Run) -> RunDetailOut:
    progress = measure_run_progress(row)
    return RunDetailOut(
        **serialize_run(row).model_dump(),
        progress=serialize_row(RunProgressOut, progress, cost_usd=nano_to_usd(progress.cost)),
    )


def serialize_estimate(judge: Judge, estimate: RunEstimate) -> RunEstimateOut:
    return serialize_row(
        RunEstimateOut,
        estimate,
        judge=judge.pk,
        comparisons=estimate.expected.comparisons,
        reused=estimate.expected.reused,
        left_as_they_are=estimate.expected.left,
        cost_usd=estimate.cost.times(1e-9) if estimate.cost else None,
        assumptions=[*estimate.warnings, *estimate.assumptions],
    )
