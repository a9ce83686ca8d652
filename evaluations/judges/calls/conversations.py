"""The conversation of a call, rebuilt from its stored attempts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db.models import QuerySet

from evaluations.domain.choices import ShownOrder
from evaluations.domain.json_values import JsonMapping
from evaluations.domain.judges import AttemptOutcome, AttemptStep, CallState
from evaluations.domain.texts import PairTexts, ResponseTexts
from evaluations.judges.calls.work_session import AspectAnswer, WorkSession
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.judges import Judge
from evaluations.models.runs import Attempt, Call
from evaluations.replies.reply_parser import ParsedReply, RawReply, parse_reply, reply_state

REPLY_OUTCOMES = (AttemptOutcome.ANSWERED, AttemptOutcome.UNREADABLE)


@dataclass(frozen=True)
class Conversation:
    """The model's replies so far, oldest first, and the error of the last one if it was unreadable."""

    earlier_replies: tuple[str, ...] = ()
    unread: str = ""


@dataclass(frozen=True)
class StoredReply:
    step: AttemptStep
    outcome: AttemptOutcome
    raw: str
    error: str


def load_conversations(steps: Mapping[int, AttemptStep]) -> dict[int, Conversation]:
    """Call → its conversation so far, for calls past their first step.

    Calls without stored replies are left out: they start again.
    """
    later = {pk: step for pk, step in steps.items() if step != AttemptStep.ASK}
    if not later:
        return {}
    replies: dict[int, list[StoredReply]] = {}
    attempts = Attempt.objects.filter(call__in=later, outcome__in=REPLY_OUTCOMES).order_by("call_id", "number")
    for pk, step, outcome, raw, error in attempts.values_list("call_id", "step", "outcome", "raw", "error"):
        replies.setdefault(pk, []).append(StoredReply(AttemptStep(step), AttemptOutcome(outcome), raw, error))
    conversations = {pk: build_conversation(step, replies.get(pk, [])) for pk, step in later.items()}
    return {pk: one for pk, one in conversations.items() if one is not None}


def build_conversation(step: AttemptStep, replies: Sequence[StoredReply]) -> Conversation | None:
    if step == AttemptStep.SCORE:
        first = last_reply_before_step(replies, AttemptOutcome.ANSWERED, first_step=True)
        return Conversation((first.raw,)) if first else None
    unread = last_reply_before_step(replies, AttemptOutcome.UNREADABLE)
    if unread is None or unread.step == AttemptStep.ASK:
        return Conversation((unread.raw,), unread.error) if unread else None
    first = last_reply_before_step(replies, AttemptOutcome.ANSWERED, first_step=True)
    return Conversation((first.raw, unread.raw), unread.error) if first else None


def last_reply_before_step(
    replies: Sequence[StoredReply], outcome: AttemptOutcome, *, first_step: bool = False
) -> StoredReply | None:
    matching = [
        reply for reply in replies if reply.outcome == outcome and (reply.step == AttemptStep.ASK or not first_step)
    ]
    return matching[-1] if matching else None


# The key of the weight among a reply's stored log probabilities; no aspect key contains a space.
WEIGHT_KEY: Final = "weight of the verdict"
REPEATED_OUTCOMES: Final = (AttemptOutcome.RETRY, AttemptOutcome.LOST)

# The order shown, the pending step, and the judged texts.
AspectQuestion = tuple[ShownOrder, AttemptStep, Callable[[], PairTexts | ResponseTexts]]


@dataclass(frozen=True)
class AspectProgress:
    """The aspect that a call asks for next (empty where all are answered), and what its request builds on.

    ``failed_requests``: this run's requests for that aspect that failed. ``answered_number``: the number of the
    Attempt that brought the last answer, 0 before the first.
    """

    aspect: str
    earlier_answers: tuple[AspectAnswer, ...]
    conversation: Conversation | None
    failed_requests: int
    answered_number: int


@dataclass(frozen=True)
class StoredAttempt:
    number: int
    run_id: int
    aspect: str
    step: AttemptStep
    outcome: AttemptOutcome
    raw: str
    finish_reason: str
    error: str
    logprobs: JsonMapping | None


@dataclass
class AspectAnswers:
    """The answers of a call according to its Attempts, and the Attempts since the last answer."""

    answers: dict[str, AspectAnswer] = field(default_factory=dict)
    since: list[StoredAttempt] = field(default_factory=list)
    answered_number: int = 0


