"""The re-parse of stored replies by the current parser, at no cost.

Its progress is kept in events, from which the next worker continues.
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

from django.db import transaction
from django.db.models import Count, Max, QuerySet
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.choices import ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import AttemptOutcome, AttemptStep, CallState, JudgeKind
from evaluations.domain.rubrics import RubricSpec
from evaluations.domain.texts import PairTexts, ResponseTexts
from evaluations.jobs.claims import end_claim
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.jobs.queue import enqueue_job, has_open_job
from evaluations.judges.calls.answer_rows import delete_answers, write_answers
from evaluations.judges.calls.conversations import (
    SUBJECT_RELATIONS,
    StoredAttempt,
    call_subject,
    join_aspect_replies,
    load_attempts,
)
from evaluations.judges.calls.work_session import CallOutcome, ClaimedCall, WorkSession, make_work_session
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.bulk import update_many
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Reparse, Run
from evaluations.models.transactions import SHORT_TRANSACTION_ROWS, is_time_up, pause_after_transaction
from evaluations.models.users import User
from evaluations.models.verdicts import Score, Verdict
from evaluations.replies.reply_format import asks_verdict_alone
from evaluations.replies.reply_parser import (
    DICTATED_ERROR,
    ParsedReply,
    RawReply,
    UnparsedReply,
    parse_reply,
    reply_state,
)

REPARSE: Final = "reparse"  # the kind of job
REPARSE_BEGAN: Final = "started re-parsing replies"
REPARSE_PROGRESS: Final = "re-parsed some replies"
REPARSE_ENDED: Final = "re-parsed replies"
# The states that the parser decides on; the server decided on the others.
REPARSABLE_STATES: Final = (CallState.ANSWERED, CallState.UNREADABLE, CallState.SUSPECT, CallState.TRUNCATED)
PARSED_OUTCOMES: Final = (AttemptOutcome.ANSWERED, AttemptOutcome.UNREADABLE, AttemptOutcome.TRUNCATED)
REPARSE_RELATIONS: Final = (*SUBJECT_RELATIONS, "copied_from")

Values = Mapping[str, str | float]  # aspect key → choice or score


@transaction.atomic
def begin_reparse(judge: Judge, *, user: User | None) -> Reparse:
    """Begin to parse this judge's stored replies again; a worker continues."""
    if judge.kind != JudgeKind.LLM:
        raise InputRefused(f"“{judge.name}” has no stored replies: it is not an LLM judge.")
    Judge.objects.select_for_update().get(pk=judge.pk)
    latest = find_latest_reparse(judge)
    if latest and has_open_job(REPARSE, latest.pk):
        raise InputRefused(f"The replies of “{judge.name}” are already being re-parsed. Wait until that is done.")
    totals = reparsable_calls(judge).aggregate(calls=Count("pk"), last=Max("pk"))
    if not totals["calls"]:
        raise InputRefused(f"“{judge.name}” has no stored replies yet. Run it first.")
    reparse = Reparse.objects.create(judge=judge, user=user, calls=totals["calls"])
    record_event(REPARSE_BEGAN, judge, user=user, evaluation=judge.evaluation, after={"calls": reparse.calls})
    enqueue_job(REPARSE, reparse.pk, evaluation=judge.evaluation, total=totals["last"])
    return reparse


def reparse_for_a_while(claim: JobClaim) -> bool:
    """Read replies until time is up; whether all are read. The job's position is the last call that was read."""
    reading = ReplyReparse(claim, Reparse.objects.select_related("judge__evaluation", "user").get(pk=claim.job.subject))
    while not is_time_up(claim.until):
        with pause_after_transaction():
            if not reading.read_some():
                return True
    return False


register_job_kind(JobKind(REPARSE, reparse_for_a_while))


def find_latest_reparse(judge: Judge) -> Reparse | None:
    return Reparse.objects.filter(judge=judge).select_related("user").order_by("-pk").first()


def reparsable_calls(judge: Judge) -> "QuerySet[Call]":
    return Call.all_rows.filter(judge=judge, state__in=REPARSABLE_STATES)


def find_latest_run(judge: Judge) -> Run:
    related = ("judge__rubric_version__rubric", "judge__endpoint", "judge__evaluation")
    return Run.objects.select_related(*related).filter(judge=judge).latest("pk")


