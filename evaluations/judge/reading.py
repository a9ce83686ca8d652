"""From a reply to choices in terms of A and B or to scores, or to the state that says why there are none.

The reply is never guessed at: a label counts only where the rubric said that it would stand.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from evaluations.domain import FLIPPED, AttemptStep, CallState, Choice, RubricSpec, Shown, storable
from evaluations.judge.labels import label_on
from evaluations.judge.object_verdicts import read_json, read_whole_object
from evaluations.judge.prompting import all_texts
from evaluations.judge.replying import is_verdict_alone, wants_text
from evaluations.judge.text_verdicts import read_text
from evaluations.judge.thoughts import Cut, cut, holds_end_of_thoughts, without_end_marks
from evaluations.judge.verdicts import Asked, Judged, Reading, Unreadable, Verdict, out_of_fence, verdict_in_words


@dataclass(frozen=True)
class Reply:
    """What came back: the text, why the model stopped, and its refusal where it made one."""

    text: str
    finish_reason: str = "stop"
    refusal: str = ""


@dataclass(frozen=True)
class Read:
    """What was read, whatever order was shown.

    ``choices``: aspect key → choice in terms of A and B as stored, of a pairwise rubric;
    ``scores``: aspect key → value, of a pointwise one.
    """

    choices: Mapping[str, Choice]
    rationale: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class NotRead:
    """Why there is no verdict: a failure state of the call, and a sentence for people."""

    state: CallState
    error: str


BETWEEN: Final = "\x00"  # of texts that are looked at together: no mark reaches across it
CUT_OFF: Final = NotRead(CallState.TRUNCATED, "The reply was cut off at the token limit.")


def read_reply(
    spec: RubricSpec,
    shown: Shown,
    reply: Reply,
    *,
    step: AttemptStep = AttemptStep.ASK,
    before: Sequence[str] = (),
    judged: Judged | None = None,
) -> Read | NotRead:
    """A verdict for every aspect that the rubric asks, or a failure: never some of them.

    ``before`` holds the replies given earlier in this conversation, oldest first. The reply to a
    second of two steps is read for its verdict alone; its rationale is the evaluation before it.
    ``judged`` gives the texts that were judged, asked for only where the reply may quote them.
    """
    if refused := refusal_in(reply):
        return refused
    alone = is_verdict_alone(step, before)
    is_cut_off = reply.finish_reason == "length"
    asked = Asked(spec, judged, alone, is_cut_off, in_line=is_cut_off and not reply.text.endswith("\n"))
    try:
        verdicts, rationale = read_strictly_or_spoken(asked, reply.text)
    except Unreadable as error:
        return NotRead(CallState.UNREADABLE, storable(str(error))) if not asked.is_cut_off else CUT_OFF
    # JSON can spell out in escapes what the reply itself could not hold.
    rationale = storable(evaluation_in(before[0]) if alone and before else rationale)
    return Read(choices_of(verdicts, shown), rationale, scores_of(verdicts))


def read_evaluation(reply: Reply) -> NotRead | None:
    """Why the first of two steps cannot be gone on with; None where there is an evaluation to go on from.

    An evaluation has no form, so that there is nothing to repair in one.
    """
    if refused := refusal_in(reply):
        return refused
    if reply.finish_reason == "length":
        return CUT_OFF
    return None if evaluation_in(reply.text) else NotRead(CallState.UNREADABLE, "The evaluation is empty.")


def refusal_in(reply: Reply) -> NotRead | None:
    """A refusal counts before what the model wrote."""
    if reply.refusal or reply.finish_reason in ("content_filter", "refusal"):
        return NotRead(CallState.REFUSED, storable(f"The model refused to judge. {reply.refusal}".strip()))
    return None


def choices_of(verdicts: Mapping[str, Verdict], shown: Shown) -> dict[str, Choice]:
    choices = {key: one for key, one in verdicts.items() if isinstance(one, Choice)}
    return {key: FLIPPED[one] for key, one in choices.items()} if shown == Shown.SWAPPED else choices


def scores_of(verdicts: Mapping[str, Verdict]) -> dict[str, float]:
    return {key: one for key, one in verdicts.items() if isinstance(one, float)}


# ---- thoughts ------------------------------------------------------------------------------


def evaluation_in(text: str) -> str:
    """An evaluation without the thoughts before it; where they do not end, what precedes them."""
    parts = cut(text)
    return (parts.spoken or parts.before).strip()


def read_strictly_or_spoken(asked: Asked, text: str) -> Reading:
    """As the reply is where it is one JSON object as a whole, whatever its strings hold; else what follows thoughts."""
    if whole := read_whole_object(asked, without_end_marks(text)):
        return whole
    parts = cut(text)
    if not parts.is_cut:
        return read(asked, text)
    if asked.judged and holds_end_of_thoughts(BETWEEN.join(all_texts(asked.judged()))):
        raise Unreadable(
            "A judged text holds the end of a model's thoughts, as the reply does: its verdict may be a quote."
        )
    # All that follows a mark may be one object that holds others in its strings.
    after = next(filter(None, (read_whole_object(asked, without_end_marks(rest)) for rest in parts.rests)), None)
    after = after or read(asked, parts.spoken)
    before = read_before(asked, parts)
    if before and before[0] != after[0]:
        raise Unreadable("The reply gives one verdict before its thoughts and another after them.")
    return after


def read_before(asked: Asked, parts: Cut) -> Reading | None:
    """A reply before the thoughts: any verdict before a mark that opens them, else one that is all there is."""
    before = parts.before
    try:
        if parts.is_opened:
            return read(asked, before)
        if wants_text(asked.spec):
            (aspect,) = asked.spec.aspects
            return read(asked, before) if label_on(aspect, before.strip()) else None
        return read_whole_object(asked, without_end_marks(before))
    except Unreadable:
        return None


def read(asked: Asked, text: str) -> Reading:
    if asked.alone:
        return read_alone(asked, text)
    return read_text(asked, text) if wants_text(asked.spec) else read_json(asked, text)


def read_alone(asked: Asked, text: str) -> Reading:
    """The verdict without its reasons: an object, or of a single aspect the one label that is the whole reply."""
    said = out_of_fence(without_end_marks(text))
    if len(asked.spec.aspects) == 1 and len(said.splitlines()) == 1 and not asked.in_line:
        (aspect,) = asked.spec.aspects
        if label := label_on(aspect, said):
            return {aspect.key: verdict_in_words(asked.spec, aspect, label)}, ""
    return read_json(asked, text)
