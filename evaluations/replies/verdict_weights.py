"""Verdicts weighted by the probabilities of the reply's tokens."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import exp
from typing import Any, Final

from evaluations.domain.choices import FLIPPED_CHOICES, Choice, ShownOrder
from evaluations.domain.judges import ReplyToken
from evaluations.domain.rubrics import AspectSpec, RubricSpec
from evaluations.domain.texts import replace_unstorable
from evaluations.replies.labels import LABEL_ORNAMENTS
from evaluations.replies.linear_patterns import PatternTimedOut, find_matches
from evaluations.replies.reply_format import (
    MAX_SCALE_VALUES,
    format_value,
    is_pointwise,
    reply_key,
    scale_ends,
    scale_values,
    verdict_pattern,
)
from evaluations.replies.reply_parser import ParsedReply

# The worth of a choice, from the view of A.
CHOICE_WORTH: Final[Mapping[Choice, float]] = {Choice.A: 1.0, Choice.TIE: 0.5, Choice.BOTH_BAD: 0.5, Choice.B: 0.0}
# Shares of the probability: the least on offered labels, and the most on tokens that begin several of them.
MIN_LABEL_MASS: Final = 0.5
MAX_AMBIGUOUS_MASS: Final = 0.05
# A token may hold the mark before a label and the one after it.
LABEL_PREFIX_MARKS: Final = " \t\n\"'*_`“"
LABEL_END: Final = re.compile(r"[\"'*`”,}\n]")
JSON_VALUE: Final = r'"\s*{key}\s*"\s*:\s*(?:"([^"\\]*)"|([-+.\d]+))'

Span = tuple[int, int]


@dataclass(frozen=True)
class WeighedReply:
    """Aspect key → weight where known, and the verdict's tokens with their likeliest alternatives.

    Pairwise: preference for A from 0 to 1, in terms of A and B as stored. Pointwise: the mean value.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    tokens: Mapping[str, list[Any]] = field(default_factory=dict)


def weigh_verdicts(
    spec: RubricSpec, shown: ShownOrder, parsed: ParsedReply, text: str, tokens: Sequence[ReplyToken]
) -> WeighedReply:
    """Weigh what was read from ``text`` by the probabilities of its tokens."""
    begins = token_offsets(text, tokens)
    if begins is None:
        return WeighedReply()
    weights, kept_tokens = {}, {}
    for aspect in spec.aspects:
        span = locate_verdict(spec, aspect, text)
        offered = map_offered_labels(spec, aspect, text[slice(*span)]) if span else {}
        if span is None or offered.get(text[slice(*span)].casefold()) != verdict_worth(aspect, shown, parsed):
            continue
        byte_span = span_in_bytes(text, span)
        verdict_tokens = [
            (begin, token)
            for begin, token in zip(begins, tokens, strict=True)
            if begin < byte_span[1] and begin + len(token.text) > byte_span[0]
        ]
        kept_tokens[aspect.key] = [compact_token(token) for _, token in verdict_tokens]
        weight = weighted_mean(offered, byte_span, verdict_tokens)
        if weight is not None:
            flipped = shown == ShownOrder.SWAPPED and not is_pointwise(spec)
            weights[aspect.key] = round(1 - weight if flipped else weight, 6)
    return WeighedReply(weights, kept_tokens)


def verdict_worth(aspect: AspectSpec, shown: ShownOrder, parsed: ParsedReply) -> float | None:
    """The parsed verdict as a number, in the order shown."""
    if aspect.key in parsed.scores:
        return parsed.scores[aspect.key]
    choice = parsed.choices.get(aspect.key)
    if choice is None:
        return None
    return CHOICE_WORTH[FLIPPED_CHOICES[choice] if shown == ShownOrder.SWAPPED else choice]


def token_offsets(text: str, tokens: Sequence[ReplyToken]) -> list[int] | None:
    """The byte offset of each token in the reply; None if the tokens do not spell it.

    Servers may report tokens before it (removed reasoning) and after it (an end mark).
    """
    if not tokens:
        return None
    offset = b"".join(token.text for token in tokens).rfind(text.encode())
    if offset < 0:
        return None
    ends = accumulate((len(token.text) for token in tokens), initial=-offset)
    return list(ends)[:-1]


def span_in_bytes(text: str, span: Span) -> Span:
    begin = len(text[: span[0]].encode())
    return begin, begin + len(text[slice(*span)].encode())


