"""What was said so far in the conversation of a call: its stored Attempts, never a worker's memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluations.domain import AttemptOutcome, AttemptStep
from evaluations.models import Attempt

SAID = (AttemptOutcome.ANSWERED, AttemptOutcome.UNREADABLE)


@dataclass(frozen=True)
class Conversation:
    """The model's replies so far, oldest first, and why the last of them could not be read."""

    before: tuple[str, ...] = ()
    unread: str = ""


@dataclass(frozen=True)
class Reply:
    step: AttemptStep
    outcome: AttemptOutcome
    raw: str
    error: str


def conversations(steps: Mapping[int, AttemptStep]) -> dict[int, Conversation]:
    """Call → what goes before its next step, for calls that are past the first one.

    A call is left out where nothing of it is stored: it is to be asked from the start.
    """
    later = {pk: step for pk, step in steps.items() if step != AttemptStep.ASK}
    if not later:
        return {}
    replies: dict[int, list[Reply]] = {}
    said = Attempt.objects.filter(call__in=later, outcome__in=SAID).order_by("call_id", "number")
    for pk, step, outcome, raw, error in said.values_list("call_id", "step", "outcome", "raw", "error"):
        replies.setdefault(pk, []).append(Reply(AttemptStep(step), AttemptOutcome(outcome), raw, error))
    found = {pk: conversation(step, replies.get(pk, [])) for pk, step in later.items()}
    return {pk: one for pk, one in found.items() if one is not None}


def conversation(step: AttemptStep, replies: Sequence[Reply]) -> Conversation | None:
    if step == AttemptStep.SCORE:
        first = last(replies, AttemptOutcome.ANSWERED, first_step=True)
        return Conversation((first.raw,)) if first else None
    unread = last(replies, AttemptOutcome.UNREADABLE)
    if unread is None or unread.step == AttemptStep.ASK:
        return Conversation((unread.raw,), unread.error) if unread else None
    first = last(replies, AttemptOutcome.ANSWERED, first_step=True)
    return Conversation((first.raw, unread.raw), unread.error) if first else None


def last(replies: Sequence[Reply], outcome: AttemptOutcome, *, first_step: bool = False) -> Reply | None:
    found = [one for one in replies if one.outcome == outcome and (one.step == AttemptStep.ASK or not first_step)]
    return found[-1] if found else None
