"""The conversation of a call, rebuilt from its stored attempts."""

from collections.abc import Callable, Collection, Mapping, Sequence
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

REPLY_OUTCOMES: Final = (AttemptOutcome.ANSWERED, AttemptOutcome.UNREADABLE)
STORED_COLUMNS: Final = ("run_id", "number", "aspect", "step", "outcome", "raw", "finish_reason", "error", "logprobs")


@dataclass(frozen=True)
class Conversation:
    """The model's replies so far, oldest first, and the error of the last one if it was unreadable."""

    earlier_replies: tuple[str, ...] = ()
    unread: str = ""


@dataclass(frozen=True)
class StoredAttempt:
    run_id: int
    number: int
    aspect: str  # the requested one; "" if all were requested
    step: AttemptStep
    outcome: AttemptOutcome
    raw: str
    finish_reason: str
    error: str
    logprobs: JsonMapping | None


def load_attempts(call_ids: Collection[int], outcomes: Collection[AttemptOutcome]) -> dict[int, list[StoredAttempt]]:
    """Call → its attempts with one of these outcomes, oldest first; calls without any are left out."""
    attempts: dict[int, list[StoredAttempt]] = {}
    rows = Attempt.objects.filter(call__in=call_ids, outcome__in=outcomes).order_by("call_id", "number")
    for call_id, run_id, number, aspect, step, outcome, *texts in rows.values_list("call_id", *STORED_COLUMNS):
        attempt = StoredAttempt(run_id, number, aspect, AttemptStep(step), AttemptOutcome(outcome), *texts)
        attempts.setdefault(call_id, []).append(attempt)
    return attempts


def load_conversations(steps: Mapping[int, AttemptStep]) -> dict[int, Conversation]:
    """Call → its conversation so far, for calls past their first step.

    Calls without stored replies are left out: they start again.
    """
    later = {pk: step for pk, step in steps.items() if step != AttemptStep.ASK}
    if not later:
        return {}
    replies = load_attempts(later, REPLY_OUTCOMES)
    conversations = {pk: build_conversation(step, replies.get(pk, [])) for pk, step in later.items()}
    return {pk: conversation for pk, conversation in conversations.items() if conversation is not None}


def build_conversation(step: AttemptStep, replies: Sequence[StoredAttempt]) -> Conversation | None:
    answered = [reply for reply in replies if reply.outcome == AttemptOutcome.ANSWERED]
    first = next((reply for reply in reversed(answered) if reply.step == AttemptStep.ASK), None)
    if step == AttemptStep.SCORE:
        return Conversation((first.raw,)) if first else None
    unread = next((reply for reply in reversed(replies) if reply.outcome == AttemptOutcome.UNREADABLE), None)
    if unread is None or unread.step == AttemptStep.ASK:
        return Conversation((unread.raw,), unread.error) if unread else None
    return Conversation((first.raw, unread.raw), unread.error) if first else None


# The key of the weight among a reply's stored log probabilities; no aspect key contains a space.
WEIGHT_KEY: Final = "weight of the verdict"
REPEATED_OUTCOMES: Final = (AttemptOutcome.RETRY, AttemptOutcome.LOST)

# The order shown, the pending step, and the judged texts.
AspectQuestion = tuple[ShownOrder, AttemptStep, Callable[[], PairTexts | ResponseTexts]]


@dataclass(frozen=True)
class AspectProgress:
    """The aspect that a call asks for next (empty if all are answered), and what its request builds on.

    ``failed_requests``: this run's requests for that aspect that failed. ``answered_number``: the number of the
    Attempt that brought the last answer, 0 before the first.
    """

    aspect: str
    earlier_answers: tuple[AspectAnswer, ...]
    conversation: Conversation | None
    failed_requests: int
    answered_number: int


