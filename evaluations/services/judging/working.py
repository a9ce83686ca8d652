"""The calls of a run: claimed under a lease, stored once, put back where a worker died."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Exists, Max, Min, OuterRef, Q
from django.db.models.functions import Greatest, Now
from django.utils import timezone

from evaluations.domain import (
    OPEN_CALL_STATES,
    AskingMode,
    AttemptOutcome,
    CallState,
    Choice,
    JudgeKind,
    PairTexts,
    RubricSpec,
    RunState,
    Shown,
    Stage,
)
from evaluations.judge.asking import Claimed
from evaluations.judge.retrying import Patience
from evaluations.models import Attempt, Call, Endpoint, Judge, Rater, Run, Verdict
from evaluations.services.judging.judging import ASKED_AS, texts_of
from evaluations.services.judging.running import finish, stop
from evaluations.services.pacing import ROWS_AT_ONCE, paced
from evaluations.services.recording import record

LEASE: Final = timedelta(seconds=settings.LEASE_SECONDS)
# A wait longer than this is left to the sweep: no task sits idle for it.
WAIT_AT_MOST_SECONDS: Final = 5.0
IN_FLIGHT: Final = 32  # at an endpoint that names no limit
LOST_AT_MOST: Final = 8  # a call that takes its worker down every time is given up


@dataclass
class Bout:
    """One worker's stretch of work on one run, with what every call of it needs."""

    run: Run
    judge: Judge
    spec: RubricSpec
    rater_id: int
    aspect_ids: Mapping[str, int]
    patience: Patience = field(default_factory=Patience)

    @property
    def in_flight(self) -> int:
        endpoint = self.judge.endpoint
        return endpoint.max_in_flight or IN_FLIGHT if endpoint else ROWS_AT_ONCE


@dataclass(frozen=True)
class Held:
    """A call that is ours to ask while its lease lasts. ``tried``: this run's requests that met a fault."""

    call_id: int
    comparison_id: int
    lease: uuid.UUID
    shown: Shown
    tried: int
    texts: PairTexts


@dataclass(frozen=True)
class Outcome:
    """What became of a call: its state now, and the Attempt to write (None for a rule).

    ``state`` pending means ask again, after ``wait_seconds``. A ``stop_reason`` ends the run;
    ``busy`` makes the whole endpoint wait; ``plain_text_needed`` was found out about the server.
    """

    held: Held
    state: CallState
    attempt: Mapping[str, Any] | None = None
    error: str = ""
    choices: Mapping[str, Choice] = field(default_factory=dict)
    rationale: str = ""
    prompt_sha256: str = ""
    wait_seconds: float = 0.0
    stop_reason: str = ""
    busy: bool = False
    plain_text_needed: bool = False


def begin(run_id: int, patience: Patience) -> Bout | None:
    """What a worker needs to work this run; None where it is not at work."""
    related = ("judge__rubric_version__rubric", "judge__endpoint", "judge__evaluation")
    run = Run.objects.select_related(*related).filter(pk=run_id, state=RunState.RUNNING).first()
    if run is None or run.judge.rubric_version is None:
        return None
    version = run.judge.rubric_version
    return Bout(
        run=run,
        judge=run.judge,
        spec=version.spec(),
        rater_id=Rater.objects.values_list("pk", flat=True).get(judge=run.judge),
        aspect_ids=dict(version.asked.values_list("aspect__key", "aspect_id")),
        patience=patience,
    )


# ---- claiming ------------------------------------------------------------------------------
# Calls of runs never come with an import, so `all_rows` spares the join that hides unfinished ones.


@transaction.atomic
def claim(bout: Bout, room: int, held: int) -> Claimed[Held]:
    """Up to ``room`` calls under a new lease; ``held`` are those that this bout holds already."""
    if not Run.objects.filter(pk=bout.run.pk, state=RunState.RUNNING).exists():
        return Claimed()
    room, wait = room_at_endpoint(bout, room, held)
    if wait is not None:
        return Claimed(wait=wait if wait <= WAIT_AT_MOST_SECONDS else None)
    lease = uuid.uuid4()
    # On SQLite there is no row lock to skip, and this is a conditional UPDATE.
    due = waiting(bout).filter(Q(not_before__isnull=True) | Q(not_before__lte=Now())).order_by("pk")
    taken = due.select_for_update(skip_locked=True)[:room]
    if not Call.all_rows.filter(pk__in=taken.values("pk")).update(
        state=CallState.RUNNING, lease=lease, lease_until=Now() + LEASE
    ):
        return Claimed(wait=seconds_until_due(bout))
    return Claimed(with_texts(bout, lease))


def waiting(bout: Bout) -> Any:
    return Call.all_rows.filter(run=bout.run, state=CallState.PENDING)


