"""From a reply to choices in terms of A and B, or to the state that says why there are none.

The reply is never guessed at: a label counts only where the rubric said that it would stand.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evaluations.domain import FLIPPED, AspectSpec, CallState, Choice, RubricSpec, Shown, storable
from evaluations.judge.replying import CHOICES, RATIONALE, text_pattern, wants_text

# What may stand round a label that is alone on a line, and says nothing.
AROUND: Final = " \t*_`\"'“”."
# An opening brace that begins a JSON object, rather than a brace of prose, code or a formula.
OPENS_OBJECT: Final = re.compile(r'\{(?=\s*["}])')


@dataclass(frozen=True)
class Reply:
    """What came back: the text, why the model stopped, and its refusal where it made one."""

    text: str
    finish_reason: str = "stop"
    refusal: str = ""


@dataclass(frozen=True)
class Read:
    """Aspect key → choice in terms of A and B as stored, whatever order was shown."""

    choices: Mapping[str, Choice]
    rationale: str


@dataclass(frozen=True)
class NotRead:
    """Why there is no verdict: a failure state of the call, and a sentence for people."""

    state: CallState
    error: str


class Unreadable(Exception):
    pass


def read_reply(spec: RubricSpec, shown: Shown, reply: Reply) -> Read | NotRead:
    """Choices for every aspect that the rubric asks, or a failure: never some of them."""
    if reply.finish_reason == "length":
        return NotRead(CallState.TRUNCATED, "The reply was cut off at the token limit.")
    if reply.refusal or reply.finish_reason in ("content_filter", "refusal"):
        return NotRead(CallState.REFUSED, f"The model refused to judge. {reply.refusal}".strip())
    try:
        labels, rationale = read_text(spec, reply.text) if wants_text(spec) else read_json(spec, reply.text)
    except Unreadable as error:
        return NotRead(CallState.UNREADABLE, storable(str(error)))
    choices = {key: FLIPPED[choice] if shown == Shown.SWAPPED else choice for key, choice in labels.items()}
    # JSON can spell out in escapes what the reply itself could not hold.
    return Read(choices, storable(rationale))


def folded(label: str) -> str:
    """A label as it is compared: trimmed, in one case."""
    return label.strip().casefold()


def choice_for(aspect: AspectSpec, label: object) -> Choice:
    """The choice that the label stands for; Unreadable where it was not offered."""
    offered = {folded(aspect.label(choice)): choice for choice in aspect.choices}
    choice = offered.get(folded(label)) if isinstance(label, str) else None
    if choice is None:
        wanted = ", ".join(aspect.label(choice) for choice in aspect.choices)
        given = json.dumps(label, ensure_ascii=False)[:80]
        raise Unreadable(f"The reply gives {given} for {aspect.key}; offered were {wanted}.")
    return choice


# ---- JSON ----------------------------------------------------------------------------------


def read_json(spec: RubricSpec, text: str) -> tuple[dict[str, Choice], str]:
    """The last complete top-level object that validates."""
    problem = None
    for found in reversed(list(top_level_objects(text))):
        try:
            return validated(spec, found)
        except Unreadable as error:
            problem = problem or error
    raise problem or Unreadable("The reply holds no JSON object.")


def top_level_objects(text: str) -> Iterator[dict[str, Any]]:
    """Every complete JSON object that stands inside no other.

    An object that begins and cannot be read to its end makes the reply unreadable: what follows
    may stand inside it, such as a verdict that the judge only quotes.
    """
    decoder = json.JSONDecoder(object_pairs_hook=without_repeats)
    position = 0
    while opening := OPENS_OBJECT.search(text, position):
        try:
            found, position = decoder.raw_decode(text, opening.start())
        except (json.JSONDecodeError, RecursionError):
            raise Unreadable("The reply holds a JSON object that is broken.") from None
        yield found


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise Unreadable(f"The reply gives “{repeated[:80]}” twice.")
    return held


def validated(spec: RubricSpec, found: Mapping[str, Any]) -> tuple[dict[str, Choice], str]:
    given = by_folded_key(found)
    choices = given.get(CHOICES)
    if not isinstance(choices, dict):
        raise Unreadable(f"The reply's JSON has no “{CHOICES}”.")
    labels = by_folded_key(choices)
    missing = [aspect.key for aspect in spec.aspects if folded(aspect.key) not in labels]
    if missing:
        raise Unreadable(f"The reply says nothing on {', '.join(missing)}.")
    rationale = given.get(RATIONALE, "")
    return (
        {aspect.key: choice_for(aspect, labels[folded(aspect.key)]) for aspect in spec.aspects},
        rationale if isinstance(rationale, str) else json.dumps(rationale, ensure_ascii=False),
    )


def by_folded_key(found: Mapping[str, Any]) -> dict[str, Any]:
    return without_repeats([(folded(key), value) for key, value in found.items()])


# ---- plain text ----------------------------------------------------------------------------


def read_text(spec: RubricSpec, text: str) -> tuple[dict[str, Choice], str]:
    """The label in the declared form, or alone on the last line. Labels inside prose never count."""
    (aspect,) = spec.aspects
    labels = matches(text_pattern(spec), text) or last_line(aspect, text)
    if not labels:
        raise Unreadable("The reply does not end in a verdict of the form that the rubric declares.")
    choices = {choice_for(aspect, label) for label in labels}
    if len(choices) > 1:
        raise Unreadable(f"The reply gives more than one verdict: {', '.join(dict.fromkeys(labels))}.")
    return {aspect.key: choices.pop()}, text.strip()


def matches(pattern: str, text: str) -> list[str]:
    """Every label that the rubric's pattern finds: its one group, or the whole match."""
    if not pattern:
        return []
    return [found[found.re.groups] or "" for found in re.finditer(pattern, text, re.MULTILINE)]


def last_line(aspect: AspectSpec, text: str) -> list[str]:
    """The last line that is not empty, where it is one of the labels and nothing else."""
    lines = text.strip().splitlines()
    if not lines:
        return []
    alone = folded(lines[-1].strip(AROUND))
    return [label for label in map(aspect.label, aspect.choices) if folded(label.strip(AROUND)) == alone]
