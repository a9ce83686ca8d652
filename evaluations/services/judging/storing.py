"""What became of calls, written down once: every Attempt, and the verdicts that still count."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Max
from django.db.models.functions import Greatest, Now
from django.utils import timezone

from evaluations.domain import OPEN_CALL_STATES, CallState, ReplyShape, Stage
from evaluations.models import Attempt, Call, Endpoint, Judge, Rater, Verdict
from evaluations.services.judging.running import stop
from evaluations.services.judging.working import Bout, Outcome
from evaluations.services.recording import record


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
        for shape in {outcome.shape_found for outcome in outcomes if outcome.shape_found}:
            freeze_shape(bout.judge, shape)
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


def freeze_shape(judge: Judge, shape: ReplyShape) -> None:
    """What an automatic judge's server takes, found out once and kept with the judge."""
    if Judge.objects.filter(pk=judge.pk, asked_as="").update(asked_as=shape):
        record("found out", judge, user=None, evaluation=judge.evaluation, after={"asked_as": shape.value})
