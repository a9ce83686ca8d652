"""Reading stored replies once more, by the reader of today: nothing is asked, and nothing is paid.

A re-reading stands in Events: one where it began, one with every change, one at its end. Whoever
goes on with it goes on from the last of them, so that none of its changes is left out of the count.
"""

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

from evaluations.domain import (
    AttemptOutcome,
    AttemptStep,
    CallState,
    InputRefused,
    JudgeKind,
    PairTexts,
    ResponseTexts,
    RubricSpec,
    Shown,
)
from evaluations.judge.dictation import DICTATED, state_of
from evaluations.judge.reading import NotRead, Read, Reply, read_reply
from evaluations.judge.replying import is_verdict_alone
from evaluations.judge.retrying import Patience
from evaluations.models import Attempt, Call, Event, Judge, Run, Score, User, Verdict
from evaluations.models.many import update_many
from evaluations.services import balloting
from evaluations.services.judging.aspect_answers import joined_aspects
from evaluations.services.judging.filing import write_answers
from evaluations.services.judging.judging import texts_of
from evaluations.services.judging.working import Bout, Held, Outcome, bout_of
from evaluations.services.pacing import ROWS_AT_ONCE, paced, time_is_up
from evaluations.services.recording import record

BEGAN: Final = "began to read replies again"
WENT_ON: Final = "read some replies again"
ENDED: Final = "read replies again"
# The states that a reader decides between; the others were decided by the server.
READABLE: Final = (CallState.ANSWERED, CallState.UNREADABLE, CallState.SUSPECT, CallState.TRUNCATED)
SAID: Final = (AttemptOutcome.ANSWERED, AttemptOutcome.UNREADABLE, AttemptOutcome.TRUNCATED)
# Longer than any stretch of work: what did not move for so long has nobody at it.
LEFT_OFF_AFTER: Final = timedelta(seconds=60)
LOOK_BACK: Final = 10_000  # events
NO_TEXTS: Final = ResponseTexts((), ())  # nothing is sent
RELATED: Final = (
    *("comparison__query", "comparison__response_a", "comparison__response_b", "response__query"),
    "copied_from",
)

Values = Mapping[str, str | float]  # aspect key → choice or score


# ---- beginning and going on ------------------------------------------------------------------


@transaction.atomic
def reread(judge: Judge, *, user: User | None) -> int:
    """Begin to read this judge's stored replies again, for a worker to go on with; how many calls there are."""
    if judge.kind != JudgeKind.LLM:
        raise InputRefused(f"“{judge.name}” has no stored replies: they come from models.")
    Judge.objects.select_for_update().get(pk=judge.pk)
    if is_being_reread(judge):
        raise InputRefused(f"The replies of “{judge.name}” are being read again already: wait for its end.")
    calls = to_read(judge).count()
    if not calls:
        raise InputRefused(f"“{judge.name}” has no stored replies yet: run it first.")
    record(BEGAN, judge, user=user, evaluation=judge.evaluation, after={"calls": calls})
    return calls


def go_on(judge_id: int, *, seconds: float | None = None) -> bool:
    """Read for so long, or to the end; whether there is more."""
    judge = Judge.objects.select_related("evaluation").get(pk=judge_id)
    event = last_event(judge)
    if event is None or event.verb == ENDED:
        return False
    until = None if seconds is None else time.monotonic() + seconds
    reading = resumed(judge, event)
    while not time_is_up(until):
        with paced():
            if not reading.read_some():
                return False
    reading.tell(WENT_ON)
    return True


def last_event(judge: Judge) -> Event | None:
    """Where the latest re-reading of this judge's replies stands; None before the first."""
    told = Event.objects.filter(evaluation=judge.evaluation_id, object_type="judge", object_id=judge.pk)
    return told.filter(verb__in=(BEGAN, WENT_ON, ENDED)).select_related("user").order_by("-pk").first()


def is_being_reread(judge: Judge) -> bool:
    event = last_event(judge)
    return event is not None and event.verb != ENDED


def judges_left_off() -> list[int]:
    """Judges whose re-reading has not ended, and has nobody at it."""
    newest = Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    lately = Event.objects.filter(pk__gt=newest - LOOK_BACK, object_type="judge", verb__in=(BEGAN, WENT_ON, ENDED))
    last = {
        judge: (verb, at) for judge, verb, at in lately.order_by("pk").values_list("object_id", "verb", "created_at")
    }
    before = timezone.now() - LEFT_OFF_AFTER
    return [judge for judge, (verb, at) in last.items() if judge and verb != ENDED and at < before]


def to_read(judge: Judge) -> "QuerySet[Call]":
    return Call.all_rows.filter(judge=judge, state__in=READABLE)


def latest_run(judge: Judge) -> Run:
    related = ("judge__rubric_version__rubric", "judge__endpoint", "judge__evaluation")
    return Run.objects.select_related(*related).filter(judge=judge).latest("pk")


