"""Stored replies are parsed again by the current parser, at no cost.

Progress is kept in events, from which the next worker continues."""

import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.choices import ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import AttemptOutcome, AttemptStep, CallState, JudgeKind
from evaluations.domain.rubrics import RubricSpec
from evaluations.domain.texts import PairTexts, ResponseTexts
from evaluations.jobs.nudges import WorkerTask, nudge
from evaluations.judges.calls.answer_rows import write_answers
from evaluations.judges.calls.conversations import join_aspect_replies
from evaluations.judges.calls.work_session import CallOutcome, ClaimedCall, WorkSession, make_work_session
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.bulk import update_many
from evaluations.models.evaluations import Event
from evaluations.models.judged_texts import judged_texts
from evaluations.models.judges import Judge
from evaluations.models.runs import Attempt, Call, Run
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
from evaluations.verdicts.packed_votes import delete_packed_calls

REPARSE_BEGAN: Final = "began to read replies again"
REPARSE_PROGRESS: Final = "read some replies again"
REPARSE_ENDED: Final = "read replies again"
# The states that a reader decides between; the others were decided by the server.
REPARSABLE_STATES: Final = (CallState.ANSWERED, CallState.UNREADABLE, CallState.SUSPECT, CallState.TRUNCATED)
PARSED_OUTCOMES: Final = (AttemptOutcome.ANSWERED, AttemptOutcome.UNREADABLE, AttemptOutcome.TRUNCATED)
# Longer than any stretch of work: what did not move for so long has nobody at it.
STALLED_AFTER: Final = timedelta(seconds=60)
MAX_EVENTS_SEARCHED: Final = 10_000  # events
NO_TEXTS: Final = ResponseTexts((), ())  # nothing is sent
REPARSE_RELATIONS: Final = (
    *("comparison__query", "comparison__response_a", "comparison__response_b", "response__query"),
    "copied_from",
)

Values = Mapping[str, str | float]  # aspect key → choice or score


# ---- beginning and going on ------------------------------------------------------------------


@transaction.atomic
def begin_reparse(judge: Judge, *, user: User | None) -> int:
    """Begin to parse this judge's stored replies again, for a worker to continue; returns the number of calls."""
    if judge.kind != JudgeKind.LLM:
        raise InputRefused(f"“{judge.name}” has no stored replies: they come from models.")
    Judge.objects.select_for_update().get(pk=judge.pk)
    if is_reparse_running(judge):
        raise InputRefused(f"The replies of “{judge.name}” are being read again already: wait for its end.")
    calls = reparsable_calls(judge).count()
    if not calls:
        raise InputRefused(f"“{judge.name}” has no stored replies yet: run it first.")
    record_event(REPARSE_BEGAN, judge, user=user, evaluation=judge.evaluation, after={"calls": calls})
    return calls


def start_reparse(judge: Judge, *, user: User | None) -> int:
    """Begin it and wake a worker, who continues it; returns the number of calls."""
    calls = begin_reparse(judge, user=user)
    nudge(WorkerTask.REREAD_REPLIES, judge.pk)
    return calls


def continue_reparse(judge_id: int, *, seconds: float | None = None) -> bool:
    """Parse for ``seconds``, or to the end; returns whether more is left."""
    judge = Judge.objects.select_related("evaluation").get(pk=judge_id)
    event = last_reparse_event(judge)
    if event is None or event.verb == REPARSE_ENDED:
        return False
    until = None if seconds is None else time.monotonic() + seconds
    reading = restore_reparse(judge, event)
    while not is_time_up(until):
        with pause_after_transaction():
            if not reading.read_some():
                return False
    reading.tell(REPARSE_PROGRESS)
    return True


def last_reparse_event(judge: Judge) -> Event | None:
    """The latest event of re-parsing this judge's replies; None before the first."""
    told = Event.objects.filter(evaluation=judge.evaluation_id, object_type="judge", object_id=judge.pk)
    return (
        told.filter(verb__in=(REPARSE_BEGAN, REPARSE_PROGRESS, REPARSE_ENDED))
        .select_related("user")
        .order_by("-pk")
        .first()
    )


