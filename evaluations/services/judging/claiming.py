"""The calls of a run, taken under a lease: as many as may be asked now, each with all that is to be sent.

Raw SQL where every claim passes: putting these statements together took longer than their execution. The
plus in it keeps a planner that knows nothing yet from walking all attempts of the run for each call.
"""

import json
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from django.db import connection, transaction
from django.db.models import Count, Min, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain import (
    AttemptOutcome,
    AttemptStep,
    CallState,
    Message,
    PairTexts,
    ResponseTexts,
    RubricKind,
    RunState,
    Shown,
    exact_usd,
)
from evaluations.judge.asking import Claimed
from evaluations.judge.prompting import later_messages, messages_for, prompt_sha256
from evaluations.models import Attempt, Batch, Call, Endpoint, Run
from evaluations.models.many import update_many
from evaluations.outside.addresses import is_local_address
from evaluations.services.judging import aspect_answers, budgeting, reusing, sharing
from evaluations.services.judging.aspect_answers import AspectProgress
from evaluations.services.judging.pricing import worst_case
from evaluations.services.judging.recalling import Conversation, conversations
from evaluations.services.judging.running import stop
from evaluations.services.judging.working import LEASE, Bout, Held
from evaluations.services.pacing import rest_after

# A wait longer than this is left to the sweep: no task sits idle for it.
WAIT_AT_MOST_SECONDS: Final = 5.0
# A paused run may be resumed while its last answers are on their way.
LOOK_AT_PAUSED_SECONDS: Final = 1.0
# How soon to look again for money that requests in flight give back.
LOOK_AGAIN_SECONDS: Final = 0.2
# How long a question waits while an equal one is asked.
WHILE_ASKED: Final = timedelta(seconds=1)
# Of the timeout: clocks and rounding take little from it.
TIMED_OUT_FROM: Final = 0.99


@transaction.atomic
def claim(bout: Bout, room: int, held: int = 0) -> Claimed[Held]:
    """Up to ``room`` calls under a new lease; ``held`` are those that this bout holds already."""
    working = at_work(bout.run)
    if working is None:
        return Claimed(wait=LOOK_AT_PAUSED_SECONDS if held and is_paused(bout.run) else None)
    if working.pause > 0:
        return Claimed(wait=working.pause if working.pause <= WAIT_AT_MOST_SECONDS else None)
    room = room_at_endpoint(bout, room, held)
    if room <= 0:
        return Claimed(wait=LOOK_AGAIN_SECONDS)
    return take(bout, with_one_suspect(bout, due(bout, room, working.now), working.now), working.now)


@transaction.atomic
def claim_for(batch: Batch, bout: Bout, room: int) -> Claimed[Held]:
    """Up to ``room`` calls that go out with the batch: no lease of theirs runs out while it is away."""
    working = at_work(bout.run)
    if working is None:
        return Claimed()
    claimed = take(bout, due(bout, room, working.now), working.now)
    mine = Call.all_rows.filter(pk__in=[one.call_id for one in claimed.questions])
    mine.update(batch=batch, lease_until=None)
    return claimed


def take(bout: Bout, rows: "Sequence[Due]", now: datetime) -> Claimed[Held]:
    """Of the calls found, those that are to be asked: not those that were answered, or that no money is left for."""
    began = time.monotonic()
    found = reusing.sort_out(bout, with_all_to_send(bout, rows), now)
    reusing.copy(bout, found.to_copy, now)
    update_many(Call, ("id", "not_before"), [(one.call_id, now + WHILE_ASKED) for one in found.to_wait])
    if found.to_ask and is_budget_unsure(bout):
        return unsure_budget(bout)
    affordable = found.to_ask[: affordable_number(bout, found.to_ask)]
    if found.to_ask and not affordable:
        return out_of_money(bout, found.to_ask[0])
    lease(affordable, now)
    if affordable:
        return Claimed(affordable)
    # Where all were copied nothing is sent, and the next claim would follow without a pause.
    return Claimed(wait=rest_after(time.monotonic() - began) if found.to_copy else seconds_until_due(bout))