def resumed(judge: Judge, event: Event) -> "Rereading":
    """The re-reading as its last Event left it."""
    told = event.after
    return Rereading(
        judge=judge,
        bout=bout_of(latest_run(judge), Patience()),
        user=event.user,
        calls=told["calls"],
        up_to=told.get("up_to", 0),
        counts=Counter(told.get("counts", {})),
        changes=Counter(told.get("changes", {})),
    )


# ---- reading -------------------------------------------------------------------------------


@dataclass
class Rereading:
    """One re-reading of a judge's replies: up to which call it is, and what it found so far."""

    judge: Judge
    bout: Bout
    user: User | None
    calls: int
    up_to: int
    counts: Counter[str]
    changes: Counter[str]

    @transaction.atomic
    def read_some(self) -> bool:
        """Read the next calls once more; False once there are none left."""
        rest = to_read(self.judge).filter(pk__gt=self.up_to).select_related(*RELATED).order_by("pk")
        calls = list(rest.select_for_update(of=("self",))[:ROWS_AT_ONCE])
        if not calls:
            self.tell(ENDED)
            return False
        replies = replies_of([call.copied_from_id or call.pk for call in calls])
        held = values_held([call.pk for call in calls])
        found = [
            reread_call(self.bout, call, replies.get(call.copied_from_id or call.pk, ()), held.get(call.pk, {}))
            for call in calls
        ]
        self.up_to = calls[-1].pk
        self.count(found)
        if outcomes := [one.outcome for one in found if one.outcome]:
            correct(self.bout, outcomes)
            self.tell(WENT_ON)
        return True

    def count(self, found: Sequence["Found"]) -> None:
        for one in found:
            self.counts[one.word] += 1
            self.changes.update(one.changes)

    def tell(self, verb: str) -> None:
        told = {"calls": self.calls, "up_to": self.up_to, "counts": dict(self.counts), "changes": dict(self.changes)}
        record(verb, self.judge, user=self.user, evaluation=self.judge.evaluation, after=told)


def correct(bout: Bout, outcomes: Sequence[Outcome]) -> None:
    """Write calls and their answers as they are read now, in place of what was stored."""
    ids, now = [outcome.held.call_id for outcome in outcomes], timezone.now()
    balloting.forget_calls(ids)
    Verdict.all_rows.filter(call__in=ids).delete()
    Score.all_rows.filter(call__in=ids).delete()
    columns = ("id", "state", "error", "rationale", "repaired")
    rows = [(one.held.call_id, one.state.value, one.error, one.rationale, one.repaired) for one in outcomes]
    update_many(Call, columns, rows)
    write_answers(bout, outcomes, now)


@dataclass(frozen=True)
class Said:
    """A stored reply: the step that it answers, and why the model stopped."""

    step: AttemptStep
    raw: str
    finish_reason: str
    aspect: str = ""  # the one that it was asked for; empty where for all


@dataclass(frozen=True)
class Reading:
    """How today's reader reads one stored reply, and the state that its call takes by it."""

    step: AttemptStep
    read: Read | NotRead
    state: CallState

    @property
    def values(self) -> Values:
        """What is stored of it: a suspect verdict is not."""
        if isinstance(self.read, NotRead) or self.state != CallState.ANSWERED:
            return {}
        return {key: str(choice) for key, choice in self.read.choices.items()} | dict(self.read.scores)


@dataclass(frozen=True)
class Found:
    """What a second look at one call found: a word for the count, and the outcome where it differs."""

    word: str
    outcome: Outcome | None = None
    changes: tuple[str, ...] = ()


def replies_of(call_ids: Sequence[int]) -> dict[int, list[Said]]:
    """Call → what the model said, oldest first."""
    found: dict[int, list[Said]] = {}
    rows = Attempt.objects.filter(call__in=call_ids, outcome__in=SAID).order_by("call_id", "number")
    for pk, step, *said in rows.values_list("call_id", "step", "raw", "finish_reason", "aspect"):
        found.setdefault(pk, []).append(Said(AttemptStep(step), *said))
    return found


def values_held(call_ids: Sequence[int]) -> dict[int, dict[str, str | float]]:
    """Call → aspect key → the choice or score that is stored now."""
    found: dict[int, dict[str, str | float]] = {}
    choices = Verdict.all_rows.filter(call__in=call_ids).values_list("call_id", "aspect__key", "choice")
    scores = Score.all_rows.filter(call__in=call_ids).values_list("call_id", "aspect__key", "value")
    for pk, key, choice in choices:
        found.setdefault(pk or 0, {})[key] = choice
    for pk, key, value in scores:
        found.setdefault(pk or 0, {})[key] = value
    return found


