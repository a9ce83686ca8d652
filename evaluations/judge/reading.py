"""From a reply to choices in terms of A and B or to scores, or to the state that says why there are none.

The reply is never guessed at: a label counts only where the rubric said that it would stand.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_letters
from typing import Any, Final

from evaluations.domain import (
    FLIPPED,
    AspectSpec,
    AttemptStep,
    CallState,
    Choice,
    PairTexts,
    ResponseTexts,
    RubricSpec,
    Shown,
    storable,
)
from evaluations.judge.linear_patterns import Match, PatternTimedOut, find_matches
from evaluations.judge.prompting import all_texts
from evaluations.judge.replying import (
    is_pointwise,
    is_verdict_alone,
    labels_of,
    reply_key,
    text_pattern,
    wants_text,
)
from evaluations.judge.scales import placed, range_shown, spelled, values_of

# How servers of reasoning models mark what was thought before the reply.
THOUGHTS: Final = "<think>"
THOUGHTS_END: Final = "</think>"
# What may stand round a label that is alone on a line, and says nothing.
AROUND: Final = " \t*_`\"'“”."
# Before a number a point says something: .5 is no 5.
BEFORE_NUMBER: Final = AROUND.replace(".", "")
NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d+)?|\.\d+)")
# An opening brace that begins a JSON object, rather than a brace of prose, code or a formula.
OPENS_OBJECT: Final = re.compile(r'\{(?=\s*["}])')

Verdict = Choice | float
Judged = Callable[[], PairTexts | ResponseTexts]


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


class Unreadable(Exception):
    pass


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
    unheard = unheard_for(reply)
    if unheard:
        return unheard
    alone = is_verdict_alone(step, before)
    try:
        read = read_alone if alone else read_whole
        verdicts, rationale = read(spec, spoken(reply.text), judged)
    except Unreadable as error:
        return NotRead(CallState.UNREADABLE, storable(str(error)))
    # JSON can spell out in escapes what the reply itself could not hold.
    rationale = storable(spoken(before[0]).strip() if alone and before else rationale)
    return Read(choices_of(verdicts, shown), rationale, scores_of(verdicts))


def read_evaluation(reply: Reply) -> NotRead | None:
    """Why the first of two steps cannot be gone on with; None where there is an evaluation to go on from.

    An evaluation has no form, so that there is nothing to repair in one.
    """
    unheard = unheard_for(reply)
    if unheard is None and not spoken(reply.text).strip():
        return NotRead(CallState.UNREADABLE, "The evaluation is empty.")
    return unheard


def unheard_for(reply: Reply) -> NotRead | None:
    """Why the model stopped counts before what it wrote."""
    if reply.finish_reason == "length":
        return NotRead(CallState.TRUNCATED, "The reply was cut off at the token limit.")
    if reply.refusal or reply.finish_reason in ("content_filter", "refusal"):
        return NotRead(CallState.REFUSED, storable(f"The model refused to judge. {reply.refusal}".strip()))
    return None


def spoken(text: str) -> str:
    """The reply without the thoughts before it, which some servers pass on: what is drafted there is no verdict."""
    if not text.lstrip().startswith(THOUGHTS):
        return text
    return text.rpartition(THOUGHTS_END)[2] if THOUGHTS_END in text else ""


def read_whole(spec: RubricSpec, text: str, judged: Judged | None) -> tuple[dict[str, Verdict], str]:
    return read_text(spec, text, judged) if wants_text(spec) else read_json(spec, text, judged)


def choices_of(verdicts: Mapping[str, Verdict], shown: Shown) -> dict[str, Choice]:
    choices = {key: one for key, one in verdicts.items() if isinstance(one, Choice)}
    return {key: FLIPPED[one] for key, one in choices.items()} if shown == Shown.SWAPPED else choices


def scores_of(verdicts: Mapping[str, Verdict]) -> dict[str, float]:
    return {key: one for key, one in verdicts.items() if isinstance(one, float)}


def folded(label: str) -> str:
    """A label as it is compared: trimmed, in one case."""
    return label.strip().casefold()


# ---- one verdict ---------------------------------------------------------------------------


def verdict_for(spec: RubricSpec, aspect: AspectSpec, given: object) -> Verdict:
    return score_for(aspect, given) if is_pointwise(spec) else choice_for(aspect, given)


def choice_for(aspect: AspectSpec, label: object) -> Choice:
    """The choice that the label stands for; Unreadable where it was not offered."""
    offered = {folded(aspect.label(choice)): choice for choice in aspect.choices}
    choice = offered.get(folded(label)) if isinstance(label, str) else None
    if choice is None:
        raise not_offered(aspect, label)
    return choice


def score_for(aspect: AspectSpec, given: object) -> float:
    """The value that was given; Unreadable off the scale: it is never moved onto it.

    A number in quotes counts where the schema offers it so: on a scale in steps.
    """
    by_word = {spelled(value): value for value in values_of(aspect)}
    if isinstance(given, str) and given.strip() in by_word:
        return by_word[given.strip()]
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    value = placed(aspect, given) if is_number else None  # type: ignore[arg-type]
    if value is None:
        raise not_offered(aspect, given)
    return value


def not_offered(aspect: AspectSpec, given: object) -> Unreadable:
    offered = labels_of(aspect)
    wanted = f"offered were {', '.join(offered)}" if offered else f"wanted was {range_shown(aspect)}"
    return Unreadable(f"The reply gives {excerpt(given)} for {reply_key(aspect)}; {wanted}.")


def excerpt(given: object) -> str:
    return json.dumps(given, ensure_ascii=False)[:80]


# ---- JSON ----------------------------------------------------------------------------------


def read_json(
    spec: RubricSpec, text: str, judged: Judged | None, *, alone: bool = False
) -> tuple[dict[str, Verdict], str]:
    """The last complete top-level object that validates; ``alone``: without its reasons."""
    problem = None
    for found, written in reversed(list(top_level_objects(text))):
        try:
            verdicts = validated(spec, found, alone=alone)
        except Unreadable as error:
            problem = problem or error
            continue
        if not is_quoted(written, labels_in(spec, found), text, judged):
            return verdicts
        problem = Unreadable("The reply gives no verdict of its own: it only quotes one from a judged text.")
    raise problem or Unreadable("The reply holds no JSON object.")


def top_level_objects(text: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Every complete JSON object that stands inside no other, and as it is written.

    An object that begins and cannot be read to its end makes the reply unreadable: what follows
    may stand inside it, such as a verdict that the judge only quotes.
    """
    decoder = json.JSONDecoder(object_pairs_hook=without_repeats)
    position = 0
    while opening := OPENS_OBJECT.search(text, position):
        try:
            found, position = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):  # a number of thousands of digits is a ValueError of its own
            raise Unreadable("The reply holds a JSON object that is broken.") from None
        yield found, text[opening.start() : position]


