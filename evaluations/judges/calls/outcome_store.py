"""The store of outcomes writes every attempt, then the answers that still count."""

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db import connection, transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Greatest, Now
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.judges import OPEN_CALL_STATES, AttemptOutcome, AttemptStep, CallState, ReplyShape, RequestShape
from evaluations.judges.calls.answer_cache import reuse_key_for_shape
from evaluations.judges.calls.answer_rows import write_answers
from evaluations.judges.calls.circuit_breaker import find_reason_to_pause
from evaluations.judges.calls.prompt_truncation import withdraw_truncated_answers
from evaluations.judges.calls.work_session import CallOutcome, ClaimedCall, WorkSession
from evaluations.judges.endpoints.prices import request_cost
from evaluations.judges.runs.run_states import pause_failing_run, stop_run
from evaluations.judges.sql import book_spending
from evaluations.models.bulk import insert_many, update_many
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Attempt, Call

ATTEMPT_COLUMNS: Final = (
    *("created_at", "call_id", "run_id", "batch_id", "lease", "number", "step", "outcome", "http_status", "raw"),
    *("finish_reason", "model_returned", "tokens_in", "tokens_out", "tokens_cached", "cost", "cost_at_most"),
    *("latency_ms", "logprobs", "error", "tokens_reasoning", "reasoning", "aspect"),
)
# What an attempt that does not say otherwise has in columns that may not be null.
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
FIRST_UNBILLED_STATUS: Final = 400  # a server that answers with an error sends no bill


def store_outcomes(bout: WorkSession, outcomes: Sequence[CallOutcome]) -> None:
    """Store every attempt, whoever holds the lease by now; store the rest only where the answer still counts."""
    with transaction.atomic():
        rows, now = lock_calls([outcome.held.call_id for outcome in outcomes])
        new = drop_stored_outcomes(outcomes, rows)
        book = RunAccounts(bout, attempts_marked_lost(new, rows))
        counting = enter_outcomes(book, new, rows, now)
        update_many(Call, RESOLVED_CALL_COLUMNS, [resolved_call_row(bout, outcome, now) for outcome in counting])
        # Calls, then the rater, then the run: claims lock them in the same order.
        write_answers(bout, counting, now)
        for ceiling in {outcome.ceiling for outcome in new if outcome.ceiling}:
            withdraw_truncated_answers(bout, ceiling)
        book.close()
        pause_endpoint(bout, new)
        for found in {(one.shape_found, one.sent_as_found) for one in new if one.shape_found or one.sent_as_found}:
            freeze_capabilities(bout.judge, *found)
        for reason in filter(None, (outcome.stop_reason for outcome in new)):
            stop_run(bout.run, reason)
        if reason := find_reason_to_pause(bout, new):
            pause_failing_run(bout.run, reason)


# ---- the calls as they stand ---------------------------------------------------------------


@dataclass
class LockedCall:
    """A call as it is when its outcome arrives, changed by the outcomes of one batch."""

    state: str
    lease: uuid.UUID | None
    run_id: int
    reserved: int
    attempts: int

    def is_held_by(self, held: ClaimedCall) -> bool:
        return self.state == CallState.RUNNING and self.lease == held.lease

    def takes(self, outcome: CallOutcome) -> bool:
        """Whether this outcome decides about the call.

        It does under its lease. A lease that ran out lost us the call, but a paid answer is taken
        as long as nobody else has it in flight: it would only be bought a second time.
        """
        waits = self.state in (CallState.PENDING, CallState.CANCELLED)
        return self.is_held_by(outcome.held) or (waits and outcome.state not in OPEN_CALL_STATES)

    def settle(self, state: CallState) -> None:
        self.state, self.lease, self.reserved = state, None, 0


