"""The claims of calls under a lease, with the messages that will be sent."""

import json
import math
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from django.db import transaction
from django.db.models import Min, Q, QuerySet
from django.db.models.functions import Now

from evaluations.domain.choices import ShownOrder
from evaluations.domain.judges import AttemptOutcome, AttemptStep, CallState, RunState
from evaluations.domain.rubrics import RubricKind
from evaluations.domain.texts import PairTexts, ResponseTexts
from evaluations.judge_prompts.prompt_builder import build_later_messages, build_messages, hash_prompt
from evaluations.judges.calls.answer_cache import copy_answers, decide_reuse, make_reuse_key
from evaluations.judges.calls.budget_limits import CHECK_AGAIN_SECONDS, stop_or_wait_for_budget
from evaluations.judges.calls.conversations import (
    AspectProgress,
    Conversation,
    load_aspect_progress,
    load_conversations,
)
from evaluations.judges.calls.work_session import LEASE_TIME, ClaimedCall, WorkSession
from evaluations.judges.calls.worker_registry import has_lost_worker, must_count_in_flight
from evaluations.judges.endpoints.grants import NOT_GRANTED
from evaluations.judges.endpoints.prices import max_request_cost
from evaluations.judges.endpoints.selectors import endpoint_timeout
from evaluations.judges.endpoints.sql import utc_date
from evaluations.judges.runs.budget import release_budget, reserve_budget
from evaluations.judges.runs.transitions import stop_run
from evaluations.judges.sql import DueCall, find_batch_calls, find_due_calls, find_run_at_work
from evaluations.llm.request_loop import ClaimResult
from evaluations.models.bulk import update_many
from evaluations.models.clock import read_clock
from evaluations.models.judges import Endpoint
from evaluations.models.runs import Attempt, Batch, Call, Run
from evaluations.models.transactions import write_pause_seconds
from evaluations.net.addresses import is_local_address

# Longer waits are left to the sweeper: no task idles for them.
MAX_WAIT_SECONDS: Final = 5.0
MIN_WAIT_SECONDS: Final = 0.05
# A paused run may be resumed while its last requests are in flight.
PAUSED_CHECK_SECONDS: Final = 1.0
# How long a call waits while an equal one is in flight.
EQUAL_CALL_WAIT: Final = timedelta(seconds=1)
# By so many times the slowest of the latest answers a lost request has surely ended.
SLOWEST_FACTOR: Final = 2
ANSWERS_LOOKED_AT: Final = 100
# Of the timeout: clocks and rounding may shorten it a little.
TIMEOUT_SHARE: Final = 0.99


@transaction.atomic
def claim_calls(session: WorkSession, room: int, unstored: int = 0) -> ClaimResult[ClaimedCall]:
    """Claim up to ``room`` calls; ``unstored`` is how many this session has claimed and not stored yet."""
    working = find_run_at_work(session.run)
    if working is None:
        is_paused = unstored and Run.objects.filter(pk=session.run.pk, state=RunState.PAUSED).exists()
        return ClaimResult(wait=PAUSED_CHECK_SECONDS if is_paused else None)
    if working.pause > 0:
        return ClaimResult(wait=working.pause if working.pause <= MAX_WAIT_SECONDS else None)
    if not working.is_granted:
        stop_run(session.run, NOT_GRANTED)
        return ClaimResult()
    if working.is_down:
        return ClaimResult()
    session.keep_budget(exists=working.has_budget)
    room = room_at_endpoint(session, room, unstored)
    if room <= 0:
        return ClaimResult(wait=CHECK_AGAIN_SECONDS)
    due = find_due_calls(session.run, session.spec.kind, room, working.now)
    return take_due_calls(session, hold_back_suspects(session, due, working.now), working.now)


@transaction.atomic
def claim_batch_calls(batch: Batch, session: WorkSession, room: int) -> ClaimResult[ClaimedCall]:
    """Claim up to ``room`` calls for a batch; their leases do not expire while the batch is away."""
    working = find_run_at_work(session.run)
    if working is None:
        return ClaimResult()
    if not working.is_granted:
        stop_run(session.run, NOT_GRANTED)
        return ClaimResult()
    if working.is_down:
        return ClaimResult()
    session.keep_budget(exists=working.has_budget)
    claimed = take_due_calls(session, find_due_calls(session.run, session.spec.kind, room, working.now), working.now)
    claimed_rows = Call.all_rows.filter(pk__in=[call.call_id for call in claimed.calls])
    claimed_rows.update(batch=batch, lease_until=None)
    return claimed


