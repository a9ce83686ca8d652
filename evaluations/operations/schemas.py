"""Schemas of the site's status."""

from datetime import datetime

from ninja import Field, Schema

from evaluations.operations.findings import Health


class StatusFindingOut(Schema):
    part: str
    health: Health
    summary: str
    advice: str = Field(description="what to do; empty if nothing")


class WorkerOut(Schema):
    name: str
    version: str
    started_at: datetime
    seen_seconds: float = Field(description="since its last heartbeat")
    in_flight: int


class MeasuresOut(Schema):
    """Seconds are null where there is nothing to measure. Counts end at 1,000."""

    workers: list[WorkerOut]
    sweep_seconds: float | None
    due_jobs: int
    oldest_job_seconds: float | None
    running_jobs: int
    jobs_set_aside: int
    calls_in_flight: int
    oldest_call_seconds: float | None
    oldest_plan_seconds: float | None
    overdue_webhooks: int
    disk_free_bytes: int | None


class StatusOut(Schema):
    health: Health
    measured_at: datetime
    findings: list[StatusFindingOut]
    measures: MeasuresOut