def lock_calls(call_ids: Sequence[int]) -> tuple[dict[int, LockedCall], datetime]:
    """The calls as they stand, locked in the order of their ids, and the database's time."""
    marks = ", ".join(["%s"] * len(call_ids))
    postgres = connection.vendor == "postgresql"
    clock, lock = ("STATEMENT_TIMESTAMP()", " FOR UPDATE") if postgres else ("NULL", "")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, state, lease, run_id, reserved, "
            "(SELECT MAX(number) FROM evaluations_attempt a WHERE a.call_id = evaluations_call.id), "
            f"{clock} FROM evaluations_call WHERE id IN ({marks}) ORDER BY id{lock}",
            call_ids,
        )
        found = cursor.fetchall()
    rows = {
        pk: LockedCall(state, uuid.UUID(str(lease)) if lease else None, run_id, reserved, attempts or 0)
        for pk, state, lease, run_id, reserved, attempts, _ in found
    }
    return rows, found[0][-1] or timezone.now()


def drop_stored_outcomes(outcomes: Sequence[CallOutcome], rows: Mapping[int, LockedCall]) -> list[CallOutcome]:
    """Without what an earlier commit holds already, whose end the connection did not live to tell."""
    strange = [outcome.held for outcome in outcomes if not rows[outcome.held.call_id].is_held_by(outcome.held)]
    if not strange:
        return list(outcomes)
    stored = stored_attempts(strange).exclude(outcome=AttemptOutcome.LOST)
    known = set(stored.values_list("call_id", "lease"))
    return [outcome for outcome in outcomes if (outcome.held.call_id, outcome.held.lease) not in known]


def stored_attempts(held: Sequence[ClaimedCall]) -> "QuerySet[Attempt]":
    """What was written down of these requests."""
    leases = {one.lease for one in held}
    return Attempt.objects.filter(call__in=[one.call_id for one in held], lease__in=leases)


# ---- attempts and money --------------------------------------------------------------------


def enter_outcomes(
    book: "RunAccounts", outcomes: Sequence[CallOutcome], rows: Mapping[int, LockedCall], now: datetime
) -> list[CallOutcome]:
    """Write the Attempts, and into the book what they cost; those outcomes that decide about their calls."""
    attempts, counting = [], []
    for outcome in outcomes:
        row = rows[outcome.held.call_id]
        if outcome.attempt is not None:
            attempts.append(book.enter(outcome, row, now))
        if row.takes(outcome):
            book.release(row)
            row.settle(outcome.state)
            counting.append(outcome)
    insert_many(Attempt, ATTEMPT_COLUMNS, attempts)
    return counting


def attempts_marked_lost(
    outcomes: Sequence[CallOutcome], rows: Mapping[int, LockedCall]
) -> dict[tuple[int, uuid.UUID], Attempt]:
    """The requests among these that were written down as lost, and were not."""
    strange = [outcome.held for outcome in outcomes if not rows[outcome.held.call_id].is_held_by(outcome.held)]
    return {(one.call_id, one.lease): one for one in stored_attempts(strange) if one.lease} if strange else {}


@dataclass
class RunAccounts:
    """What the outcomes of one batch change in the accounts of their runs."""

    bout: WorkSession
    lost: Mapping[tuple[int, uuid.UUID], Attempt]
    spent: Counter[int] = field(default_factory=Counter)
    released: Counter[int] = field(default_factory=Counter)

    def enter(self, outcome: CallOutcome, row: LockedCall, now: datetime) -> tuple[object, ...]:
        """The row of its Attempt, paid for by the run that the call belongs to, or that lost it."""
        held, said, lost = (
            outcome.held,
            outcome.attempt or {},
            self.lost.get((outcome.held.call_id, outcome.held.lease)),
        )
        mine = row.is_held_by(held)
        run_id = row.run_id if mine else lost.run_id if lost else self.bout.run.pk
        cost = request_cost(
            self.bout.price,
            *(said.get(key) for key in TOKEN_COLUMNS),
            batched=said.get("batch_id") is not None,
            told=said.get("told_cost"),
        )
        self.bout.dearest = max(self.bout.dearest, cost or 0)
        at_most = row.reserved or None if mine and cost is None and is_billable(outcome) else None
        if lost and cost is not None:
            self.withdraw(lost)
        self.spent[run_id] += cost or at_most or 0
        row.attempts += 1
        known = {"created_at": now, "call_id": held.call_id, "run_id": run_id, "number": row.attempts}
        known |= {"step": held.step.value, "lease": held.lease, "cost": cost, "cost_at_most": at_most}
        whole = {**EMPTY_ATTEMPT, **said, **known}
        return tuple(whole[column] for column in ATTEMPT_COLUMNS)

    def withdraw(self, lost: Attempt) -> None:
        """Its answer came after all: what it may have cost is not counted beside what it did."""
        self.spent[lost.run_id] -= lost.cost_at_most or 0
        Attempt.objects.filter(pk=lost.pk).update(cost_at_most=None)

    def release(self, row: LockedCall) -> None:
        self.released[row.run_id] += row.reserved

    def close(self) -> None:
        for run_id in sorted({*self.spent, *self.released}):
            book_spending(run_id, spent=self.spent[run_id], released=self.released[run_id])