def take_due_calls(session: WorkSession, rows: Sequence[DueCall], now: datetime) -> ClaimResult[ClaimedCall]:
    """Lease the due calls that must be sent: neither answered from the cache nor beyond the budget."""
    began = time.monotonic()
    decision = decide_reuse(session, prepare_claimed_calls(session, rows), now)
    copy_answers(session, decision.to_copy, now)
    update_many(Call, ("id", "not_before"), [(call.call_id, now + EQUAL_CALL_WAIT) for call in decision.to_wait])
    if decision.to_ask and is_budget_unbounded(session):
        return stop_for_unbounded_budget(session)
    reservation = reserve_budget(session.run, [call.reserved for call in decision.to_ask], utc_date(now))
    affordable = decision.to_ask[: reservation.count]
    if decision.to_ask and not affordable:
        return stop_or_wait_for_budget(session, reservation.exhausted, decision.to_ask[0].reserved, now)
    lease_calls(affordable, now)
    if affordable:
        return ClaimResult(affordable)
    # If all calls were copied nothing is sent, and the next claim would follow without a pause.
    return ClaimResult(
        wait=write_pause_seconds(time.monotonic() - began) if decision.to_copy else seconds_until_due(session, now)
    )


def room_at_endpoint(session: WorkSession, room: int, unstored: int) -> int:
    """How many more requests may be claimed while this worker's share of the limit is not certain yet."""
    if session.judge.endpoint is None or not must_count_in_flight(session.judge.endpoint):
        return room
    # Locked, so that two workers do not both see the last free slot.
    endpoint = Endpoint.objects.select_for_update(no_key=True).get(pk=session.judge.endpoint.pk)
    # One whose lease has expired was sent by a worker that died, and the server may still be at it. They are found by
    # the index of leases: that of judges has all calls.
    leased = Call.all_rows.filter(state=CallState.RUNNING, lease_until__isnull=False)
    running = leased.filter(judge__endpoint=endpoint, batch__isnull=True).count()
    lost = count_lost_in_flight(endpoint)
    if running <= unstored and not lost:  # no other worker uses it
        return room
    return min(room, (endpoint.max_in_flight or 0) - running - lost)


def count_lost_in_flight(endpoint: Endpoint) -> int:
    """Requests of killed workers that their calls no longer wait for, and that the server may not have ended.

    Most servers end a request whose connection is gone. Others take no longer than their slowest answers did.
    """
    if not has_lost_worker(endpoint):
        return 0
    mine = Attempt.objects.filter(run__judge__endpoint=endpoint, batch__isnull=True)
    answers = mine.filter(outcome=AttemptOutcome.ANSWERED).order_by("-pk").values_list("latency_ms", flat=True)
    slowest = max(answers[:ANSWERS_LOOKED_AT], default=math.inf) / 1000
    seconds = min(SLOWEST_FACTOR * slowest, endpoint_timeout(endpoint))
    return mine.filter(outcome=AttemptOutcome.LOST, created_at__gt=Now() - timedelta(seconds=seconds)).count()


def seconds_until_due(session: WorkSession, now: datetime) -> float | None:
    """Seconds until the next call of this run is due; None if none is pending or the wait is too long."""
    waiting = Call.all_rows.filter(run=session.run, state=CallState.PENDING)
    # A due one is found by the index at once. All are read only where all wait.
    if waiting.filter(Q(not_before__isnull=True) | Q(not_before__lte=now)).exists():
        return MIN_WAIT_SECONDS
    soonest = waiting.aggregate(due=Min("not_before"))["due"]
    seconds = (soonest - now).total_seconds() if soonest else math.inf
    return max(seconds, MIN_WAIT_SECONDS) if seconds <= MAX_WAIT_SECONDS else None


def hold_back_suspects(session: WorkSession, rows: Sequence[DueCall], now: datetime) -> list[DueCall]:
    """The due calls, with at most one per run that was in flight when a worker died.

    The next death then shows which call caused it. The others wait for a second, so that fresh calls come first.
    """
    again = {row.call_id for row in rows if row.failed_requests}
    lost = Attempt.objects.filter(call__in=again, outcome=AttemptOutcome.LOST) if again else Attempt.objects.none()
    suspects = sorted(set(lost.values_list("call_id", flat=True)))
    if not suspects:
        return list(rows)
    in_flight = Call.all_rows.filter(run=session.run, state=CallState.RUNNING, attempts__outcome=AttemptOutcome.LOST)
    waiting = set(suspects) if in_flight.exists() else set(suspects[1:])
    update_many(Call, ("id", "not_before"), [(call_id, now + EQUAL_CALL_WAIT) for call_id in sorted(waiting)])
    return [row for row in rows if row.call_id not in waiting]