def is_reparse_running(judge: Judge) -> bool:
    event = last_reparse_event(judge)
    return event is not None and event.verb != REPARSE_ENDED


def judges_with_stalled_reparse() -> list[int]:
    """Judges whose re-parse has not ended, without a worker on it."""
    newest = Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    lately = Event.objects.filter(
        pk__gt=newest - MAX_EVENTS_SEARCHED,
        object_type="judge",
        verb__in=(REPARSE_BEGAN, REPARSE_PROGRESS, REPARSE_ENDED),
    )
    last = {
        judge: (verb, at) for judge, verb, at in lately.order_by("pk").values_list("object_id", "verb", "created_at")
    }
    before = timezone.now() - STALLED_AFTER
    return [judge for judge, (verb, at) in last.items() if judge and verb != REPARSE_ENDED and at < before]


def reparsable_calls(judge: Judge) -> "QuerySet[Call]":
    return Call.all_rows.filter(judge=judge, state__in=REPARSABLE_STATES)


def latest_run_of_judge(judge: Judge) -> Run:
    related = ("judge__rubric_version__rubric", "judge__endpoint", "judge__evaluation")
    return Run.objects.select_related(*related).filter(judge=judge).latest("pk")


def restore_reparse(judge: Judge, event: Event) -> "ReplyReparse":
    """The re-reading as its last Event left it."""
    told = event.after
    return ReplyReparse(
        judge=judge,
        bout=make_work_session(latest_run_of_judge(judge), RetryPolicy()),
        user=event.user,
        calls=told["calls"],
        up_to=told.get("up_to", 0),
        counts=Counter(told.get("counts", {})),
        changes=Counter(told.get("changes", {})),
    )


# ---- reading -------------------------------------------------------------------------------


@dataclass
class ReplyReparse:
    """One re-parse of a judge's replies, with its position and what it found so far."""

    judge: Judge
    bout: WorkSession
    user: User | None
    calls: int
    up_to: int
    counts: Counter[str]
    changes: Counter[str]

    @transaction.atomic
    def read_some(self) -> bool:
        """Read the next calls once more; False once there are none left."""
        rest = reparsable_calls(self.judge).filter(pk__gt=self.up_to).select_related(*REPARSE_RELATIONS).order_by("pk")
        calls = list(rest.select_for_update(of=("self",))[:SHORT_TRANSACTION_ROWS])
        if not calls:
            self.tell(REPARSE_ENDED)
            return False
        replies = load_replies([call.copied_from_id or call.pk for call in calls])
        held = load_stored_values([call.pk for call in calls])
        found = [
            reparse_call(self.bout, call, replies.get(call.copied_from_id or call.pk, ()), held.get(call.pk, {}))
            for call in calls
        ]
        self.up_to = calls[-1].pk
        self.count(found)
        if outcomes := [one.outcome for one in found if one.outcome]:
            correct_answers(self.bout, outcomes)
            self.tell(REPARSE_PROGRESS)
        return True

    def count(self, found: Sequence["ReparseResult"]) -> None:
        for one in found:
            self.counts[one.word] += 1
            self.changes.update(one.changes)

    def tell(self, verb: str) -> None:
        told = {"calls": self.calls, "up_to": self.up_to, "counts": dict(self.counts), "changes": dict(self.changes)}
        record_event(verb, self.judge, user=self.user, evaluation=self.judge.evaluation, after=told)


def correct_answers(bout: WorkSession, outcomes: Sequence[CallOutcome]) -> None:
    """Replace stored answers with the newly parsed ones."""
    ids, now = [outcome.held.call_id for outcome in outcomes], timezone.now()
    delete_packed_calls(ids)
    Verdict.all_rows.filter(call__in=ids).delete()
    Score.all_rows.filter(call__in=ids).delete()
    columns = ("id", "state", "error", "rationale", "repaired")
    rows = [(one.held.call_id, one.state.value, one.error, one.rationale, one.repaired) for one in outcomes]
    update_many(Call, columns, rows)
    write_answers(bout, outcomes, now)


