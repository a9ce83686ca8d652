"""The parser of replies: choices in terms of A and B, scores, or the state that says why there are none.

A label counts only where the rubric declared it; a reply that repeats a judged text is suspect.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from evaluations.domain.choices import FLIPPED_CHOICES, Choice, ShownOrder
from evaluations.domain.judges import AttemptStep, CallState
from evaluations.domain.rubrics import RubricSpec
from evaluations.domain.texts import replace_unstorable
from evaluations.replies.json_objects import parse_sole_object
from evaluations.replies.labels import match_line_label, strip_lead
from evaluations.replies.object_verdicts import parse_json_verdicts, parse_whole_object, unwrap_members
from evaluations.replies.passages import list_all_texts, repeats_passage, unescape_text
from evaluations.replies.reply_format import asks_verdict_alone, wants_text
from evaluations.replies.text_verdicts import parse_text_verdicts
from evaluations.replies.think_tags import SplitReply, has_reasoning_end, split_reasoning, strip_end_marks
from evaluations.replies.verdict_values import (
    JudgedTexts,
    ParsedVerdicts,
    ReplyContext,
    UnreadableReply,
    VerdictValue,
    parse_text_verdict,
    strip_fence,
)


@dataclass(frozen=True)
class RawReply:
    """A reply: its text, why the model stopped, and its refusal if there is one."""

    text: str
    finish_reason: str = "stop"
    refusal: str = ""


@dataclass(frozen=True)
class ParsedReply:
    """The verdicts of a reply, independent of the order shown.

    ``choices``: aspect key → choice in terms of A and B as stored, for pairwise rubrics;
    ``scores``: aspect key → value, for pointwise ones.
    """

    choices: Mapping[str, Choice]
    rationale: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class UnparsedReply:
    """Why there is no verdict: a failure state of the call, and a sentence for people."""

    state: CallState
    error: str


TEXT_SEPARATOR: Final = "\x00"  # between texts that are searched together: no mark crosses it
TRUNCATED_REPLY: Final = UnparsedReply(CallState.TRUNCATED, "The reply was cut off at the token limit.")


def parse_reply(
    spec: RubricSpec,
    shown: ShownOrder,
    reply: RawReply,
    *,
    step: AttemptStep = AttemptStep.ASK,
    before: Sequence[str] = (),
    judged: JudgedTexts | None = None,
) -> ParsedReply | UnparsedReply:
    """A verdict for every aspect of the rubric, or a failure; never some of them.

    ``before``: earlier replies in this conversation, oldest first. The second of two steps is read for its verdict
    only; its rationale is the evaluation before it. ``judged`` loads the judged texts, called only if the reply may
    quote them.
    """
    if refused := find_refusal(reply):
        return refused
    alone = asks_verdict_alone(step, before)
    is_cut_off = reply.finish_reason == "length"
    context = ReplyContext(spec, judged, alone, is_cut_off, in_line=is_cut_off and not reply.text.endswith("\n"))
    try:
        verdicts, rationale = parse_strict_or_spoken(context, reply.text)
    except UnreadableReply as error:
        unreadable = UnparsedReply(CallState.UNREADABLE, replace_unstorable(str(error)))
        return TRUNCATED_REPLY if is_cut_off else unreadable
    # JSON can spell out in escapes what the reply itself could not hold.
    rationale = replace_unstorable(evaluation_text(before[0]) if alone and before else rationale)
    scores = {key: value for key, value in verdicts.items() if isinstance(value, float)}
    return ParsedReply(canonical_choices(verdicts, shown), rationale, scores)


def check_evaluation(reply: RawReply) -> UnparsedReply | None:
    """Why the first of two steps is unusable; None if it is an evaluation.

    An evaluation has no format, so there is nothing to repair.
    """
    if refused := find_refusal(reply):
        return refused
    if reply.finish_reason == "length":
        return TRUNCATED_REPLY
    return None if evaluation_text(reply.text) else UnparsedReply(CallState.UNREADABLE, "The evaluation is empty.")


def find_refusal(reply: RawReply) -> UnparsedReply | None:
    """A refusal counts before the text of the reply."""
    if reply.refusal or reply.finish_reason in ("content_filter", "refusal"):
        sentence = f"The model refused to judge. {reply.refusal}".strip()
        return UnparsedReply(CallState.REFUSED, replace_unstorable(sentence))
    return None


def canonical_choices(verdicts: Mapping[str, VerdictValue], shown: ShownOrder) -> dict[str, Choice]:
    choices = {key: value for key, value in verdicts.items() if isinstance(value, Choice)}
    return {key: FLIPPED_CHOICES[choice] for key, choice in choices.items()} if shown == ShownOrder.SWAPPED else choices


def evaluation_text(text: str) -> str:
    """An evaluation without the reasoning before it; if that never ends, the text before it."""
    parts = split_reasoning(text)
    return (parts.spoken or parts.before).strip()


def parse_strict_or_spoken(context: ReplyContext, text: str) -> ParsedVerdicts:
    """The whole reply if it is one JSON object, whatever its strings contain; else the text after the reasoning."""
    if whole := parse_whole_object(context, strip_end_marks(text)):
        return whole
    parts = split_reasoning(text)
    if not parts.is_cut:
        return parse_verdicts(context, text)
    if context.judged and has_reasoning_end(TEXT_SEPARATOR.join(list_all_texts(context.judged()))):
        raise UnreadableReply(
            "A judged text holds the end of a model's thoughts, as the reply does: its verdict may be a quote."
        )
    # All that follows a mark may be one object that holds others in its strings.
    remainders = map(strip_end_marks, parts.remainders)
    after = next(filter(None, (parse_whole_object(context, remainder) for remainder in remainders)), None)
    after = after or parse_verdicts(context, parts.spoken)
    before = parse_before_reasoning(context, parts)
    if before and before[0] != after[0]:
        raise UnreadableReply("The reply gives one verdict before its thoughts and another after them.")
    return after


def parse_before_reasoning(context: ReplyContext, parts: SplitReply) -> ParsedVerdicts | None:
    """A verdict before the reasoning: any before an opening mark, else one that makes up the whole text."""
    before = parts.before
    try:
        if parts.is_opened:
            return parse_verdicts(context, before)
        if wants_text(context.spec):
            (aspect,) = context.spec.aspects
            return parse_verdicts(context, before) if match_line_label(aspect, before.strip()) else None
        return parse_whole_object(context, strip_end_marks(before))
    except UnreadableReply:
        return None


def parse_verdicts(context: ReplyContext, text: str) -> ParsedVerdicts:
    if context.alone:
        return parse_verdict_alone(context, text)
    return parse_text_verdicts(context, text) if wants_text(context.spec) else parse_json_verdicts(context, text)


def parse_verdict_alone(context: ReplyContext, text: str) -> ParsedVerdicts:
    """The verdict without reasons: an object, or for a single aspect a label that makes up the whole reply."""
    spoken = strip_fence(strip_end_marks(text))
    if len(context.spec.aspects) == 1 and len(spoken.splitlines()) == 1 and not context.in_line:
        (aspect,) = context.spec.aspects
        if label := match_line_label(aspect, spoken):
            return {aspect.key: parse_text_verdict(context.spec, aspect, label)}, ""
    return parse_json_verdicts(context, text)


DICTATED_ERROR: Final = (
    "The whole reply repeats a passage of a judged text, word for word. "
    "Its verdict does not count until a person confirms it."
)

MIN_DICTATED_LENGTH: Final = 40  # characters; a shorter reply may be a label that a text happens to hold
OPENING_TOKENS: Final = re.compile(r"\A(?:\s*<\|\w{1,40}\|>)+")


def reply_state(read: ParsedReply | UnparsedReply, replies: Sequence[str], judged: JudgedTexts) -> CallState:
    """The state of a call with this last reply; ``replies`` is its conversation, oldest first.

    Earlier replies count too: a verdict that follows from dictated reasons is not the judge's own.
    """
    if isinstance(read, UnparsedReply):
        return read.state
    return CallState.SUSPECT if is_dictated_reply(replies, judged) else CallState.ANSWERED


def is_dictated_reply(replies: Iterable[str], judged: JudgedTexts) -> bool:
    """Whether one of the replies, of 40 characters or more, is only a passage of a judged text."""
    stripped = {strip_reply_marks(text) for reply in replies for text in (reply, evaluation_text(reply))}
    stripped |= {strip_last_lead(text) for text in stripped}
    long = [text for text in stripped if len(" ".join(text.split())) >= MIN_DICTATED_LENGTH]
    if not long:
        return False
    texts = [unescape_text(text) for text in list_all_texts(judged()) if len(text) >= MIN_DICTATED_LENGTH / 2]
    return any(repeats_passage(reply, texts, reply_members(reply)) for reply in long)


def strip_reply_marks(text: str) -> str:
    """The text without code fence, tag, tokens and end marks around it."""
    return strip_fence(OPENING_TOKENS.sub("", strip_end_marks(text)))


def strip_last_lead(text: str) -> str:
    """The text without “Final verdict:” before the label on its last line."""
    before, line_break, last = text.rpartition("\n")
    return f"{before}{line_break}{strip_lead(last) or last}"


def reply_members(reply: str) -> Iterator[str]:
    """The members of a reply that is one JSON object, each with its key: their order may differ."""
    members = parse_sole_object(reply) if reply.startswith("{") else None
    if members is not None:
        yield from leaf_texts(unwrap_members(members))


def leaf_texts(members: dict[str, object]) -> Iterator[str]:
    for key, value in members.items():
        if isinstance(value, dict):
            yield from leaf_texts(value)
        else:
            yield f"{key} {json.dumps(value, ensure_ascii=False)}"