def prepare_claimed_calls(session: WorkSession, rows: Sequence[DueCall]) -> list[ClaimedCall]:
    lease = uuid.uuid4()
    if session.judge.one_aspect_per_call:
        return prepare_aspect_calls(session, rows, lease)
    conversations = load_conversations({row.call_id: AttemptStep(row.step) for row in rows})
    return add_earlier_tries(
        session, [make_claimed_call(session, row, lease, conversations.get(row.call_id)) for row in rows]
    )


def prepare_aspect_calls(session: WorkSession, rows: Sequence[DueCall], lease: uuid.UUID) -> list[ClaimedCall]:
    """Claimed calls, each for the first aspect that no stored reply answers."""
    questions = {
        row.call_id: (ShownOrder(row.shown), AttemptStep(row.step), partial(due_call_texts, session, row))
        for row in rows
    }
    progress_by_call = load_aspect_progress(session, questions)
    calls = []
    for row in rows:
        progress = progress_by_call[row.call_id]
        row = row._replace(failed_requests=progress.failed_requests)
        calls.append(make_claimed_call(session, row, lease, progress.conversation, progress))
    last_answered = {call_id: progress.answered_number for call_id, progress in progress_by_call.items()}
    return add_earlier_tries(session, calls, last_answered)


def add_earlier_tries(
    session: WorkSession, calls: Sequence[ClaimedCall], after: Mapping[int, int] | None = None
) -> list[ClaimedCall]:
    """The calls with their earlier failures; ``after``: call → the last attempt number that does not count."""
    repeated = [call.call_id for call in calls if call.failed_requests]
    empty, timeouts = find_empty_replies(repeated, after or {}), count_timeouts(session, repeated, after or {})
    return [
        replace(call, had_empty_reply=call.call_id in empty, timed_out=timeouts[call.call_id])
        if call.failed_requests
        else call
        for call in calls
    ]


def find_empty_replies(call_ids: Sequence[int], after: Mapping[int, int]) -> set[int]:
    """The calls that once got an empty reply."""
    if not call_ids:
        return set()
    # A server may report an empty reply as an error because it broke the format: only replies have a finish reason.
    is_reply = Q(http_status=200) | ~Q(finish_reason="")
    retried = Attempt.objects.filter(is_reply, call__in=call_ids, outcome=AttemptOutcome.RETRY)
    replies = retried.values_list("call_id", "number", "raw")
    return {call_id for call_id, number, raw in replies if number > after.get(call_id, 0) and not raw.strip()}


def count_timeouts(session: WorkSession, call_ids: Sequence[int], after: Mapping[int, int]) -> Counter[int]:
    """How often each call timed out in this run at a local server, which may still be working on it.

    Counts by the present timeout: attempts that ended sooner, before it was raised, are left out.
    """
    endpoint = session.judge.endpoint
    if not call_ids or endpoint is None or not is_local_address(endpoint.base_url):
        return Counter()
    timeout_ms = endpoint_timeout(endpoint) * 1000 * TIMEOUT_SHARE
    retried = Attempt.objects.filter(call__in=call_ids, run=session.run, http_status=None, outcome=AttemptOutcome.RETRY)
    timed_out = retried.filter(latency_ms__gte=timeout_ms).values_list("call_id", "number")
    return Counter(call_id for call_id, number in timed_out if number > after.get(call_id, 0))


def make_claimed_call(
    session: WorkSession,
    row: DueCall,
    lease: uuid.UUID,
    conversation: Conversation | None,
    progress: AspectProgress | None = None,
) -> ClaimedCall:
    """The claimed call with its messages, ready to send. Rules have no messages."""
    shown, texts = ShownOrder(row.shown), due_call_texts(session, row)
    call = ClaimedCall(
        row.call_id, row.comparison_id, lease, shown, row.failed_requests, texts, row.response_id, row.sample
    )
    if session.judge.endpoint is None:
        return call
    step, conversation = (AttemptStep(row.step), conversation) if conversation else (AttemptStep.ASK, Conversation())
    aspect, earlier_answers = (progress.aspect, progress.earlier_answers) if progress else ("", ())
    spec, system, key = session.spec_of(aspect), session.system_of(aspect), session.judge.fence_key
    messages = build_messages(spec, texts, shown, key, two_steps=session.two_steps, system=system)
    if step != AttemptStep.ASK:
        messages = build_later_messages(spec, messages, conversation.earlier_replies, step, conversation.unread)
    call = replace(
        call,
        step=step,
        earlier_replies=conversation.earlier_replies,
        unread=conversation.unread,
        messages=messages,
        aspect=aspect,
        earlier_answers=earlier_answers,
    )
    prompt, reuse_key = prompt_hash_and_key(session, row, call)
    if progress and not aspect:  # every aspect is answered: nothing is sent
        return replace(call, reuse_key=reuse_key)
    cost = max_request_cost(
        session.price, messages, session.largest_schema(aspect), session.bound_of_reply, batched=session.batched
    )
    reserved = max(cost, session.most_expensive) if cost else 0
    return replace(call, prompt_sha256=prompt, reuse_key=reuse_key, reserved=reserved)


