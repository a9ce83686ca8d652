"""The store of outcomes: every attempt is written, then the answers that still count."""

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models.functions import Greatest, Now

from evaluations.audit.events import record_event
from evaluations.domain.json_values import JsonDict
from evaluations.domain.judges import OPEN_CALL_STATES, AttemptOutcome, AttemptStep, CallState, ReplyShape, RequestShape
from evaluations.judges.calls.answer_cache import reuse_key_for_shape
from evaluations.judges.calls.answer_rows import write_answers
from evaluations.judges.calls.circuit_breaker import find_reason_to_pause
from evaluations.judges.calls.prompt_truncation import withdraw_truncated_answers
from evaluations.judges.calls.work_session import CallOutcome, ClaimedCall, ClaimKey, WorkSession
from evaluations.judges.endpoints.outages import set_endpoint_aside
from evaluations.judges.endpoints.prices import is_billable, request_cost
from evaluations.judges.endpoints.sql import SpendingTotals, add_to_totals, utc_date
from evaluations.judges.runs.budget import Bookings, grant_key
from evaluations.judges.runs.transitions import pause_failing_run, stop_run
from evaluations.judges.sql import lock_call_rows
from evaluations.models.bulk import insert_many, update_many
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Attempt, Call

ATTEMPT_COLUMNS: Final = (
    *("created_at", "call_id", "run_id", "batch_id", "lease", "number", "step", "outcome", "http_status", "raw"),
    *("finish_reason", "model_returned", "tokens_in", "tokens_out", "tokens_cached", "cost", "max_cost"),
    *("latency_ms", "logprobs", "error", "tokens_reasoning", "reasoning", "aspect"),
)
# Defaults of an attempt's columns that may not be null.
EMPTY_ATTEMPT: Final[dict[str, object]] = {
    **dict.fromkeys(ATTEMPT_COLUMNS),
    **dict.fromkeys(("raw", "finish_reason", "model_returned", "error", "reasoning", "aspect"), ""),
    "latency_ms": 0,
}
TOKEN_COLUMNS: Final = ("tokens_in", "tokens_out", "tokens_cached", "tokens_written")
RESOLVED_CALL_COLUMNS: Final = (
    *("id", "state", "step", "repaired", "error", "rationale", "prompt_sha256", "reuse_key", "not_before"),
    *("lease", "lease_until", "batch_id", "reserved"),
)


def store_outcomes(session: WorkSession, outcomes: Sequence[CallOutcome]) -> None:
    """Store every attempt, even if the lease is lost; store answers only while they still count."""
    with transaction.atomic():
        rows, now = lock_calls([outcome.call.call_id for outcome in outcomes])
        stored = load_stray_attempts(outcomes, rows)
        lost = {key: attempt for key, attempt in stored.items() if attempt.outcome == AttemptOutcome.LOST}
        # Without the outcomes that an earlier commit stored before its connection broke.
        new = [outcome for outcome in outcomes if outcome.call.claim_key not in stored.keys() - lost.keys()]
        accounts = RunAccounts(session, lost)
        counting = enter_outcomes(accounts, new, rows, now)
        update_many(Call, RESOLVED_CALL_COLUMNS, [resolved_call_row(session, outcome, now) for outcome in counting])
        # Calls, the endpoint, then the accounts: claims lock them in the same order.
        pause_endpoint(session, new)
        for reason in {outcome.outage for outcome in new if outcome.outage}:
            assert session.judge.endpoint is not None
            set_endpoint_aside(session.judge.endpoint, reason)
        write_answers(session, counting, now)
        for ceiling in {outcome.ceiling for outcome in new if outcome.ceiling}:
            withdraw_truncated_answers(session, ceiling)
        accounts.book(now)
        for shapes in {(outcome.shape_found, outcome.request_shape_found) for outcome in new}:
            if any(shapes):
                freeze_capabilities(session.judge, *shapes)
        for reason in filter(None, (outcome.stop_reason for outcome in new)):
            stop_run(session.run, reason)
        if reason := find_reason_to_pause(session, new):
            pause_failing_run(session.run, reason)
        accounts.add_to_totals(now)