class ReplyReparse:
    """A re-parse of a judge's replies, with its position and results so far."""

    def __init__(self, claim: JobClaim, reparse: Reparse) -> None:
        self.claim = claim
        self.reparse = reparse
        self.judge = reparse.judge
        self.session = make_work_session(find_latest_run(self.judge), RetryPolicy())

    @transaction.atomic
    def read_some(self) -> bool:
        """Read the next calls once more; False once there are none left."""
        later = reparsable_calls(self.judge).filter(pk__gt=self.claim.job.position).order_by("pk")
        locked = later.select_related(*REPARSE_RELATIONS).select_for_update(of=("self",))
        calls = list(locked[:SHORT_TRANSACTION_ROWS])
        self.claim.heartbeat(calls[-1].pk if calls else None)
        if not calls:
            end_claim(self.claim)
            self.record_progress(REPARSE_ENDED)
            return False
        replies = load_attempts([call.copied_from_id or call.pk for call in calls], PARSED_OUTCOMES)
        stored = load_stored_values([call.pk for call in calls])
        results = [
            reparse_call(self.session, call, replies.get(call.copied_from_id or call.pk, ()), stored.get(call.pk, {}))
            for call in calls
        ]
        self.count(results)
        if outcomes := [result.outcome for result in results if result.outcome]:
            correct_answers(self.session, outcomes)
            self.record_progress(REPARSE_PROGRESS)
        return True

    def count(self, results: Sequence["ReparseResult"]) -> None:
        counts, changes = Counter(self.reparse.counts), Counter(self.reparse.changes)
        for result in results:
            counts[result.word] += 1
            changes.update(result.changes)
        self.reparse.counts, self.reparse.changes = dict(counts), dict(changes)
        self.reparse.save(update_fields=["counts", "changes"])

    def record_progress(self, verb: str) -> None:
        progress = {name: getattr(self.reparse, name) for name in ("calls", "counts", "changes")}
        record_event(verb, self.judge, user=self.reparse.user, evaluation=self.judge.evaluation, after=progress)


def correct_answers(session: WorkSession, outcomes: Sequence[CallOutcome]) -> None:
    """Replace stored answers with the newly parsed ones."""
    ids, now = [outcome.call.call_id for outcome in outcomes], timezone.now()
    delete_answers(ids)
    rows = [
        (outcome.call.call_id, outcome.state.value, outcome.error, outcome.rationale, outcome.repaired)
        for outcome in outcomes
    ]
    update_many(Call, ("id", "state", "error", "rationale", "repaired"), rows)
    write_answers(session, outcomes, now)


@dataclass(frozen=True)
class ReplyReading:
    """A stored reply as the current parser reads it, and the resulting state of its call."""

    step: AttemptStep
    read: ParsedReply | UnparsedReply
    state: CallState

    @property
    def values(self) -> Values:
        """The values to store: none for a suspect verdict."""
        if isinstance(self.read, UnparsedReply) or self.state != CallState.ANSWERED:
            return {}
        return {key: str(choice) for key, choice in self.read.choices.items()} | dict(self.read.scores)


@dataclass(frozen=True)
class ReparseResult:
    """The result of one call: a word for the counts, and the outcome if it changed."""

    word: str
    outcome: CallOutcome | None = None
    changes: tuple[str, ...] = ()


def load_stored_values(call_ids: Sequence[int]) -> dict[int, dict[str, str | float]]:
    """Call → aspect key → the stored choice or score."""
    values: dict[int, dict[str, str | float]] = {}
    choices = Verdict.all_rows.filter(call__in=call_ids).values_list("call_id", "aspect__key", "choice")
    scores = Score.all_rows.filter(call__in=call_ids).values_list("call_id", "aspect__key", "value")
    stored: Iterable[tuple[int | None, str, str | float]] = chain(choices, scores)
    for pk, key, value in stored:
        values.setdefault(pk or 0, {})[key] = value
    return values


def reparse_call(session: WorkSession, call: Call, replies: Sequence[StoredAttempt], stored: Values) -> ReparseResult:
    """A reading that matches the stored values changes nothing; otherwise the latest readable reply counts."""
    readings = parse_call_replies(session, call, replies, stored)
    readable = [reading for reading in readings if isinstance(reading.read, ParsedReply)]
    if not readings or any((reading.state, reading.values) == (call.state, stored) for reading in readable):
        return ReparseResult("unchanged")
    if not readable and not stored and call.state != CallState.SUSPECT:
        return ReparseResult("unchanged")
    last = (readable or readings)[-1]
    words = {CallState.ANSWERED: "corrected" if stored else "answered now", CallState.SUSPECT: "suspect now"}
    word = words.get(last.state, "unreadable now")
    return ReparseResult(word, outcome_of_reading(call, last), describe_changes(stored, last.values))