@dataclass(frozen=True)
class StoredReplyText:
    """A stored reply: the step that it answers, and why the model stopped."""

    step: AttemptStep
    raw: str
    finish_reason: str
    aspect: str = ""  # the one that it was asked for; empty where for all


@dataclass(frozen=True)
class ReplyReading:
    """How today's reader reads one stored reply, and the state that its call takes by it."""

    step: AttemptStep
    read: ParsedReply | UnparsedReply
    state: CallState

    @property
    def values(self) -> Values:
        """What is stored of it: a suspect verdict is not."""
        if isinstance(self.read, UnparsedReply) or self.state != CallState.ANSWERED:
            return {}
        return {key: str(choice) for key, choice in self.read.choices.items()} | dict(self.read.scores)


@dataclass(frozen=True)
class ReparseResult:
    """What a second look at one call found: a word for the count, and the outcome where it differs."""

    word: str
    outcome: CallOutcome | None = None
    changes: tuple[str, ...] = ()


def load_replies(call_ids: Sequence[int]) -> dict[int, list[StoredReplyText]]:
    """Call → the model's replies, oldest first."""
    found: dict[int, list[StoredReplyText]] = {}
    rows = Attempt.objects.filter(call__in=call_ids, outcome__in=PARSED_OUTCOMES).order_by("call_id", "number")
    for pk, step, *said in rows.values_list("call_id", "step", "raw", "finish_reason", "aspect"):
        found.setdefault(pk, []).append(StoredReplyText(AttemptStep(step), *said))
    return found


def load_stored_values(call_ids: Sequence[int]) -> dict[int, dict[str, str | float]]:
    """Call → aspect key → the choice or score that is stored now."""
    found: dict[int, dict[str, str | float]] = {}
    choices = Verdict.all_rows.filter(call__in=call_ids).values_list("call_id", "aspect__key", "choice")
    scores = Score.all_rows.filter(call__in=call_ids).values_list("call_id", "aspect__key", "value")
    for pk, key, choice in choices:
        found.setdefault(pk or 0, {})[key] = choice
    for pk, key, value in scores:
        found.setdefault(pk or 0, {})[key] = value
    return found


def reparse_call(bout: WorkSession, call: Call, said: Sequence[StoredReplyText], held: Values) -> ReparseResult:
    """A reading that agrees with what is stored leaves it; else the latest that can be read counts."""
    readings = parse_call_replies(bout, call, said, held)
    able = [one for one in readings if isinstance(one.read, ParsedReply)]
    if not readings or any((one.state, one.values) == (call.state, held) for one in able):
        return ReparseResult("unchanged")
    if not able and not held and call.state != CallState.SUSPECT:
        return ReparseResult("unchanged")
    last = (able or readings)[-1]
    words = {CallState.ANSWERED: "corrected" if held else "answered now", CallState.SUSPECT: "suspect now"}
    word = words.get(last.state, "unreadable now")
    return ReparseResult(word, outcome_of_reading(call, last), describe_changes(held, last.values))


def parse_call_replies(
    bout: WorkSession, call: Call, said: Sequence[StoredReplyText], held: Values, *, is_confirmed: bool = False
) -> list[ReplyReading]:
    """The current parser's reading of stored replies: each that gives a whole verdict, or all aspects' replies as one.

    ``is_confirmed``: a person decided that this call counts, though a judged text dictated its reply.
    """
    if not bout.judge.one_aspect_per_call:
        return list(parse_conversation_replies(bout, bout.spec, call, said, is_confirmed=is_confirmed))
    chosen: dict[str, ReplyReading] = {}
    for key in bout.spec.output_order:
        about_it = [one for one in said if one.aspect == key]
        readings = list(parse_conversation_replies(bout, bout.spec_of(key), call, about_it, is_confirmed=is_confirmed))
        able = [one for one in readings if isinstance(one.read, ParsedReply)]
        agreeing = [one for one in able if key in held and one.values == {key: held[key]}]
        if not readings:  # the call ended before this aspect was answered
            return []
        chosen[key] = (agreeing or able or readings)[-1]
    return [join_aspect_readings(bout, chosen)]


