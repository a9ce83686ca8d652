"""From the probabilities of a reply's tokens to a verdict weighed by them, where it can be told.

A hard choice says which label was likeliest; the probabilities of all labels at its place say by
how much. The verdict's place is found by the letters of the reply, since tokens know no fields.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import exp
from typing import Any, Final

from evaluations.domain import FLIPPED, AspectSpec, Choice, RubricSpec, Shown, Token, storable
from evaluations.judge.labels import AROUND
from evaluations.judge.linear_patterns import PatternTimedOut, find_matches
from evaluations.judge.reading import Read
from evaluations.judge.replying import is_pointwise, reply_key, text_pattern
from evaluations.judge.scales import MOST_VALUES, ends_of, spelled, values_of

# What a choice is worth, to the side that it names first.
WORTH: Final[Mapping[Choice, float]] = {Choice.A: 1.0, Choice.TIE: 0.5, Choice.BOTH_BAD: 0.5, Choice.B: 0.0}
# Of the probability: so much must lie on labels that were offered, and so little on tokens that begin several.
LEAST_ON_LABELS: Final = 0.5
MOST_AMBIGUOUS: Final = 0.05
# A token may hold the mark before a label and the one after it.
BEFORE_LABEL: Final = " \t\n\"'*_`“"
AFTER_LABEL: Final = re.compile(r"[\"'*`”,}\n]")
JSON_VALUE: Final = r'"\s*{key}\s*"\s*:\s*(?:"([^"\\]*)"|([-+.\d]+))'

Span = tuple[int, int]


@dataclass(frozen=True)
class Weighed:
    """Aspect key → weight, where it can be told, and the verdict's tokens with their likeliest others.

    Pairwise: how far towards A, from 1 to 0, in terms of A and B as stored. Pointwise: the mean value.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    tokens: Mapping[str, list[Any]] = field(default_factory=dict)


def weigh(spec: RubricSpec, shown: Shown, told: Read, text: str, tokens: Sequence[Token]) -> Weighed:
    """Weigh what was read from ``text`` by the probabilities of its tokens."""
    begins = begins_of(text, tokens)
    if begins is None:
        return Weighed()
    weights, kept = {}, {}
    for aspect in spec.aspects:
        span = place_of(spec, aspect, text)
        offered = offered_at(spec, aspect, text[slice(*span)]) if span else {}
        if span is None or offered.get(text[slice(*span)].casefold()) != value_read(aspect, shown, told):
            continue
        at = [place for place, token in enumerate(tokens) if overlaps(begins[place], token, in_bytes(text, span))]
        kept[aspect.key] = [compact(tokens[place]) for place in at]
        weight = mean(offered, in_bytes(text, span), [(begins[place], tokens[place]) for place in at])
        if weight is not None:
            flipped = shown == Shown.SWAPPED and not is_pointwise(spec)
            weights[aspect.key] = round(1 - weight if flipped else weight, 6)
    return Weighed(weights, kept)


def value_read(aspect: AspectSpec, shown: Shown, told: Read) -> float | None:
    """What was read, as the number that it is worth in the order shown."""
    if aspect.key in told.scores:
        return told.scores[aspect.key]
    choice = told.choices.get(aspect.key)
    if choice is None:
        return None
    return WORTH[FLIPPED[choice] if shown == Shown.SWAPPED else choice]


# ---- places --------------------------------------------------------------------------------


def begins_of(text: str, tokens: Sequence[Token]) -> list[int] | None:
    """Where each token begins, in bytes of the reply; None where they do not spell it out.

    Servers may tell of tokens before it (reasoning that they cut off) and after it (an end mark).
    """
    if not tokens:
        return None
    offset = b"".join(token.text for token in tokens).rfind(text.encode())
    if offset < 0:
        return None
    ends = accumulate((len(token.text) for token in tokens), initial=-offset)
    return list(ends)[:-1]


def in_bytes(text: str, span: Span) -> Span:
    begin = len(text[: span[0]].encode())
    return begin, begin + len(text[slice(*span)].encode())


def overlaps(begin: int, token: Token, span: Span) -> bool:
    return begin < span[1] and begin + len(token.text) > span[0]