def load_aspect_progress(session: WorkSession, questions: Mapping[int, AspectQuestion]) -> dict[int, AspectProgress]:
    stored: dict[int, list[StoredAttempt]] = {}
    rows = Attempt.objects.filter(call__in=questions).order_by("call_id", "number")
    columns = ("call_id", "number", "run_id", "aspect", "step", "outcome", "raw", "finish_reason", "error", "logprobs")
    for call_id, number, run_id, aspect, step, outcome, *rest in rows.values_list(*columns):
        attempt = StoredAttempt(number, run_id, aspect, AttemptStep(step), AttemptOutcome(outcome), *rest)
        stored.setdefault(call_id, []).append(attempt)
    return {call_id: aspect_progress(session, one, stored.get(call_id, ())) for call_id, one in questions.items()}


def aspect_progress(
    session: WorkSession, question: AspectQuestion, attempts: Sequence[StoredAttempt]
) -> AspectProgress:
    _, step, _ = question
    at = read_aspect_answers(session, question, attempts)
    order = session.spec.output_order
    aspect = next((key for key in order if key not in at.answers), "")
    unread = last_unreadable_reply(at.since, aspect) if step == AttemptStep.REPAIR else None
    return AspectProgress(
        aspect=aspect,
        earlier_answers=tuple(at.answers[key] for key in order if key in at.answers),
        conversation=Conversation((unread.raw,), unread.error) if unread else None,
        failed_requests=sum(one.run_id == session.run.pk and one.outcome in REPEATED_OUTCOMES for one in at.since),
        answered_number=at.answered_number,
    )


def read_aspect_answers(
    session: WorkSession, question: AspectQuestion, attempts: Sequence[StoredAttempt]
) -> AspectAnswers:
    """The answers that count among the stored replies.

    A call whose aspects are all answered, one of them suspect, has ended as suspect: asking it again starts afresh.
    """
    at = AspectAnswers()
    for attempt in attempts:
        answer = (
            parse_aspect_attempt(session, question, attempt, at.since)
            if attempt.outcome == AttemptOutcome.ANSWERED
            else None
        )
        if answer is None:
            at.since.append(attempt)
            continue
        at.answers[attempt.aspect] = answer
        at.since, at.answered_number = [], attempt.number
        is_whole = len(at.answers) == len(session.spec.output_order)
        if is_whole and any(answer.is_suspect for answer in at.answers.values()):
            at.answers = {}
    return at


def parse_aspect_attempt(
    session: WorkSession, question: AspectQuestion, attempt: StoredAttempt, before: Sequence[StoredAttempt]
) -> AspectAnswer | None:
    """The answer in this reply by the current parser; None if it cannot be parsed, so that it is asked again."""
    if attempt.aspect not in session.spec.output_order:
        return None
    shown, _, texts = question
    unread = last_unreadable_reply(before, attempt.aspect) if attempt.step == AttemptStep.REPAIR else None
    earlier_replies = (unread.raw,) if unread else ()
    reply, spec = RawReply(attempt.raw, attempt.finish_reason), session.spec_of(attempt.aspect)
    read = parse_reply(spec, shown, reply, step=attempt.step, before=earlier_replies, judged=texts)
    if not isinstance(read, ParsedReply):
        return None
    # An error stored with a readable reply means that it was suspect when it came.
    is_suspect = bool(attempt.error) or reply_state(read, (*earlier_replies, attempt.raw), texts) == CallState.SUSPECT
    weight = (attempt.logprobs or {}).get(WEIGHT_KEY)
    return AspectAnswer(attempt.aspect, read, is_suspect, attempt.step == AttemptStep.REPAIR, weight)


def last_unreadable_reply(attempts: Sequence[StoredAttempt], aspect: str) -> StoredAttempt | None:
    """The last unreadable reply on this aspect, which a repair may follow."""
    unread = [
        attempt
        for attempt in attempts
        if attempt.aspect == aspect and attempt.outcome == AttemptOutcome.UNREADABLE and attempt.step == AttemptStep.ASK
    ]
    return unread[-1] if unread else None


def join_aspect_replies(session: WorkSession, read: Mapping[str, ParsedReply]) -> ParsedReply:
    """The replies on single aspects as one reply; each rationale is a paragraph that names its aspect."""
    reasons = [f"{session.aspect_names[key]}: {one.rationale}" for key, one in read.items() if one.rationale]
    return ParsedReply(
        choices={key: choice for one in read.values() for key, choice in one.choices.items()},
        rationale="\n\n".join(reasons),
        scores={key: value for one in read.values() for key, value in one.scores.items()},
    )


JudgedSubject = Comparison | Response

SUBJECT_RELATIONS: Final = ("comparison__query", "comparison__response_a", "comparison__response_b", "response__query")


def latest_answered_calls(judge: Judge, most: int) -> "QuerySet[Call]":
    bought = Call.all_rows.filter(judge=judge, state=CallState.ANSWERED, copied_from__isnull=True)
    return bought.select_related(*SUBJECT_RELATIONS).order_by("-pk")[:most]


def call_subject(call: Call) -> JudgedSubject | None:
    return call.comparison or call.response