@dataclass
class AspectAnswers:
    """The answers of a call according to its Attempts, and the Attempts since the last answer."""

    answers: dict[str, AspectAnswer] = field(default_factory=dict)
    since: list[StoredAttempt] = field(default_factory=list)
    answered_number: int = 0


def load_aspect_progress(session: WorkSession, questions: Mapping[int, AspectQuestion]) -> dict[int, AspectProgress]:
    stored = load_attempts(questions, list(AttemptOutcome))
    return {
        call_id: find_aspect_progress(session, question, stored.get(call_id, ()))
        for call_id, question in questions.items()
    }


def find_aspect_progress(
    session: WorkSession, question: AspectQuestion, attempts: Sequence[StoredAttempt]
) -> AspectProgress:
    _, step, _ = question
    read = read_aspect_answers(session, question, attempts)
    order = session.spec.output_order
    aspect = next((key for key in order if key not in read.answers), "")
    unread = last_unreadable_reply(read.since, aspect) if step == AttemptStep.REPAIR else None
    failed = [attempt for attempt in read.since if attempt.outcome in REPEATED_OUTCOMES]
    return AspectProgress(
        aspect=aspect,
        earlier_answers=tuple(read.answers[key] for key in order if key in read.answers),
        conversation=Conversation((unread.raw,), unread.error) if unread else None,
        failed_requests=sum(attempt.run_id == session.run.pk for attempt in failed),
        answered_number=read.answered_number,
    )


def read_aspect_answers(
    session: WorkSession, question: AspectQuestion, attempts: Sequence[StoredAttempt]
) -> AspectAnswers:
    """The answers that count among the stored replies.

    A call whose aspects are all answered, one of them suspect, has ended as suspect: asking it again starts afresh.
    """
    read = AspectAnswers()
    for attempt in attempts:
        answer = parse_aspect_attempt(session, question, attempt, read.since)
        if answer is None:
            read.since.append(attempt)
            continue
        read.answers[attempt.aspect] = answer
        read.since, read.answered_number = [], attempt.number
        is_complete = len(read.answers) == len(session.spec.output_order)
        if is_complete and any(answer.is_suspect for answer in read.answers.values()):
            read.answers = {}
    return read


def parse_aspect_attempt(
    session: WorkSession, question: AspectQuestion, attempt: StoredAttempt, before: Sequence[StoredAttempt]
) -> AspectAnswer | None:
    """The answer in this reply by the current parser; None if there is none, so that it is asked again."""
    if attempt.outcome != AttemptOutcome.ANSWERED or attempt.aspect not in session.spec.output_order:
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
    unread = (aspect, AttemptOutcome.UNREADABLE, AttemptStep.ASK)
    replies = (attempt for attempt in reversed(attempts) if (attempt.aspect, attempt.outcome, attempt.step) == unread)
    return next(replies, None)


def join_aspect_replies(session: WorkSession, read: Mapping[str, ParsedReply]) -> ParsedReply:
    """The replies on single aspects as one reply; each rationale is a paragraph that names its aspect."""
    reasons = [f"{session.aspect_names[key]}: {reply.rationale}" for key, reply in read.items() if reply.rationale]
    return ParsedReply(
        choices={key: choice for reply in read.values() for key, choice in reply.choices.items()},
        rationale="\n\n".join(reasons),
        scores={key: value for reply in read.values() for key, value in reply.scores.items()},
    )


JudgedSubject = Comparison | Response

SUBJECT_RELATIONS: Final = ("comparison__query", "comparison__response_a", "comparison__response_b", "response__query")


def find_latest_answered_calls(judge: Judge, limit: int) -> "QuerySet[Call]":
    bought = Call.all_rows.filter(judge=judge.pk, state=CallState.ANSWERED, copied_from__isnull=True)
    return bought.select_related(*SUBJECT_RELATIONS).order_by("-pk")[:limit]


def call_subject(call: Call) -> JudgedSubject:
    subject = call.comparison or call.response
    assert subject is not None  # by a constraint of the table
    return subject