class AtWork(NamedTuple):
    """The database's time while a run is at work, and the seconds for which its endpoint is left alone."""

    now: datetime
    pause: float


def is_paused(run: Run) -> bool:
    return Run.objects.filter(pk=run.pk, state=RunState.PAUSED).exists()


def at_work(run: Run) -> AtWork | None:
    """None where the run is not at work."""
    clock = "STATEMENT_TIMESTAMP()" if connection.vendor == "postgresql" else "NULL"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {clock}, e.paused_until FROM evaluations_run r JOIN evaluations_judge j ON j.id = r.judge_id "
            "LEFT JOIN evaluations_endpoint e ON e.id = j.endpoint_id WHERE r.id = %s AND r.state = 'running'",
            [run.pk],
        )
        found = cursor.fetchone()
    if found is None:
        return None
    now, paused_until = found[0] or timezone.now(), moment(found[1])
    return AtWork(now, (paused_until - now).total_seconds() if paused_until else 0.0)


def moment(stored: datetime | None) -> datetime | None:
    """A time as raw SQL gives it: what SQLite keeps is in UTC and does not say so."""
    return stored.replace(tzinfo=UTC) if stored and stored.tzinfo is None else stored


def room_at_endpoint(bout: Bout, room: int, held: int) -> int:
    """How many more requests may be claimed where this worker cannot rely on its share of the limit yet."""
    if bout.judge.endpoint is None or not sharing.must_count(bout.judge.endpoint):
        return room
    # Locked, so that two workers do not both see the last free place.
    endpoint = Endpoint.objects.select_for_update().get(pk=bout.judge.endpoint.pk)
    running = Call.all_rows.filter(state=CallState.RUNNING, judge__endpoint=endpoint, lease_until__gt=Now()).count()
    if running <= held:  # nobody else is at it
        return room
    return min(room, (endpoint.max_in_flight or 0) - running)


def seconds_until_due(bout: Bout) -> float | None:
    """When the next call of this run may be asked; None where none waits, or none soon enough."""
    waiting = Call.all_rows.filter(run=bout.run, state=CallState.PENDING)
    soonest = waiting.aggregate(count=Count("pk"), due=Min("not_before"))
    if not soonest["count"]:
        return None
    seconds = (soonest["due"] - timezone.now()).total_seconds() if soonest["due"] else 0.0
    return max(seconds, 0.05) if seconds <= WAIT_AT_MOST_SECONDS else None


# ---- finding -------------------------------------------------------------------------------


class Due(NamedTuple):
    """A call that may be asked now, with the texts that its judge is to read, JSON as it is stored."""

    call_id: int
    comparison_id: int | None
    response_id: int | None
    shown: str
    sample: int
    step: str
    reuse_key: str
    tried: int
    messages: str
    context: str | None
    reference: str | None
    first: str
    second: str


DUE: Final = """
SELECT c.id, c.comparison_id, c.response_id, c.shown, c.sample, c.step, c.reuse_key,
  (SELECT COUNT(*) FROM evaluations_attempt a
   WHERE a.call_id = c.id AND +a.run_id = c.run_id AND a.outcome IN ('retry', 'lost')),
  q.messages, q.context, q.reference, {texts}
FROM evaluations_call c {joins} JOIN evaluations_query q ON q.id = {of}.query_id
WHERE {{where}}
"""
WAITING: Final = (
    "c.run_id = %s AND c.state = 'pending' AND (c.not_before IS NULL OR c.not_before <= %s) ORDER BY c.id LIMIT %s"
)
IN_BATCH: Final = "c.batch_id = %s AND c.state = 'running' AND c.id IN ({marks}) ORDER BY c.id"
DUE_OF_KIND: Final = {
    RubricKind.PAIRWISE: DUE.format(
        texts="one.messages, two.messages",
        of="pair",
        joins="JOIN evaluations_comparison pair ON pair.id = c.comparison_id "
        "JOIN evaluations_response one ON one.id = pair.response_a_id "
        "JOIN evaluations_response two ON two.id = pair.response_b_id",
    ),
    RubricKind.POINTWISE: DUE.format(
        texts="one.messages, ''", of="one", joins="JOIN evaluations_response one ON one.id = c.response_id"
    ),
}