def is_billable(outcome: CallOutcome) -> bool:
    """Whether the request can have cost something: it was sent, and no error came back for it."""
    return not outcome.unsent and ((outcome.attempt or {}).get("http_status") or 0) < FIRST_UNBILLED_STATUS


# ---- the calls afterwards ------------------------------------------------------------------


def resolved_call_row(bout: WorkSession, outcome: CallOutcome, now: datetime) -> tuple[object, ...]:
    held = outcome.held
    waits = outcome.state == CallState.PENDING
    step = outcome.next_step or held.step if waits else held.step
    later = now + timedelta(seconds=outcome.wait_seconds) if outcome.wait_seconds else None
    said = (outcome.repaired, outcome.error, outcome.rationale, outcome.prompt_sha256 or held.prompt_sha256)
    return (
        held.call_id,
        outcome.state.value,
        step.value,
        *said,
        final_reuse_key(bout, outcome),
        later,
        None,
        None,
        None,
        0,
    )


def final_reuse_key(bout: WorkSession, outcome: CallOutcome) -> str:
    """The key of the question as it was put, which the claim could not know while it was not found what is taken."""
    held, found = outcome.held, outcome.sent_as_found
    shape = outcome.shape_found or bout.shape
    was_changed = found is not None and found != RequestShape() and held.step == AttemptStep.ASK
    if held.messages and shape and not held.earlier and (was_changed or (not held.reuse_key and outcome.shape_found)):
        return reuse_key_for_shape(bout, held, shape)
    return held.reuse_key


def pause_endpoint(bout: WorkSession, outcomes: Iterable[CallOutcome]) -> None:
    """A server that turns one request away is left alone by all, as long as it asked for."""
    busy = [outcome for outcome in outcomes if outcome.busy]
    if busy and bout.judge.endpoint is not None:
        # One quota that is used up outlasts what only came too fast.
        reason = next((outcome.pause_reason for outcome in busy if outcome.pause_reason), "")
        wait = min(one.wait_seconds for one in busy if bool(one.pause_reason) == bool(reason))
        until = Now() + timedelta(seconds=wait)
        endpoint = Endpoint.objects.filter(pk=bout.judge.endpoint.pk)
        endpoint.filter(paused_until__isnull=True).update(paused_until=until)
        endpoint.update(paused_until=Greatest("paused_until", until))
        if reason:
            endpoint.update(pause_reason=reason[:500])
        else:
            endpoint.filter(paused_until__lte=until).exclude(pause_reason="").update(pause_reason="")


def freeze_capabilities(judge: Judge, shape: ReplyShape | None, sent_as: RequestShape | None) -> None:
    """What an automatic judge's server and model take, found once and kept with the judge."""
    columns = {"asked_as": shape or "", "sent_as": (sent_as or RequestShape()).as_json()}
    changed = Judge.objects.filter(pk=judge.pk, asked_as="", sent_as__isnull=True).update(**columns)
    if changed and (told := capability_event_fields(columns)):
        record_event("found out", judge, user=None, evaluation=judge.evaluation, after=told)
    judge.refresh_from_db(fields=["asked_as", "sent_as"])


def capability_event_fields(columns: JsonMapping) -> JsonDict:
    """What an event says of it: only what is out of the ordinary."""
    said = {name: value for name, value in columns["sent_as"].items() if value}
    return {**({"asked_as": columns["asked_as"]} if columns["asked_as"] else {}), **said}


def last_attempt_numbers(call_ids: Sequence[int]) -> dict[int, int]:
    found = Attempt.objects.filter(call__in=call_ids).order_by().values_list("call_id")
    return dict(found.annotate(Max("number")))