def place_of(spec: RubricSpec, aspect: AspectSpec, text: str) -> Span | None:
    """Where the verdict stands: the last value under its key, else the last of the declared form, else a last line."""
    in_json = [*re.finditer(JSON_VALUE.format(key=re.escape(reply_key(aspect))), text, re.IGNORECASE)]
    if in_json:
        return trimmed(text, in_json[-1].span(in_json[-1].lastindex or 0), " ")
    pattern = text_pattern(spec)
    try:
        declared = find_matches(pattern, text) if pattern else []
    except PatternTimedOut:
        return None
    if declared:
        return trimmed(text, declared[-1].span, " ")
    end = len(text.rstrip())
    return trimmed(text, (text.rfind("\n", 0, end) + 1, end), AROUND)


def trimmed(text: str, span: Span, marks: str) -> Span | None:
    """The span without what stands round its label; None where nothing is left."""
    inside = text[slice(*span)]
    begin, end = span[0] + len(inside) - len(inside.lstrip(marks)), span[1] - len(inside) + len(inside.rstrip(marks))
    return (begin, end) if begin < end else None


# ---- labels --------------------------------------------------------------------------------


def offered_at(spec: RubricSpec, aspect: AspectSpec, written: str) -> dict[str, float]:
    """Every label that could have stood there, in one case → what it is worth."""
    if not is_pointwise(spec):
        labels = [(aspect.label(choice).casefold(), WORTH[choice]) for choice in aspect.choices]
        return dict(labels) | {label.strip(AROUND): worth for label, worth in labels}
    decimals = len(written.partition(".")[2])
    values = values_of(aspect) or grid(aspect, max(decimals, 1))
    return {spelled(value): value for value in values} | {f"{value:.{decimals or 1}f}": value for value in values}


def grid(aspect: AspectSpec, decimals: int) -> list[float]:
    """A scale without steps, in numbers as long as the one written; none where they are too many."""
    low, high = ends_of(aspect)
    count = round((high - low) * 10**decimals) + 1
    return [round(low + place / 10**decimals, decimals) for place in range(count)] if count <= MOST_VALUES else []


def meant_by(offered: Mapping[str, float], begun: str, *, ended: bool) -> set[float]:
    """What the labels are worth that this is, or that begin so: one value, several, or none."""
    if ended:
        return {offered[begun]} if begun in offered else set()
    return {value for label, value in offered.items() if label.startswith(begun)}


# ---- probabilities -------------------------------------------------------------------------


@dataclass
class Tally:
    """How much of the probability lies on each value, and on tokens that begin labels of several."""

    on_values: dict[float, float] = field(default_factory=dict)
    ambiguous: float = 0.0

    def add(self, meant: set[float], chance: float) -> None:
        if len(meant) == 1:
            (value,) = meant
            self.on_values[value] = self.on_values.get(value, 0.0) + chance
        elif meant:
            self.ambiguous += chance

    def mean(self) -> float | None:
        told = sum(self.on_values.values())
        if told < LEAST_ON_LABELS or self.ambiguous > MOST_AMBIGUOUS * told:
            return None
        return sum(value * chance for value, chance in self.on_values.items()) / told


def mean(offered: Mapping[str, float], span: Span, tokens: Sequence[tuple[int, Token]]) -> float | None:
    """The mean worth of the labels by how likely each was; None where it cannot be told.

    Token by token: what could have stood in the place of one is counted there, and what did stand
    is carried on until it can mean one value alone.
    """
    tally, chance, begun = Tally(), 1.0, ""
    for place, (begin, token) in enumerate(tokens):
        for other, logprob in token.likeliest:
            if other != token.text:
                tally.add(instead(offered, begun, other, is_first=not place), chance * exp(logprob))
        begun += token.text[max(span[0] - begin, 0) : span[1] - begin].decode(errors="replace").casefold()
        chance *= exp(token.logprob)
        meant = meant_by(offered, begun, ended=place == len(tokens) - 1)
        if len(meant) == 1:
            tally.add(meant, chance)
            break
    return tally.mean()


def instead(offered: Mapping[str, float], begun: str, other: bytes, *, is_first: bool) -> set[float]:
    """What a token would have meant in the place of the one that stands there."""
    text = other.decode(errors="replace")
    if is_first:
        text = text.lstrip(BEFORE_LABEL)
    end = AFTER_LABEL.search(text)
    rest = text[: end.start()] if end else text
    return meant_by(offered, begun + rest.rstrip().casefold(), ended=end is not None)


def compact(token: Token) -> list[Any]:
    """What is kept of a token: its text, its log probability, and those of the likeliest others."""
    others = [[readable(other), round(logprob, 4)] for other, logprob in token.likeliest]
    return [readable(token.text), round(token.logprob, 4), others]


def readable(text: bytes) -> str:
    return storable(text.decode(errors="replace"))