def parse_call_replies(
    session: WorkSession, call: Call, replies: Sequence[StoredAttempt], stored: Values, *, is_confirmed: bool = False
) -> list[ReplyReading]:
    """The readings of stored replies that give a whole verdict; with one aspect per call, all replies joined as one.

    ``is_confirmed``: a person confirmed this call, although a judged text dictated its reply.
    """
    parse = partial(parse_conversation_replies, session, call, is_confirmed=is_confirmed)
    if not session.judge.one_aspect_per_call:
        return list(parse(session.spec, replies))
    chosen: dict[str, ReplyReading] = {}
    for key in session.spec.output_order:
        readings = list(parse(session.spec_of(key), [reply for reply in replies if reply.aspect == key]))
        readable = [reading for reading in readings if isinstance(reading.read, ParsedReply)]
        agreeing = [reading for reading in readable if key in stored and reading.values == {key: stored[key]}]
        if not readings:  # the call ended before this aspect was answered
            return []
        chosen[key] = (agreeing or readable or readings)[-1]
    return [join_aspect_readings(session, chosen)]


def join_aspect_readings(session: WorkSession, by_aspect: Mapping[str, ReplyReading]) -> ReplyReading:
    """The reading of a whole call: unreadable or suspect if one aspect is."""
    read: dict[str, ParsedReply] = {}
    for key, reading in by_aspect.items():
        if isinstance(reading.read, UnparsedReply):
            error = f"{session.aspect_names[key]}: {reading.read.error}"
            return ReplyReading(reading.step, UnparsedReply(reading.read.state, error), reading.state)
        read[key] = reading.read
    is_suspect = any(reading.state == CallState.SUSPECT for reading in by_aspect.values())
    is_repaired = any(reading.step == AttemptStep.REPAIR for reading in by_aspect.values())
    return ReplyReading(
        AttemptStep.REPAIR if is_repaired else AttemptStep.ASK,
        join_aspect_replies(session, read),
        CallState.SUSPECT if is_suspect else CallState.ANSWERED,
    )


def parse_conversation_replies(
    session: WorkSession, call: Call, spec: RubricSpec, replies: Sequence[StoredAttempt], *, is_confirmed: bool
) -> Iterator[ReplyReading]:
    """Each reply that gives a verdict, read within its conversation."""
    shown = ShownOrder(call.shown)
    before: list[str] = []

    def judged() -> PairTexts | ResponseTexts:
        return call_subject(call).judged_texts()

    for reply in replies:
        if reply.step == AttemptStep.ASK:
            before = []
        if not session.two_steps or asks_verdict_alone(reply.step, before):
            raw = RawReply(reply.raw, reply.finish_reason)
            read = parse_reply(spec, shown, raw, step=reply.step, before=tuple(before), judged=judged)
            state = reply_state(read, (*before, reply.raw), judged)
            counts = state == CallState.SUSPECT and (is_confirmed or is_confirmed_call(call))
            yield ReplyReading(reply.step, read, CallState.ANSWERED if counts else state)
        before.append(reply.raw)


def is_confirmed_call(call: Call) -> bool:
    """Whether a person confirmed the call, or the call that it was copied from."""
    return call.confirmed_at is not None or (call.copied_from is not None and call.copied_from.confirmed_at is not None)


def describe_changes(old: Values, new: Values) -> tuple[str, ...]:
    """“A → tie” per aspect that differs; scores are only called “a score”, since there are too many values."""
    return tuple(
        f"{format_stored_value(old.get(key))} → {format_stored_value(new.get(key))}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    )


def format_stored_value(value: str | float | None) -> str:
    return "none" if value is None else value if isinstance(value, str) else "a score"


def outcome_of_reading(call: Call, reading: ReplyReading) -> CallOutcome:
    """The outcome to store for a call that no worker holds."""
    shown, no_texts = ShownOrder(call.shown), ResponseTexts((), ())  # nothing is sent
    claimed = ClaimedCall(call.pk, call.comparison_id, uuid.uuid4(), shown, 0, no_texts, call.response_id, call.sample)
    if isinstance(reading.read, UnparsedReply):
        return CallOutcome(claimed, reading.state, error=reading.read.error)
    if reading.state == CallState.SUSPECT:
        return CallOutcome(claimed, reading.state, error=DICTATED_ERROR)
    return CallOutcome(
        claimed,
        reading.state,
        choices=reading.read.choices,
        scores=reading.read.scores,
        rationale=reading.read.rationale,
        repaired=reading.step == AttemptStep.REPAIR,
    )
