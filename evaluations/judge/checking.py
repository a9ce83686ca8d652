"""Whether a rubric version can be put to a judge at all, found out before anything is asked."""

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final

from evaluations.domain import AspectSpec, InputRefused, RubricSpec
from evaluations.judge.examples import VERDICTS, given_verdict, titles_of
from evaluations.judge.labels import AROUND, folded
from evaluations.judge.linear_patterns import PatternRefused, refuse_pattern
from evaluations.judge.replying import (
    JSON,
    TWO_STEP,
    answers_of,
    is_pointwise,
    labels_of,
    reply_key,
    text_pattern,
    wants_text,
)
from evaluations.judge.scales import NEAR, numbers_in, placed, range_shown
from evaluations.judge.templating import (
    FIELDS,
    PAIRWISE_FIELDS,
    POINTWISE_FIELDS,
    is_template,
    unfillable_in,
    unknown_placeholders,
)
from evaluations.judge.verdicts import Unreadable, verdict_for

LONGEST_KEY: Final = 60
LONGEST_FORMAT: Final = 400
MOST_NAMED: Final = 8


def refuse_unusable(spec: RubricSpec) -> None:
    """Raise InputRefused with the first thing that stands in the way."""
    refuse_without_aspects(spec)
    for aspect in spec.aspects:
        if is_pointwise(spec):
            refuse_odd_scale(aspect)
        else:
            refuse_odd_labels(aspect)
    refuse_odd_form(spec)
    refuse_odd_keys(spec)
    refuse_unresolved(spec)
    if is_template(spec.placeholders):
        refuse_open_template(spec)
    if wants_text(spec):
        refuse_unreadable_text(spec)
    for number, example in enumerate(spec.few_shot, start=1):
        refuse_odd_example(spec, example, number)


def refuse_without_aspects(spec: RubricSpec) -> None:
    if not spec.aspects:
        raise InputRefused("This rubric asks about no aspect: write a version with at least one.")
    if sorted(spec.output_order) != sorted({aspect.key for aspect in spec.aspects}):
        raise InputRefused("The order of the reply must name every aspect of the rubric once.")


# ---- what a verdict may be -----------------------------------------------------------------


def refuse_odd_labels(aspect: AspectSpec) -> None:
    if aspect.scale_min is not None or aspect.scale_max is not None or aspect.scale_step is not None:
        raise InputRefused(f"“{aspect.key}” compares two responses and can have no scale: leave the scale empty.")
    labels = [folded(label.strip(AROUND)) for label in labels_of(aspect)]
    if len(set(labels)) < len(labels) or "" in labels:
        raise InputRefused(f"The choices of “{aspect.key}” need a label each, and no two the same.")
    if any(len(label.splitlines()) > 1 for label in labels):
        raise InputRefused(f"The choices of “{aspect.key}” need labels of one line each.")


def refuse_odd_scale(aspect: AspectSpec) -> None:
    low, high, step = aspect.scale_min, aspect.scale_max, aspect.scale_step
    if low is None or high is None or not (isfinite(low) and isfinite(high) and low < high):
        raise InputRefused(f"The scale of “{aspect.key}” needs a lowest value and a higher highest one.")
    if step is not None and not divides(step, high - low):
        raise InputRefused(f"The steps of “{aspect.key}” must lead from the lowest value to the highest exactly.")
    if not 0 <= aspect.tie_margin < high - low:
        raise InputRefused(
            f"The tie margin of “{aspect.key}” must be 0 or more, and less than the whole scale: else all are ties."
        )
    for band in aspect.scale_labels:
        numbers = numbers_in(band)
        if not numbers or not all(low <= number <= high for number in numbers):
            raise InputRefused(f"“{band}” names no value of “{aspect.key}”, which is {range_shown(aspect)}.")


def divides(step: float, width: float) -> bool:
    if not isfinite(step) or step <= 0 or width / step > 1e6:
        return False
    return abs(width / step - round(width / step)) <= NEAR * max(1.0, width / step)


# ---- the form of the reply -----------------------------------------------------------------


def refuse_odd_form(spec: RubricSpec) -> None:
    if answers_of(spec) is None:
        raise InputRefused(f"A reply is read as {JSON}, as {TWO_STEP} or as text: “{spec.answer_format}” is neither.")
    if len(spec.answer_format) > LONGEST_FORMAT:
        raise InputRefused("The pattern of the verdict is too long: at most 395 characters.")


def refuse_odd_keys(spec: RubricSpec) -> None:
    """Every key of the reply stands for one thing."""
    verdicts = [reply_key(aspect) for aspect in spec.aspects]
    beside = [spec.choices_key] if spec.choices_key else verdicts
    for keys in (verdicts, [spec.rationale_key, *beside]):
        refuse_repeated(keys)
    for key in (spec.rationale_key, spec.choices_key, *verdicts):
        if len(key) > LONGEST_KEY:
            raise InputRefused(f"“{key[:80]}” is too long for a key of the reply: at most {LONGEST_KEY} characters.")