def reread_call(bout: Bout, call: Call, said: Sequence[Said], held: Values) -> Found:
    """A reading that agrees with what is stored leaves it; else the latest that can be read counts."""
    readings = readings_of(bout, call, said, held)
    able = [one for one in readings if isinstance(one.read, Read)]
    if not readings or any((one.state, one.values) == (call.state, held) for one in able):
        return Found("unchanged")
    if not able and not held and call.state != CallState.SUSPECT:
        return Found("unchanged")
    last = (able or readings)[-1]
    words = {CallState.ANSWERED: "corrected" if held else "answered now", CallState.SUSPECT: "suspect now"}
    word = words.get(last.state, "unreadable now")
    return Found(word, outcome_of(call, last), changes_between(held, last.values))


def readings_of(
    bout: Bout, call: Call, said: Sequence[Said], held: Values, *, is_confirmed: bool = False
) -> list[Reading]:
    """How today's reader reads what was said: each reply that gives a whole verdict, or all aspects' replies as one.

    ``is_confirmed``: a person decided that this call counts, though a judged text dictated its reply.
    """
    if not bout.judge.one_aspect_per_call:
        return list(readings_in(bout, bout.spec, call, said, is_confirmed=is_confirmed))
    chosen: dict[str, Reading] = {}
    for key in bout.spec.output_order:
        about_it = [one for one in said if one.aspect == key]
        readings = list(readings_in(bout, bout.spec_of(key), call, about_it, is_confirmed=is_confirmed))
        able = [one for one in readings if isinstance(one.read, Read)]
        agreeing = [one for one in able if key in held and one.values == {key: held[key]}]
        if not readings:  # the call ended before this aspect was answered
            return []
        chosen[key] = (agreeing or able or readings)[-1]
    return [joined(bout, chosen)]


def joined(bout: Bout, by_aspect: Mapping[str, Reading]) -> Reading:
    """One reading of the whole call: unreadable where one aspect is, suspect where one is."""
    read: dict[str, Read] = {}
    for key, one in by_aspect.items():
        if isinstance(one.read, NotRead):
            error = f"{bout.aspect_names[key]}: {one.read.error}"
            return Reading(one.step, NotRead(one.read.state, error), one.state)
        read[key] = one.read
    is_suspect = any(one.state == CallState.SUSPECT for one in by_aspect.values())
    is_repaired = any(one.step == AttemptStep.REPAIR for one in by_aspect.values())
    return Reading(
        AttemptStep.REPAIR if is_repaired else AttemptStep.ASK,
        joined_aspects(bout, read),
        CallState.SUSPECT if is_suspect else CallState.ANSWERED,
    )


def readings_in(
    bout: Bout, spec: RubricSpec, call: Call, said: Sequence[Said], *, is_confirmed: bool
) -> Iterator[Reading]:
    """Each reply that gives a verdict, in its own conversation."""
    shown, judged = Shown(call.shown), partial(judged_by, call)
    before: list[str] = []
    for one in said:
        if one.step == AttemptStep.ASK:
            before = []
        if not bout.two_steps or is_verdict_alone(one.step, before):
            reply = Reply(one.raw, one.finish_reason)
            read = read_reply(spec, shown, reply, step=one.step, before=tuple(before), judged=judged)
            state = state_of(read, (*before, one.raw), judged)
            counts = state == CallState.SUSPECT and (is_confirmed or was_confirmed(call))
            yield Reading(one.step, read, CallState.ANSWERED if counts else state)
        before.append(one.raw)


def was_confirmed(call: Call) -> bool:
    """Whether a person confirmed the call, or the one that its answer was copied from."""
    return any(one is not None and one.confirmed_at is not None for one in (call, call.copied_from))


def judged_by(call: Call) -> PairTexts | ResponseTexts:
    subject = call.comparison or call.response
    assert subject is not None
    return texts_of(subject)


def changes_between(old: Values, new: Values) -> tuple[str, ...]:
    """“A → tie” for each aspect that differs; numbers are not told apart, there are too many of them."""
    keys = {*old, *new}
    return tuple(
        f"{shown_as(old.get(key))} → {shown_as(new.get(key))}" for key in sorted(keys) if old.get(key) != new.get(key)
    )


def shown_as(value: str | float | None) -> str:
    return "none" if value is None else value if isinstance(value, str) else "a score"


def outcome_of(call: Call, reading: Reading) -> Outcome:
    """What is to be written of a call that nobody holds."""
    held = Held(
        call.pk,
        call.comparison_id,
        uuid.uuid4(),
        Shown(call.shown),
        0,
        NO_TEXTS,
        response_id=call.response_id,
        sample=call.sample,
    )
    if isinstance(reading.read, NotRead):
        return Outcome(held, reading.state, error=reading.read.error)
    if reading.state == CallState.SUSPECT:
        return Outcome(held, reading.state, error=DICTATED)
    return Outcome(
        held,
        reading.state,
        choices=reading.read.choices,
        scores=reading.read.scores,
        rationale=reading.read.rationale,
        repaired=reading.step == AttemptStep.REPAIR,
    )