def join_aspect_readings(bout: WorkSession, by_aspect: Mapping[str, ReplyReading]) -> ReplyReading:
    """One reading of the whole call: unreadable where one aspect is, suspect where one is."""
    read: dict[str, ParsedReply] = {}
    for key, one in by_aspect.items():
        if isinstance(one.read, UnparsedReply):
            error = f"{bout.aspect_names[key]}: {one.read.error}"
            return ReplyReading(one.step, UnparsedReply(one.read.state, error), one.state)
        read[key] = one.read
    is_suspect = any(one.state == CallState.SUSPECT for one in by_aspect.values())
    is_repaired = any(one.step == AttemptStep.REPAIR for one in by_aspect.values())
    return ReplyReading(
        AttemptStep.REPAIR if is_repaired else AttemptStep.ASK,
        join_aspect_replies(bout, read),
        CallState.SUSPECT if is_suspect else CallState.ANSWERED,
    )


def parse_conversation_replies(
    bout: WorkSession, spec: RubricSpec, call: Call, said: Sequence[StoredReplyText], *, is_confirmed: bool
) -> Iterator[ReplyReading]:
    """Each reply that gives a verdict, in its own conversation."""
    shown, judged = ShownOrder(call.shown), partial(judged_call_texts, call)
    before: list[str] = []
    for one in said:
        if one.step == AttemptStep.ASK:
            before = []
        if not bout.two_steps or asks_verdict_alone(one.step, before):
            reply = RawReply(one.raw, one.finish_reason)
            read = parse_reply(spec, shown, reply, step=one.step, before=tuple(before), judged=judged)
            state = reply_state(read, (*before, one.raw), judged)
            counts = state == CallState.SUSPECT and (is_confirmed or is_confirmed_call(call))
            yield ReplyReading(one.step, read, CallState.ANSWERED if counts else state)
        before.append(one.raw)


def is_confirmed_call(call: Call) -> bool:
    """Whether a person confirmed the call, or the one that its answer was copied from."""
    return any(one is not None and one.confirmed_at is not None for one in (call, call.copied_from))


def judged_call_texts(call: Call) -> PairTexts | ResponseTexts:
    subject = call.comparison or call.response
    assert subject is not None
    return judged_texts(subject)


def describe_changes(old: Values, new: Values) -> tuple[str, ...]:
    """“A → tie” for each aspect that differs; scores are not distinguished, since there are too many values."""
    keys = {*old, *new}
    return tuple(
        f"{format_stored_value(old.get(key))} → {format_stored_value(new.get(key))}"
        for key in sorted(keys)
        if old.get(key) != new.get(key)
    )


def format_stored_value(value: str | float | None) -> str:
    return "none" if value is None else value if isinstance(value, str) else "a score"


def outcome_of_reading(call: Call, reading: ReplyReading) -> CallOutcome:
    """What is to be written of a call that nobody holds."""
    held = ClaimedCall(
        call.pk,
        call.comparison_id,
        uuid.uuid4(),
        ShownOrder(call.shown),
        0,
        NO_TEXTS,
        response_id=call.response_id,
        sample=call.sample,
    )
    if isinstance(reading.read, UnparsedReply):
        return CallOutcome(held, reading.state, error=reading.read.error)
    if reading.state == CallState.SUSPECT:
        return CallOutcome(held, reading.state, error=DICTATED_ERROR)
    return CallOutcome(
        held,
        reading.state,
        choices=reading.read.choices,
        scores=reading.read.scores,
        rationale=reading.read.rationale,
        repaired=reading.step == AttemptStep.REPAIR,
    )