def room_at_endpoint(bout: Bout, room: int, held: int) -> tuple[int, float | None]:
    """How many more requests the endpoint may have in flight, from all workers together.

    Zero comes with the seconds after which to look again.
    """
    if bout.judge.endpoint is None:
        return room, None
    # Locked, so that two workers do not both see the last free place.
    endpoint = Endpoint.objects.select_for_update().annotate(now=Now()).get(pk=bout.judge.endpoint.pk)
    if endpoint.paused_until is not None and endpoint.paused_until > endpoint.now:
        return 0, (endpoint.paused_until - endpoint.now).total_seconds()
    running = Call.all_rows.filter(state=CallState.RUNNING, judge__endpoint=endpoint, lease_until__gt=Now()).count()
    room -= max(running - held, 0)
    return (room, None) if room > 0 else (0, 0.2)


def seconds_until_due(bout: Bout) -> float | None:
    """When the next call of this run may be asked; None where none waits, or none soon enough."""
    soonest = waiting(bout).aggregate(count=Count("pk"), due=Min("not_before"))
    if not soonest["count"]:
        return None
    seconds = (soonest["due"] - timezone.now()).total_seconds() if soonest["due"] else 0.0
    return max(seconds, 0.05) if seconds <= WAIT_AT_MOST_SECONDS else None


def with_texts(bout: Bout, lease: uuid.UUID) -> list[Held]:
    texts = ("comparison__query", "comparison__response_a", "comparison__response_b")
    mine = Call.all_rows.filter(run=bout.run, state=CallState.RUNNING, lease=lease).select_related(*texts)
    calls = [(call, call.comparison) for call in mine.order_by("pk")]
    tried = tries(bout, [call.pk for call, _ in calls])
    return [
        Held(call.pk, comparison.pk, lease, Shown(call.shown), tried.get(call.pk, 0), texts_of(comparison))
        for call, comparison in calls
        if comparison is not None
    ]


def tries(bout: Bout, call_ids: Sequence[int]) -> dict[int, int]:
    """Call → requests of this run that met a fault."""
    faults = (AttemptOutcome.RETRY, AttemptOutcome.LOST)
    attempts = Attempt.objects.filter(run=bout.run, call__in=call_ids, outcome__in=faults)
    return dict(attempts.order_by().values_list("call_id").annotate(Count("pk")))


def refresh(held: Mapping[int, uuid.UUID]) -> None:
    """Keep what is still in flight ours for another while."""
    mine = Call.all_rows.filter(pk__in=list(held), lease__in=set(held.values()), state=CallState.RUNNING)
    mine.update(lease_until=Now() + LEASE)


# ---- storing -------------------------------------------------------------------------------


def store(bout: Bout, outcomes: Sequence[Outcome]) -> None:
    """Every Attempt, whoever holds the lease by now; the rest only where the answer still counts."""
    with transaction.atomic():
        ids = [outcome.held.call_id for outcome in outcomes]
        calls = {call.pk: call for call in Call.all_rows.select_for_update().filter(pk__in=ids).order_by("pk")}
        write_attempts(bout, outcomes)
        counting = [outcome for outcome in outcomes if still_counts(calls[outcome.held.call_id], outcome)]
        for outcome in counting:
            settle(outcome)
        write_verdicts(bout, counting, calls)
        pause_endpoint(bout, outcomes)
        if any(outcome.plain_text_needed for outcome in outcomes):
            remember_mode(bout.judge, AskingMode.TEXT)
        for reason in filter(None, (outcome.stop_reason for outcome in outcomes)):
            stop(bout.run, reason)


def write_attempts(bout: Bout, outcomes: Iterable[Outcome]) -> None:
    paid = [outcome for outcome in outcomes if outcome.attempt is not None]
    numbers = last_numbers([outcome.held.call_id for outcome in paid])
    rows = []
    for outcome in paid:
        call_id = outcome.held.call_id
        numbers[call_id] = numbers.get(call_id, 0) + 1
        rows.append(Attempt(call_id=call_id, run=bout.run, number=numbers[call_id], **outcome.attempt or {}))
    Attempt.objects.bulk_create(rows)


def last_numbers(call_ids: Sequence[int]) -> dict[int, int]:
    found = Attempt.objects.filter(call__in=call_ids).order_by().values_list("call_id")
    return dict(found.annotate(Max("number")))


def still_counts(call: Call, outcome: Outcome) -> bool:
    """Whether this outcome decides about the call.

    It does under our lease. A lease that ran out lost us the call, but a paid answer is taken as
    long as nobody else has it in flight: it would only be bought a second time.
    """
    if call.state == CallState.RUNNING:
        return call.lease == outcome.held.lease
    return call.state in (CallState.PENDING, CallState.CANCELLED) and outcome.state not in OPEN_CALL_STATES


def settle(outcome: Outcome) -> None:
    later = Now() + timedelta(seconds=outcome.wait_seconds) if outcome.wait_seconds else None
    Call.all_rows.filter(pk=outcome.held.call_id).update(
        state=outcome.state,
        error=outcome.error,
        rationale=outcome.rationale,
        prompt_sha256=outcome.prompt_sha256,
        lease=None,
        lease_until=None,
        not_before=later,
    )