def prompt_hash_and_key(session: WorkSession, row: DueCall, call: ClaimedCall) -> tuple[str, str]:
    """The SHA-256 of the prompt, and the reuse key; both "" before the reply shape is known.

    The key is that of the call's first request, for all its steps.
    """
    shape = session.shape
    if shape is None:
        return "", ""
    prompt = hash_prompt(call.messages, session.form(call.step, call.earlier_replies, shape, call.aspect))
    return prompt, make_reuse_key(session, prompt, row.sample, shape) if call.is_first else row.reuse_key


def due_call_texts(session: WorkSession, row: DueCall) -> PairTexts | ResponseTexts:
    messages, first = json.loads(row.messages), json.loads(row.first)
    if session.spec.kind == RubricKind.POINTWISE:
        return ResponseTexts(messages, first, row.context, row.reference)
    return PairTexts(messages, first, json.loads(row.second), row.context, row.reference)


def load_batch_calls(batch: Batch, session: WorkSession, call_ids: Sequence[int]) -> list[ClaimedCall]:
    """The calls of these that still belong to the batch, as they were claimed."""
    rows = find_batch_calls(batch.pk, session.spec.kind, call_ids)
    leases = dict(Call.all_rows.filter(pk__in=[row.call_id for row in rows]).values_list("pk", "lease"))
    return [replace(call, lease=leases[call.call_id] or call.lease) for call in prepare_claimed_calls(session, rows)]


LEASE_COLUMNS: Final = ("id", "state", "lease", "lease_until", "not_before", "reuse_key", "reserved")


def lease_calls(calls: Sequence[ClaimedCall], now: datetime) -> None:
    running, until = CallState.RUNNING.value, now + LEASE_TIME
    rows = [(call.call_id, running, call.lease, until, None, call.reuse_key, call.reserved) for call in calls]
    update_many(Call, LEASE_COLUMNS, rows)


def refresh_leases(leases: Mapping[int, uuid.UUID]) -> None:
    leased = Call.all_rows.filter(pk__in=list(leases), lease__in=set(leases.values()), state=CallState.RUNNING)
    leased.update(lease_until=Now() + LEASE_TIME)


def return_calls(calls: Sequence[ClaimedCall]) -> None:
    """Make calls that were claimed but not sent pending again, at no cost."""
    call_ids, leases = [call.call_id for call in calls], {call.lease for call in calls}
    release_calls(Call.all_rows.filter(pk__in=call_ids, lease__in=leases, state=CallState.RUNNING))


@transaction.atomic
def release_calls(claimed: "QuerySet[Call]") -> None:
    """Make these running calls pending again, with no budget reserved."""
    calls = list(claimed.select_for_update().order_by("pk").only("run_id", "reserved"))
    freed = Call.all_rows.filter(pk__in=[call.pk for call in calls])
    freed.update(state=CallState.PENDING, lease=None, lease_until=None, reserved=0, batch=None)
    release_budget(calls, utc_date(read_clock()))


def is_budget_unbounded(session: WorkSession) -> bool:
    """Whether a budget bounds the run, but nothing is known to bound the cost of a request."""
    if not session.has_budget or session.judge.endpoint is None:
        return False
    return session.price is None or session.bound_of_reply is None


def stop_for_unbounded_budget(session: WorkSession) -> ClaimResult[ClaimedCall]:
    reason = f"“{session.judge.model}” accepts no token limit, or its price was removed."
    if not session.keeps_limit:
        reason = f"a reply of “{session.judge.model}” exceeded the limit of {session.judge.max_tokens} tokens."
    stop_run(
        session.run,
        (
            f"The budget cannot be guaranteed: {reason} Set its price and max tokens, or remove the "
            "budget, then resume the run."
        ),
    )
    return ClaimResult()