def due(bout: Bout, room: int, now: datetime) -> list[Due]:
    """Calls that wait and may be asked now, the oldest first, locked until the transaction ends.

    What another worker is claiming at this moment is passed over, not waited for; on SQLite the
    transaction itself keeps others out.
    """
    where = WAITING
    if connection.features.has_select_for_update_skip_locked:
        where += " FOR UPDATE OF c SKIP LOCKED"
    return rows_of(bout, where, [bout.run.pk, connection.ops.adapt_datetimefield_value(now), room])


def with_one_suspect(bout: Bout, rows: Sequence[Due], now: datetime) -> list[Due]:
    """The calls that may be claimed: of those that were in flight when a worker died, one at a time in the whole run.

    The next death then tells which of them it was. The others wait for a second, so that fresh calls come first.
    """
    again = {row.call_id for row in rows if row.tried}
    lost = Attempt.objects.filter(call__in=again, outcome=AttemptOutcome.LOST) if again else Attempt.objects.none()
    suspects = sorted(set(lost.values_list("call_id", flat=True)))
    if not suspects:
        return list(rows)
    in_flight = Call.all_rows.filter(run=bout.run, state=CallState.RUNNING, attempts__outcome=AttemptOutcome.LOST)
    waiting = set(suspects) if in_flight.exists() else set(suspects[1:])
    update_many(Call, ("id", "not_before"), [(call_id, now + WHILE_ASKED) for call_id in sorted(waiting)])
    return [row for row in rows if row.call_id not in waiting]


def rows_of(bout: Bout, where: str, values: Sequence[str | int | None]) -> list[Due]:
    with connection.cursor() as cursor:
        cursor.execute(DUE_OF_KIND[bout.spec.kind].format(where=where), values)
        return [Due(*row) for row in cursor.fetchall()]


# ---- what is to be sent --------------------------------------------------------------------


def with_all_to_send(bout: Bout, rows: Sequence[Due]) -> list[Held]:
    lease = uuid.uuid4()
    if bout.judge.one_aspect_per_call:
        return with_next_aspect(bout, rows, lease)
    said = conversations({row.call_id: AttemptStep(row.step) for row in rows})
    return with_tries(bout, [held_of(bout, row, lease, said.get(row.call_id)) for row in rows])


def with_next_aspect(bout: Bout, rows: Sequence[Due], lease: uuid.UUID) -> list[Held]:
    """Each with the first aspect that no stored reply answers."""
    asked = {row.call_id: (Shown(row.shown), AttemptStep(row.step), partial(texts_in, bout, row)) for row in rows}
    known = aspect_answers.progress_of(bout, asked)
    held = [
        held_of(bout, row._replace(tried=at.tried), lease, at.conversation, at)
        for row in rows
        for at in (known[row.call_id],)
    ]
    return with_tries(bout, held, {call_id: at.answered_number for call_id, at in known.items()})


def with_tries(bout: Bout, held: Sequence[Held], after: Mapping[int, int] | None = None) -> list[Held]:
    """With what became of their earlier requests; ``after``: call → the number of the last one that does not count."""
    tried = [one.call_id for one in held if one.tried]
    empty, late = came_empty(tried, after or {}), timed_out(bout, tried, after or {})
    return [
        replace(one, came_empty=one.call_id in empty, timed_out=late[one.call_id]) if one.tried else one for one in held
    ]