def refuse_repeated(keys: Sequence[str]) -> None:
    known = [folded(key) for key in keys]
    if "" in known:
        raise InputRefused("Every part of the reply needs a key: name the one for the reasons and for each verdict.")
    repeated = next((key for key in keys if known.count(folded(key)) > 1), None)
    if repeated is not None:
        raise InputRefused(f"“{repeated}” would be the key of two parts of the reply: give each a key of its own.")


def refuse_unreadable_text(spec: RubricSpec) -> None:
    if len(spec.aspects) > 1:
        raise InputRefused("A verdict in plain text answers one aspect: use JSON answers for more.")
    try:
        pattern = re.compile(text_pattern(spec))
    except (re.error, OverflowError, RecursionError) as error:
        raise InputRefused(f"The pattern of the verdict is not a regular expression: {error}.") from None
    if pattern.groups > 1:
        raise InputRefused("The pattern of the verdict may have one group, the label: write the others as (?:…).")


def refuse_slow_pattern(spec: RubricSpec) -> None:
    """InputRefused where a new rubric's pattern cannot be matched in linear time. Stored ones go on as they are."""
    if not wants_text(spec) or not text_pattern(spec):
        return
    try:
        refuse_pattern(text_pattern(spec))
    except PatternRefused as refused:
        raise InputRefused(f"The pattern of the verdict cannot be used: {refused}.") from None


# ---- a pasted prompt -----------------------------------------------------------------------


def refuse_unresolved(spec: RubricSpec) -> None:
    """Every placeholder has a field, in a rubric of plain instructions too: none is ever sent to a judge as it is."""
    unfillable = unfillable_in(spec.instructions, spec.placeholders)
    if unfillable:
        raise InputRefused(
            f"The prompt has {listed(unfillable)}, which only a template engine can fill: write plain placeholders "
            "such as {input} instead, or map it to literal to keep it as it is."
        )
    unknown = unknown_placeholders(spec.instructions, spec.placeholders)
    if unknown:
        raise InputRefused(
            f"The prompt asks for {listed(unknown)}: map each placeholder to one of {', '.join(FIELDS)}. "
            "“literal” keeps it as it is."
        )


def listed(found: Sequence[str]) -> str:
    return ", ".join(one[:80] for one in found[:MOST_NAMED]) + (" …" if len(found) > MOST_NAMED else "")


def refuse_open_template(spec: RubricSpec) -> None:
    needed = POINTWISE_FIELDS if is_pointwise(spec) else PAIRWISE_FIELDS
    foreign = PAIRWISE_FIELDS if is_pointwise(spec) else POINTWISE_FIELDS
    filled = {field: placeholder for placeholder, field in spec.placeholders.items()}
    missing = [field for field in needed if field not in filled]
    if missing:
        raise InputRefused(f"The pasted prompt has no place for {' and '.join(missing)}: map a placeholder to each.")
    for field in foreign:
        if field in filled:
            raise InputRefused(f"{filled[field]} means {field}, which a {spec.kind} rubric has not: map it to another.")
    if spec.few_shot and "examples" not in filled:
        raise InputRefused("The pasted prompt has no place for its examples: map a placeholder to examples.")
    if len(spec.aspects) > 1 and "verdict_key" in filled:
        raise InputRefused(
            f"{filled['verdict_key']} stands for one verdict: ask about one aspect, or map it to literal."
        )


# ---- examples ------------------------------------------------------------------------------


def refuse_odd_example(spec: RubricSpec, example: Mapping[str, Any], number: int) -> None:
    known = (*titles_of(spec), *VERDICTS)
    odd = next((key for key in example if key not in known), None)
    if odd is not None:
        raise InputRefused(f"Example {number} has “{odd}”: a {spec.kind} example holds {', '.join(known)}.")
    for key in (*titles_of(spec), "reasoning"):
        if not isinstance(example.get(key, ""), str):
            raise InputRefused(f"Example {number}: “{key}” must be a text.")
    for aspect in spec.aspects:
        refuse_odd_verdict(spec, aspect, example, number)


def refuse_odd_verdict(spec: RubricSpec, aspect: AspectSpec, example: Mapping[str, Any], number: int) -> None:
    """Every aspect is judged, by a choice or a value that the rubric offers: an example teaches the form."""
    given = given_verdict(spec, aspect, example)
    if not is_pointwise(spec) and given in aspect.choices:
        return
    if is_pointwise(spec) and is_value(aspect, given):
        return
    try:
        verdict_for(spec, aspect, given)
    except Unreadable:
        wanted = ", ".join(labels_of(aspect)) or range_shown(aspect)
        raise InputRefused(f"Example {number} needs a verdict on “{aspect.key}”: {wanted}.") from None


def is_value(aspect: AspectSpec, given: object) -> bool:
    """A number, or a number written as a word."""
    try:
        return placed(aspect, float(str(given))) is not None
    except ValueError:
        return False