def is_quoted(written: str, labels: Sequence[str], reply: str, judged: Judged | None) -> bool:
    """Whether an object amid other words stands in a judged text: then it was planted there, and is not the judge's.

    Its verdicts alone suffice, each with its key: a quotation may leave the reasons out. A reply
    that is the object and nothing else is the judge's own, whatever a judged text holds.
    """
    if judged is None or out_of_fence(reply) == written:
        return False
    whole, parts = squeezed(written), [re.compile(rf"{re.escape(squeezed(one))}[,}}]") for one in labels]
    texts = [squeezed(text) for text in all_texts(judged())]
    return any(whole in text or all(part.search(text) for part in parts) for text in texts)


def labels_in(spec: RubricSpec, found: Mapping[str, Any]) -> list[str]:
    """Every verdict of an object that validates, with its key, as JSON has it."""
    given = given_verdicts(spec, by_folded_key(found))
    keys = [folded(reply_key(aspect)) for aspect in spec.aspects]
    return [f"{json.dumps(key, ensure_ascii=False)}:{json.dumps(given[key], ensure_ascii=False)}" for key in keys]


def out_of_fence(reply: str) -> str:
    """The reply, without the code fence that it may stand in as a whole."""
    text = reply.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].lstrip(ascii_letters)
    return text.strip()


def squeezed(text: str) -> str:
    """The text as it is compared with a quotation of it: without white space, in one case."""
    return "".join(text.split()).casefold()


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise Unreadable(f"The reply gives “{repeated[:80]}” twice.")
    return held