def write_verdicts(bout: Bout, outcomes: Iterable[Outcome], calls: Mapping[int, Call]) -> None:
    offered = {aspect.key: aspect.choices for aspect in bout.spec.aspects}
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    rows = []
    for outcome in outcomes:
        held, sample = outcome.held, calls[outcome.held.call_id].sample
        for key, choice in outcome.choices.items():
            if choice not in offered[key]:
                raise ValueError(f"{choice} is not offered for {key}")
            what = (bout.rater_id, held.comparison_id, bout.aspect_ids[key], sample, held.shown.value, choice.value)
            rows.append((now, *what, held.call_id, Stage.FIRST.value, False, "", "", ""))
    if rows:
        insert_verdicts(rows)
        Rater.objects.filter(pk=bout.rater_id).update(verdicts_changed_at=Now())


VERDICT_COLUMNS: Final = (
    *("created_at", "rater_id", "comparison_id", "aspect_id", "sample", "shown", "choice"),
    *("call_id", "stage", "inconsistent", "rationale", "note", "reason"),
)


def insert_verdicts(rows: Sequence[tuple[Any, ...]]) -> None:
    """Past the ORM: an object for each verdict took more time than all else that storing does."""
    table = connection.ops.quote_name(Verdict._meta.db_table)
    marks = ", ".join(["%s"] * len(VERDICT_COLUMNS))
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} ({', '.join(VERDICT_COLUMNS)}) VALUES ({marks})", rows)


def pause_endpoint(bout: Bout, outcomes: Iterable[Outcome]) -> None:
    """A server that turns one request away is left alone by all, as long as it asked for."""
    waits = [outcome.wait_seconds for outcome in outcomes if outcome.busy]
    if waits and bout.judge.endpoint is not None:
        until = Now() + timedelta(seconds=min(waits))
        endpoint = Endpoint.objects.filter(pk=bout.judge.endpoint.pk)
        endpoint.filter(paused_until__isnull=True).update(paused_until=until)
        endpoint.update(paused_until=Greatest("paused_until", until))


def remember_mode(judge: Judge, mode: AskingMode) -> None:
    """What an automatic judge's server takes, found out once and kept with the judge."""
    judge = Judge.objects.select_for_update().get(pk=judge.pk)
    if judge.settings.get(ASKED_AS) != mode:
        judge.settings[ASKED_AS] = mode.value
        judge.save(update_fields=["settings"])
        record("found out", judge, user=None, evaluation=judge.evaluation, after={ASKED_AS: mode.value})


# ---- sweeping ------------------------------------------------------------------------------


def put_back_expired() -> int:
    """Calls whose lease ran out wait again; a request that was in flight is written down as lost."""
    count = 0
    while found := put_back_some():
        count += found
    return count


def put_back_some() -> int:
    with paced(), transaction.atomic():
        expired = Call.all_rows.filter(state=CallState.RUNNING, lease_until__lt=Now()).select_related("judge", "run")
        calls = list(expired.select_for_update(of=("self",), skip_locked=True).order_by("pk")[:ROWS_AT_ONCE])
        write_lost([(call, call.run) for call in calls if call.run and call.judge.kind == JudgeKind.LLM])
        mine = Call.all_rows.filter(pk__in=[call.pk for call in calls])
        mine.update(state=CallState.PENDING, lease=None, lease_until=None)
        lost = Count("attempts", filter=Q(attempts__outcome=AttemptOutcome.LOST))
        worn = mine.annotate(lost=lost).filter(lost__gte=LOST_AT_MOST).values_list("pk", flat=True)
        mine.filter(pk__in=list(worn)).update(
            state=CallState.FAILED, error=f"The worker died {LOST_AT_MOST} times while this was asked."
        )
    return len(calls)


def write_lost(calls: Sequence[tuple[Call, Run]]) -> None:
    numbers = last_numbers([call.pk for call, _ in calls])
    Attempt.objects.bulk_create(
        Attempt(
            call=call,
            run=run,
            number=numbers.get(call.pk, 0) + 1,
            outcome=AttemptOutcome.LOST,
            latency_ms=0,
            error="The worker was killed before the answer was stored.",
        )
        for call, run in calls
    )


def finish_ended_runs() -> None:
    """Runs whose last call was settled by a worker that died before it could say so."""
    calls = Call.all_rows.filter(run=OuterRef("pk"), state__in=OPEN_CALL_STATES)
    for run in Run.objects.filter(~Exists(calls), state=RunState.RUNNING).select_related("evaluation"):
        finish(run)


def runs_to_nudge() -> list[int]:
    """Runs that have something to do and nobody doing it."""
    calls = Call.all_rows.filter(run=OuterRef("pk"))
    due = calls.filter(Q(not_before__isnull=True) | Q(not_before__lte=Now()), state=CallState.PENDING)
    worked = calls.filter(state=CallState.RUNNING, lease_until__gt=Now())
    paused = Q(judge__endpoint__paused_until__gt=Now())
    idle = Q(Exists(due) & ~Exists(worked), state=RunState.RUNNING) & ~paused
    return list(Run.objects.filter(Q(state=RunState.PLANNING) | idle).order_by("pk").values_list("pk", flat=True))