@dataclass
class LockedCall:
    """A call as it is when its outcome arrives; the outcomes of one batch change it."""

    state: str
    lease: uuid.UUID | None
    run_id: int
    reserved: int
    attempts: int

    def is_held_by(self, call: ClaimedCall) -> bool:
        return self.state == CallState.RUNNING and self.lease == call.lease

    def accepts(self, outcome: CallOutcome) -> bool:
        """Whether this outcome decides about the call.

        It does under its lease. After the lease expired, a paid answer still counts as long as no other worker has the
        call in flight: it would only be bought again.
        """
        waits = self.state in (CallState.PENDING, CallState.CANCELLED)
        return self.is_held_by(outcome.call) or (waits and outcome.state not in OPEN_CALL_STATES)


def lock_calls(call_ids: Sequence[int]) -> tuple[dict[int, LockedCall], datetime]:
    """Lock the calls in the order of their ids; returns them with the database's time."""
    locked_rows, now = lock_call_rows(call_ids)
    rows = {
        row.call_id: LockedCall(
            row.state, uuid.UUID(str(row.lease)) if row.lease else None, row.run_id, row.reserved, row.last_number or 0
        )
        for row in locked_rows
    }
    return rows, now


def load_stray_attempts(outcomes: Sequence[CallOutcome], rows: Mapping[int, LockedCall]) -> dict[ClaimKey, Attempt]:
    """The stored attempts of claims that hold their calls no longer; an answer replaces a lost request."""
    strays = [outcome.call for outcome in outcomes if not rows[outcome.call.call_id].is_held_by(outcome.call)]
    if not strays:
        return {}
    call_ids, leases = [call.call_id for call in strays], {call.lease for call in strays}
    attempts = Attempt.objects.filter(call__in=call_ids, lease__in=leases).order_by("number")
    return {(attempt.call_id, attempt.lease): attempt for attempt in attempts if attempt.lease}


def enter_outcomes(
    accounts: "RunAccounts", outcomes: Sequence[CallOutcome], rows: Mapping[int, LockedCall], now: datetime
) -> list[CallOutcome]:
    """Write the Attempts and account for their cost; returns the outcomes that decide about their calls."""
    attempts, counting = [], []
    for outcome in outcomes:
        row = rows[outcome.call.call_id]
        if outcome.attempt is not None:
            attempts.append(accounts.add_attempt(outcome, row, now))
        if row.accepts(outcome):
            accounts.released[row.run_id] += row.reserved
            row.state, row.lease, row.reserved = outcome.state, None, 0
            counting.append(outcome)
    insert_many(Attempt, ATTEMPT_COLUMNS, attempts)
    return counting


@dataclass
class RunAccounts:
    """The changes that one batch of outcomes makes to the accounts of its runs."""

    session: WorkSession
    lost: Mapping[ClaimKey, Attempt]
    spent: Counter[int] = field(default_factory=Counter)
    released: Counter[int] = field(default_factory=Counter)
    # Of what is spent, the part that an earlier day was charged for a lost request.
    spent_before: Counter[int] = field(default_factory=Counter)
    totals: dict[date, SpendingTotals] = field(default_factory=lambda: defaultdict(SpendingTotals))

    def add_attempt(self, outcome: CallOutcome, row: LockedCall, now: datetime) -> tuple[object, ...]:
        """The row of an Attempt, charged to the run that has the call, or to the run that lost it."""
        call, fields, lost = outcome.call, outcome.attempt or {}, self.lost.get(outcome.call.claim_key)
        is_held = row.is_held_by(call)
        run_id = row.run_id if is_held else lost.run_id if lost else self.session.run.pk
        cost = request_cost(
            self.session.price,
            *(fields.get(key) for key in TOKEN_COLUMNS),
            batched=fields.get("batch_id") is not None,
            reported=fields.get("reported_cost"),
        )
        self.session.most_expensive = max(self.session.most_expensive, cost or 0)
        can_cost = is_billable(fields.get("http_status"), unsent=outcome.unsent)
        max_cost = row.reserved or None if is_held and cost is None and can_cost else None
        if lost and cost is not None:  # its answer came after all: the assumed cost is removed
            self.spent[lost.run_id] -= lost.max_cost or 0
            self.totals[utc_date(lost.created_at)].max_cost -= lost.max_cost or 0
            if utc_date(lost.created_at) != utc_date(now):
                self.spent_before[run_id] += cost - (lost.max_cost or 0)
            Attempt.objects.filter(pk=lost.pk).update(max_cost=None)
        self.spent[run_id] += cost or max_cost or 0
        self.totals[utc_date(now)].add(fields.get("tokens_in"), fields.get("tokens_out"), cost, max_cost)
        row.attempts += 1
        columns = {**EMPTY_ATTEMPT, **fields, "created_at": now, "call_id": call.call_id, "run_id": run_id}
        columns |= {"number": row.attempts, "step": call.step.value, "lease": call.lease}
        columns |= {"cost": cost, "max_cost": max_cost}
        return tuple(columns[column] for column in ATTEMPT_COLUMNS)

    def book(self, now: datetime) -> None:
        if any(amount for account in (self.spent, self.released, self.spent_before) for amount in account.values()):
            Bookings(self.spent, self.released, self.spent_before).book(utc_date(now))

    def add_to_totals(self, now: datetime) -> None:
        if key := grant_key(self.session.run):
            add_to_totals({(key, day): total for day, total in self.totals.items()}, now)