def came_empty(tried: Sequence[int], after: Mapping[int, int]) -> set[int]:
    """Of these calls those that were answered once without a word."""
    if not tried:
        return set()
    # A server may call a reply without a word an error because it did not keep to the form: only a reply has an end.
    is_reply = Q(http_status=200) | ~Q(finish_reason="")
    again = Attempt.objects.filter(is_reply, call__in=tried, outcome=AttemptOutcome.RETRY)
    found = again.values_list("call_id", "number", "raw")
    return {call_id for call_id, number, raw in found if number > after.get(call_id, 0) and not raw.strip()}


def timed_out(bout: Bout, tried: Sequence[int], after: Mapping[int, int]) -> Counter[int]:
    """How often each of these calls timed out in this run, where its server may be at work on it still.

    By the timeout as it is now: where that was raised, what timed out before does not count.
    """
    endpoint = bout.judge.endpoint
    if not tried or endpoint is None or not is_local_address(endpoint.base_url):
        return Counter()
    least_ms = sharing.timeout_of(endpoint) * 1000 * TIMED_OUT_FROM
    unanswered = Attempt.objects.filter(call__in=tried, run=bout.run, http_status=None, outcome=AttemptOutcome.RETRY)
    late = unanswered.filter(latency_ms__gte=least_ms).values_list("call_id", "number")
    return Counter(call_id for call_id, number in late if number > after.get(call_id, 0))


def held_of(
    bout: Bout, row: Due, lease: uuid.UUID, said: Conversation | None, at: AspectProgress | None = None
) -> Held:
    """Its messages are written here, so that asking only sends. A rule is sent nothing."""
    shown, texts = Shown(row.shown), texts_in(bout, row)
    known = (row.call_id, row.comparison_id, lease, shown, row.tried, texts, row.response_id, row.sample)
    if bout.judge.endpoint is None:
        return Held(*known)
    step, said = (AttemptStep(row.step), said) if said else (AttemptStep.ASK, Conversation())
    aspect, earlier = (at.aspect, at.earlier) if at else ("", ())
    messages = first_messages(bout, texts, shown, aspect)
    if step != AttemptStep.ASK:
        messages = later_messages(bout.spec_of(aspect), messages, said.before, step, said.unread)
    held = Held(*known, step, said.before, said.unread, False, messages, aspect=aspect, earlier=earlier)
    prompt, key = sums_of(bout, row, held)
    if at and not aspect:  # every aspect is answered: nothing is sent
        return replace(held, reuse_key=key)
    most = worst_case(bout.price, messages, bout.largest_schema(aspect), bout.bound_of_reply, batched=bout.batched)
    return replace(held, prompt_sha256=prompt, reuse_key=key, reserved=kept_back(bout, most))


def kept_back(bout: Bout, most: int | None) -> int:
    """Nano-USD for one request: the most that it can cost by its limits, and no less than the dearest so far."""
    return max(most, bout.dearest) if most else 0


def first_messages(bout: Bout, texts: PairTexts | ResponseTexts, shown: Shown, aspect: str) -> list[Message]:
    spec, system = bout.spec_of(aspect), bout.system_of(aspect)
    return messages_for(spec, texts, shown, bout.judge.fence_key, two_steps=bout.two_steps, system=system)


def sums_of(bout: Bout, row: Due, held: Held) -> tuple[str, str]:
    """The sum of the prompt, and the key under which its answer may be known; neither before a shape is found.

    The key is that of the question as it was first put, through all steps.
    """
    shape = bout.shape
    if shape is None:
        return "", ""
    prompt = prompt_sha256(held.messages, bout.form(held.step, held.before, shape, held.aspect))
    return prompt, reusing.reuse_key(bout, prompt, row.sample, shape) if held.is_first else row.reuse_key


def texts_in(bout: Bout, row: Due) -> PairTexts | ResponseTexts:
    messages, first = json.loads(row.messages), json.loads(row.first)
    if bout.spec.kind == RubricKind.POINTWISE:
        return ResponseTexts(messages, first, row.context, row.reference)
    return PairTexts(messages, first, json.loads(row.second), row.context, row.reference)