def locate_verdict(spec: RubricSpec, aspect: AspectSpec, text: str) -> Span | None:
    """The span of the verdict: the last value under its key, else the last declared form, else the last line."""
    in_json = [*re.finditer(JSON_VALUE.format(key=re.escape(reply_key(aspect))), text, re.IGNORECASE)]
    if in_json:
        return trim_span(text, in_json[-1].span(in_json[-1].lastindex or 0), " ")
    pattern = verdict_pattern(spec)
    try:
        declared = find_matches(pattern, text) if pattern else []
    except PatternTimedOut:
        return None
    if declared:
        return trim_span(text, declared[-1].span, " ")
    end = len(text.rstrip())
    return trim_span(text, (text.rfind("\n", 0, end) + 1, end), LABEL_ORNAMENTS)


def trim_span(text: str, span: Span, marks: str) -> Span | None:
    """The span without marks around the label; None if nothing is left."""
    inside = text[slice(*span)]
    begin, end = span[0] + len(inside) - len(inside.lstrip(marks)), span[1] - len(inside) + len(inside.rstrip(marks))
    return (begin, end) if begin < end else None


def map_offered_labels(spec: RubricSpec, aspect: AspectSpec, written: str) -> dict[str, float]:
    """Every possible label, case-folded → its worth."""
    if not is_pointwise(spec):
        labels = [(aspect.label(choice).casefold(), CHOICE_WORTH[choice]) for choice in aspect.choices]
        return dict(labels) | {label.strip(LABEL_ORNAMENTS): worth for label, worth in labels}
    decimals = len(written.partition(".")[2])
    values = scale_values(aspect) or scale_grid(aspect, max(decimals, 1))
    return {format_value(value): value for value in values} | {f"{value:.{decimals or 1}f}": value for value in values}


def scale_grid(aspect: AspectSpec, decimals: int) -> list[float]:
    """A continuous scale as numbers with these decimals; empty if they are too many."""
    low, high = scale_ends(aspect)
    count = round((high - low) * 10**decimals) + 1
    return [round(low + place / 10**decimals, decimals) for place in range(count)] if count <= MAX_SCALE_VALUES else []


def matching_worths(offered: Mapping[str, float], prefix: str, *, ended: bool) -> set[float]:
    """The worths of the labels that begin so, or that are this if it has ``ended``: one, several, or none."""
    if ended:
        return {offered[prefix]} if prefix in offered else set()
    return {value for label, value in offered.items() if label.startswith(prefix)}


@dataclass
class ProbabilityTally:
    """The probability of each value, and of tokens that begin labels of several."""

    on_values: dict[float, float] = field(default_factory=dict)
    ambiguous: float = 0.0

    def add(self, worths: set[float], chance: float) -> None:
        if len(worths) == 1:
            (value,) = worths
            self.on_values[value] = self.on_values.get(value, 0.0) + chance
        elif worths:
            self.ambiguous += chance

    def mean(self) -> float | None:
        total = sum(self.on_values.values())
        if total < MIN_LABEL_MASS or self.ambiguous > MAX_AMBIGUOUS_MASS * total:
            return None
        return sum(value * chance for value, chance in self.on_values.items()) / total


def weighted_mean(offered: Mapping[str, float], span: Span, tokens: Sequence[tuple[int, ReplyToken]]) -> float | None:
    """The mean worth of the labels by probability; None if it is unknown.

    Token by token: alternatives are counted at each position, and the actual text is followed until it can only mean
    one value.
    """
    tally, chance, prefix = ProbabilityTally(), 1.0, ""
    for place, (begin, token) in enumerate(tokens):
        for other, logprob in token.likeliest:
            if other != token.text:
                tally.add(alternative_worth(offered, prefix, other, is_first=not place), chance * exp(logprob))
        prefix += token.text[max(span[0] - begin, 0) : span[1] - begin].decode(errors="replace").casefold()
        chance *= exp(token.logprob)
        worths = matching_worths(offered, prefix, ended=place == len(tokens) - 1)
        if len(worths) == 1:
            tally.add(worths, chance)
            break
    return tally.mean()


def alternative_worth(offered: Mapping[str, float], prefix: str, other: bytes, *, is_first: bool) -> set[float]:
    """The worth of another token at the verdict's position."""
    text = other.decode(errors="replace")
    if is_first:
        text = text.lstrip(LABEL_PREFIX_MARKS)
    end = LABEL_END.search(text)
    label = text[: end.start()] if end else text
    return matching_worths(offered, prefix + label.rstrip().casefold(), ended=end is not None)


def compact_token(token: ReplyToken) -> list[object]:
    """A token for storage: its text, its log probability, and those of the likeliest alternatives."""
    rows = [(token.text, token.logprob), *token.likeliest]
    readable = [[replace_unstorable(text.decode(errors="replace")), round(logprob, 4)] for text, logprob in rows]
    return [*readable[0], readable[1:]]