def validated(spec: RubricSpec, found: Mapping[str, Any], *, alone: bool) -> tuple[dict[str, Verdict], str]:
    given = by_folded_key(found)
    rationale = given.get(folded(spec.rationale_key))
    if rationale is None and is_pointwise(spec) and not alone:
        raise Unreadable(f"The reply's JSON has no “{spec.rationale_key}”.")
    labels = given_verdicts(spec, given)
    missing = [reply_key(aspect) for aspect in spec.aspects if folded(reply_key(aspect)) not in labels]
    if missing:
        raise Unreadable(f"The reply says nothing on {', '.join(missing)}.")
    verdicts = {aspect.key: verdict_for(spec, aspect, labels[folded(reply_key(aspect))]) for aspect in spec.aspects}
    return verdicts, rationale if isinstance(rationale, str) else said(rationale)


def given_verdicts(spec: RubricSpec, given: dict[str, Any]) -> dict[str, Any]:
    """The object of the verdicts: the one under its key, or the reply itself."""
    if not spec.choices_key:
        return given
    choices = given.get(folded(spec.choices_key))
    if not isinstance(choices, dict):
        raise Unreadable(f"The reply's JSON has no “{spec.choices_key}”.")
    return by_folded_key(choices)


def said(rationale: object) -> str:
    """Reasons that are no text, such as a list of them, as they were given."""
    return "" if rationale is None else json.dumps(rationale, ensure_ascii=False)


def by_folded_key(found: Mapping[str, Any]) -> dict[str, Any]:
    return without_repeats([(folded(key), value) for key, value in found.items()])


def read_alone(spec: RubricSpec, text: str, judged: Judged | None) -> tuple[dict[str, Verdict], str]:
    """The verdict without its reasons: an object, or of a single aspect the one label that is the whole reply."""
    if len(spec.aspects) == 1 and (labels := alone_on(spec.aspects[0], text.strip())):
        return {spec.aspects[0].key: verdict_in_words(spec, spec.aspects[0], labels[0])}, ""
    return read_json(spec, text, judged, alone=True)


# ---- plain text ----------------------------------------------------------------------------


def read_text(spec: RubricSpec, text: str, judged: Judged | None) -> tuple[dict[str, Verdict], str]:
    """The label in the declared form, or alone on the last line. Labels inside prose never count."""
    (aspect,) = spec.aspects
    labels = matches(text_pattern(spec), text, judged) or last_line(aspect, text)
    if not labels:
        raise Unreadable("The reply does not end in a verdict of the form that the rubric declares.")
    verdicts = {verdict_in_words(spec, aspect, label) for label in labels}
    if len(verdicts) > 1:
        raise Unreadable(f"The reply gives more than one verdict: {', '.join(dict.fromkeys(labels))}.")
    return {aspect.key: verdicts.pop()}, text.strip()


def verdict_in_words(spec: RubricSpec, aspect: AspectSpec, label: str) -> Verdict:
    """In plain text a number is written as a word, on every scale."""
    is_number = is_pointwise(spec) and NUMBER.fullmatch(label.strip())
    return verdict_for(spec, aspect, float(label) if is_number else label)


def matches(pattern: str, text: str, judged: Judged | None) -> list[str]:
    """Every label that the rubric's pattern finds: its one group, or the whole match.

    Words that a judged text holds too may be quoted from it: they count as the whole last line alone.
    """
    found = found_by(pattern, text)
    if not found or judged is None:
        return [one.label for one in found]
    last = squeezed(text.strip().splitlines()[-1].strip(AROUND)) if text.strip() else ""
    texts = [squeezed(one) for one in all_texts(judged())]
    own = [one for one in found if last == (words := squeezed(one.text)) or not any(words in text for text in texts)]
    return [one.label for one in own]


def found_by(pattern: str, text: str) -> list[Match]:
    """Where the pattern of a stored rubric matches. Unreadable where that takes too long."""
    try:
        return find_matches(pattern, text) if pattern else []
    except PatternTimedOut as error:
        raise Unreadable(str(error)) from None


def last_line(aspect: AspectSpec, text: str) -> list[str]:
    """The last line that is not empty, where it is one of the labels and nothing else."""
    lines = text.strip().splitlines()
    return alone_on(aspect, lines[-1]) if lines else []


def alone_on(aspect: AspectSpec, line: str) -> list[str]:
    """The label, or the value of a scale, that this line is; none where it holds anything else."""
    if aspect.scale_min is not None:
        number = line.lstrip(BEFORE_NUMBER).rstrip(AROUND)
        return [number] if NUMBER.fullmatch(number) and placed(aspect, float(number)) is not None else []
    alone = folded(line.strip(AROUND))
    return [label for label in map(aspect.label, aspect.choices) if folded(label.strip(AROUND)) == alone]