def sent_in(batch: Batch, bout: Bout, call_ids: Sequence[int]) -> list[Held]:
    """Those of these calls that are still out with the batch, as they were claimed for it."""
    marks = ", ".join(["%s"] * len(call_ids))
    rows = rows_of(bout, IN_BATCH.format(marks=marks), [batch.pk, *call_ids]) if call_ids else []
    leases = dict(Call.all_rows.filter(pk__in=[row.call_id for row in rows]).values_list("pk", "lease"))
    return [replace(one, lease=leases[one.call_id] or one.lease) for one in with_all_to_send(bout, rows)]


# ---- keeping and giving back ---------------------------------------------------------------

LEASED: Final = ("id", "state", "lease", "lease_until", "not_before", "reuse_key", "reserved")


def lease(calls: Sequence[Held], now: datetime) -> None:
    running, until = CallState.RUNNING.value, now + LEASE
    rows = [(one.call_id, running, one.lease, until, None, one.reuse_key, one.reserved) for one in calls]
    update_many(Call, LEASED, rows)


def refresh(held: Mapping[int, uuid.UUID]) -> None:
    """Keep what is still in flight ours for another while."""
    mine = Call.all_rows.filter(pk__in=list(held), lease__in=set(held.values()), state=CallState.RUNNING)
    mine.update(lease_until=Now() + LEASE)


def give_back(held: Sequence[Held]) -> None:
    """Calls that were claimed and not sent wait again at once, and cost nothing."""
    leases = {one.lease for one in held}
    free(Call.all_rows.filter(pk__in=[one.call_id for one in held], lease__in=leases, state=CallState.RUNNING))


@transaction.atomic
def free(mine: "QuerySet[Call]") -> None:
    """These running calls wait again, and no money is kept back for them."""
    calls = list(mine.select_for_update().order_by("pk").only("run_id", "reserved"))
    freed = Call.all_rows.filter(pk__in=[call.pk for call in calls])
    freed.update(state=CallState.PENDING, lease=None, lease_until=None, reserved=0, batch=None)
    for call in calls:
        budgeting.book(call.run_id or 0, spent=0, released=call.reserved)


# ---- money ---------------------------------------------------------------------------------


def affordable_number(bout: Bout, calls: Sequence[Held]) -> int:
    """How many of these, from the first, the run's budget holds; what they may cost is kept back for them."""
    return budgeting.reserve(bout.run.pk, [one.reserved for one in calls])


def is_budget_unsure(bout: Bout) -> bool:
    """Whether the run has a budget and nothing says any more what a request can cost at most."""
    if bout.run.budget is None or bout.judge.endpoint is None:
        return False
    return bout.price is None or bout.bound_of_reply is None


def unsure_budget(bout: Bout) -> Claimed[Held]:
    stop(
        bout.run,
        f"The budget cannot be guaranteed: {why_unsure(bout)} Enter its price with its longest reply, or take the "
        "budget away, and resume the run.",
    )
    return Claimed()


def why_unsure(bout: Bout) -> str:
    if not bout.keeps_limit:
        return f"a reply of “{bout.judge.model}” went over the limit of {bout.judge.max_tokens} tokens."
    return f"“{bout.judge.model}” takes no limit of tokens, or its price is gone."


def out_of_money(bout: Bout, next_call: Held) -> Claimed[Held]:
    """What is in flight may cost less than is kept back for it; the run ends when nothing is."""
    run = Run.objects.get(pk=bout.run.pk)
    if run.reserved:
        return Claimed(wait=LOOK_AGAIN_SECONDS)
    stop(
        run,
        f"The budget is used up: USD {exact_usd(run.spent)} of {exact_usd(run.budget or 0)} are spent, "
        f"and the next request may cost {exact_usd(next_call.reserved)}. Give the run a larger budget and resume it.",
    )
    return Claimed()