def resolved_call_row(session: WorkSession, outcome: CallOutcome, now: datetime) -> tuple[object, ...]:
    call = outcome.call
    step = outcome.next_step or call.step if outcome.state == CallState.PENDING else call.step
    prompt_sha256, reuse_key = outcome.prompt_sha256 or call.prompt_sha256, final_reuse_key(session, outcome)
    not_before = now + timedelta(seconds=outcome.wait_seconds) if outcome.wait_seconds else None
    return (
        *(call.call_id, outcome.state.value, step.value, outcome.repaired, outcome.error, outcome.rationale),
        *(prompt_sha256, reuse_key, not_before),
        *(None, None, None, 0),  # no lease, no batch, nothing reserved
    )


def final_reuse_key(session: WorkSession, outcome: CallOutcome) -> str:
    """The reuse key of the request as it was sent; the claim could not know it before the probe was done."""
    call, request_shape = outcome.call, outcome.request_shape_found
    shape = outcome.shape_found or session.shape
    was_changed = request_shape is not None and request_shape != RequestShape() and call.step == AttemptStep.ASK
    if (
        call.messages
        and shape
        and not call.earlier_answers
        and (was_changed or (not call.reuse_key and outcome.shape_found))
    ):
        return reuse_key_for_shape(session, call, shape)
    return call.reuse_key


def pause_endpoint(session: WorkSession, outcomes: Iterable[CallOutcome]) -> None:
    """Pause an endpoint that rejected a request, for all workers, for as long as it asked."""
    busy = [outcome for outcome in outcomes if outcome.busy]
    if busy and session.judge.endpoint is not None:
        # An exhausted quota lasts longer than a moment's rate limit.
        reason = next((outcome.pause_reason for outcome in busy if outcome.pause_reason), "")
        wait = min(outcome.wait_seconds for outcome in busy if bool(outcome.pause_reason) == bool(reason))
        until = Now() + timedelta(seconds=wait)
        endpoint = Endpoint.objects.filter(pk=session.judge.endpoint.pk)
        endpoint.filter(paused_until__isnull=True).update(paused_until=until)
        endpoint.update(paused_until=Greatest("paused_until", until))
        if reason:
            endpoint.update(pause_reason=reason[:500])
        else:
            endpoint.filter(paused_until__lte=until).exclude(pause_reason="").update(pause_reason="")


def freeze_capabilities(judge: Judge, shape: ReplyShape | None, request_shape: RequestShape | None) -> None:
    """Freeze on an automatic judge how its server and model take requests."""
    columns: JsonDict = {"reply_shape": shape or "", "request_shape": (request_shape or RequestShape()).as_json()}
    changed = Judge.objects.filter(pk=judge.pk, reply_shape="", request_shape__isnull=True).update(**columns)
    fields = {"reply_shape": columns["reply_shape"], **columns["request_shape"]}
    unusual = {name: value for name, value in fields.items() if value}
    if changed and unusual:
        record_event("found out", judge, user=None, evaluation=judge.evaluation, after=unusual)
    judge.refresh_from_db(fields=["reply_shape", "request_shape"])
