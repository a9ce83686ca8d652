"""Calls of judges that ask for one aspect at a time: which aspects their stored Attempts answer, and which is next."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from evaluations.domain import AttemptOutcome, AttemptStep, CallState, PairTexts, ResponseTexts, Shown
from evaluations.judge.dictation import state_of
from evaluations.judge.reading import Read, Reply, read_reply
from evaluations.models import Attempt
from evaluations.services.judging.recalling import Conversation
from evaluations.services.judging.working import AspectAnswer, Bout

# Beside the tokens of a reply, in what is kept of its probabilities; no aspect has a space in its key.
WEIGHT: Final = "weight of the verdict"
ASKED_AGAIN: Final = (AttemptOutcome.RETRY, AttemptOutcome.LOST)

# The order shown, the step that the call waits for, and the judged texts.
Asked = tuple[Shown, AttemptStep, Callable[[], PairTexts | ResponseTexts]]


@dataclass(frozen=True)
class AspectProgress:
    """How far a call is: the aspect to be asked for next, empty where all are answered, and what goes before it.

    ``tried``: this run's requests for that aspect that met a fault. ``answered_number``: of the Attempt that brought
    the last answer, 0 before the first.
    """

    aspect: str
    earlier: tuple[AspectAnswer, ...]
    conversation: Conversation | None
    tried: int
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
    logprobs: Mapping[str, Any] | None


@dataclass
class Round:
    """The answers of a call as its Attempts bring them, and the Attempts since the last answer."""

    answers: dict[str, AspectAnswer] = field(default_factory=dict)
    since: list[StoredAttempt] = field(default_factory=list)
    answered_number: int = 0


def progress_of(bout: Bout, asked: Mapping[int, Asked]) -> dict[int, AspectProgress]:
    """Call → how far it is, by its Attempts alone."""
    stored: dict[int, list[StoredAttempt]] = {}
    rows = Attempt.objects.filter(call__in=asked).order_by("call_id", "number")
    columns = ("call_id", "number", "run_id", "aspect", "step", "outcome", "raw", "finish_reason", "error", "logprobs")
    for call_id, number, run_id, aspect, step, outcome, *said in rows.values_list(*columns):
        attempt = StoredAttempt(number, run_id, aspect, AttemptStep(step), AttemptOutcome(outcome), *said)
        stored.setdefault(call_id, []).append(attempt)
    return {call_id: progress(bout, one, stored.get(call_id, ())) for call_id, one in asked.items()}


def progress(bout: Bout, asked: Asked, attempts: Sequence[StoredAttempt]) -> AspectProgress:
    _, step, _ = asked
    at = answered_by(bout, asked, attempts)
    order = bout.spec.output_order
    aspect = next((key for key in order if key not in at.answers), "")
    unread = unread_reply(at.since, aspect) if step == AttemptStep.REPAIR else None
    return AspectProgress(
        aspect=aspect,
        earlier=tuple(at.answers[key] for key in order if key in at.answers),
        conversation=Conversation((unread.raw,), unread.error) if unread else None,
        tried=sum(one.run_id == bout.run.pk and one.outcome in ASKED_AGAIN for one in at.since),
        answered_number=at.answered_number,
    )


def answered_by(bout: Bout, asked: Asked, attempts: Sequence[StoredAttempt]) -> Round:
    """What counts of the stored replies.

    Once every aspect is answered and one of the answers is suspect, the call has ended as suspect: where it is asked
    anew all the same, it is asked from the start.
    """
    at = Round()
    for one in attempts:
        answer = answer_in(bout, asked, one, at.since) if one.outcome == AttemptOutcome.ANSWERED else None
        if answer is None:
            at.since.append(one)
            continue
        at.answers[one.aspect] = answer
        at.since, at.answered_number = [], one.number
        is_whole = len(at.answers) == len(bout.spec.output_order)
        if is_whole and any(answer.is_suspect for answer in at.answers.values()):
            at.answers = {}
    return at


def answer_in(bout: Bout, asked: Asked, attempt: StoredAttempt, before: Sequence[StoredAttempt]) -> AspectAnswer | None:
    """What this reply says as it is read today; None where it cannot be read any more, so that it is asked again."""
    if attempt.aspect not in bout.spec.output_order:
        return None
    shown, _, texts = asked
    unread = unread_reply(before, attempt.aspect) if attempt.step == AttemptStep.REPAIR else None
    said = (unread.raw,) if unread else ()
    reply, spec = Reply(attempt.raw, attempt.finish_reason), bout.spec_of(attempt.aspect)
    read = read_reply(spec, shown, reply, step=attempt.step, before=said, judged=texts)
    if not isinstance(read, Read):
        return None
    # An error beside a reply that was read says that it was suspect when it came.
    is_suspect = bool(attempt.error) or state_of(read, (*said, attempt.raw), texts) == CallState.SUSPECT
    weight = (attempt.logprobs or {}).get(WEIGHT)
    return AspectAnswer(attempt.aspect, read, is_suspect, attempt.step == AttemptStep.REPAIR, weight)


def unread_reply(attempts: Sequence[StoredAttempt], aspect: str) -> StoredAttempt | None:
    """The last reply on this aspect that could not be read, and that a repair may follow."""
    unread = [
        one
        for one in attempts
        if one.aspect == aspect and one.outcome == AttemptOutcome.UNREADABLE and one.step == AttemptStep.ASK
    ]
    return unread[-1] if unread else None


def joined_aspects(bout: Bout, read: Mapping[str, Read]) -> Read:
    """What was read aspect by aspect, as one reading; each rationale is a paragraph that names its aspect."""
    reasons = [f"{bout.aspect_names[key]}: {one.rationale}" for key, one in read.items() if one.rationale]
    return Read(
        choices={key: choice for one in read.values() for key, choice in one.choices.items()},
        rationale="\n\n".join(reasons),
        scores={key: value for one in read.values() for key, value in one.scores.items()},
    )
