"""Checks that a rubric version can be put to a judge, before anything is asked."""

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final

from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.rubrics import AspectSpec, RubricSpec
from evaluations.judge_prompts.few_shot_examples import VERDICT_FIELDS, example_titles, example_verdict
from evaluations.judge_prompts.placeholders import (
    PAIRWISE_FIELDS,
    POINTWISE_FIELDS,
    is_template,
    refuse_unresolved_placeholders,
)
from evaluations.replies.labels import LABEL_ORNAMENTS, fold_label
from evaluations.replies.linear_patterns import PATTERN_FAULTS, refuse_pattern
from evaluations.replies.re2_translation import PatternRefused
from evaluations.replies.reply_format import (
    JSON_FORMAT,
    SCALE_TOLERANCE,
    TWO_STEP_FORMAT,
    answer_format,
    format_range,
    is_pointwise,
    parse_band_numbers,
    reply_key,
    reply_labels,
    snap_to_scale,
    verdict_pattern,
    wants_text,
)
from evaluations.replies.verdict_values import UnreadableReply, parse_verdict_value

MAX_KEY_LENGTH: Final = 60
MAX_FORMAT_LENGTH: Final = 400


def refuse_unusable_rubric(spec: RubricSpec) -> None:
    """InputRefused with the first reason why judges cannot use the rubric."""
    refuse_missing_aspects(spec)
    for aspect in spec.aspects:
        if is_pointwise(spec):
            refuse_invalid_scale(aspect)
        else:
            refuse_invalid_labels(aspect)
    refuse_invalid_format(spec)
    refuse_invalid_keys(spec)
    refuse_unresolved_placeholders(spec)
    if is_template(spec.placeholders):
        refuse_incomplete_template(spec)
    if wants_text(spec):
        refuse_unreadable_labels(spec)
    for number, example in enumerate(spec.few_shot, start=1):
        refuse_invalid_example(spec, example, number)


def refuse_missing_aspects(spec: RubricSpec) -> None:
    if not spec.aspects:
        raise InputRefused("This rubric has no aspects. Create a version with at least one.")
    keys = [aspect.key for aspect in spec.aspects]
    repeated = next((key for key in keys if keys.count(key) > 1), None)
    if repeated is not None:
        raise InputRefused(f"“{repeated}” is listed twice. List each aspect once.")
    if sorted(spec.output_order) != sorted(keys):
        raise InputRefused("The reply order must list every aspect once.")


def refuse_invalid_labels(aspect: AspectSpec) -> None:
    if aspect.scale_min is not None or aspect.scale_max is not None or aspect.scale_step is not None:
        raise InputRefused(f"“{aspect.key}” is pairwise and cannot have a scale. Leave the scale blank.")
    unknown = sorted(set(aspect.labels) - set(Choice))
    if unknown:
        raise InputRefused(
            f"“{aspect.key}”: unknown choice “{unknown[0][:40]}”. Only {', '.join(Choice)} can have labels."
        )
    labels = [fold_label(label.strip(LABEL_ORNAMENTS)) for label in reply_labels(aspect)]
    if len(set(labels)) < len(labels) or "" in labels:
        raise InputRefused(f"Give each choice of “{aspect.key}” a different label.")
    if any(len(label.splitlines()) > 1 for label in labels):
        raise InputRefused(f"Labels of “{aspect.key}” must be one line each.")


def refuse_invalid_scale(aspect: AspectSpec) -> None:
    low, high, step = aspect.scale_min, aspect.scale_max, aspect.scale_step
    if low is None or high is None or not (isfinite(low) and isfinite(high) and low < high):
        raise InputRefused(f"“{aspect.key}”: the highest score must be above the lowest.")
    if step is not None and not divides_evenly(step, high - low):
        raise InputRefused(f"“{aspect.key}”: the scale must be a whole number of steps.")
    if not 0 <= aspect.tie_margin < high - low:
        raise InputRefused(f"“{aspect.key}”: the tie margin must be at least 0 and less than the scale’s range.")
    for band in aspect.scale_labels:
        numbers = parse_band_numbers(band)
        if not numbers or not all(low <= number <= high for number in numbers):
            raise InputRefused(f"“{band}” is not on the scale of “{aspect.key}”: {format_range(aspect)}.")


def divides_evenly(step: float, width: float) -> bool:
    if not isfinite(step) or step <= 0 or width / step > 1e6:
        return False
    return abs(width / step - round(width / step)) <= SCALE_TOLERANCE * max(1.0, width / step)


def refuse_invalid_format(spec: RubricSpec) -> None:
    if answer_format(spec) is None:
        raise InputRefused(
            f"Unknown output format “{spec.answer_format}”. Use {JSON_FORMAT}, {TWO_STEP_FORMAT} or text."
        )
    if len(spec.answer_format) > MAX_FORMAT_LENGTH:
        raise InputRefused("The verdict pattern is too long. The maximum is 395 characters.")


def refuse_invalid_keys(spec: RubricSpec) -> None:
    """Refuse reply keys with two meanings."""
    verdicts = [reply_key(aspect) for aspect in spec.aspects]
    top_level = [spec.rationale_key, *([spec.choices_key] if spec.choices_key else verdicts)]
    for keys in (verdicts, top_level):
        refuse_duplicate_keys(keys)
    for key in (spec.rationale_key, spec.choices_key, *verdicts):
        if len(key) > MAX_KEY_LENGTH:
            raise InputRefused(f"The reply key “{key[:80]}” is too long. The maximum is {MAX_KEY_LENGTH} characters.")


def refuse_duplicate_keys(keys: Sequence[str]) -> None:
    folded = [fold_label(key) for key in keys]
    if "" in folded:
        raise InputRefused("Every part of the reply needs a key: one for the rationale and one for each verdict.")
    repeated = next((key for key in keys if folded.count(fold_label(key)) > 1), None)
    if repeated is not None:
        raise InputRefused(f"“{repeated}” is used for two parts of the reply. Give each its own key.")


def refuse_unreadable_labels(spec: RubricSpec) -> None:
    if len(spec.aspects) > 1:
        raise InputRefused("Plain-text output supports one aspect. Use JSON for more.")
    try:
        pattern = re.compile(verdict_pattern(spec))
    except PATTERN_FAULTS as error:
        raise InputRefused(f"The verdict pattern is not a valid regular expression: {error}.") from None
    if pattern.groups > 1:
        raise InputRefused("The verdict pattern may have only one group, the label. Write other groups as (?:…).")


def refuse_slow_pattern(spec: RubricSpec) -> None:
    """InputRefused if a new rubric's pattern cannot be matched in linear time. Stored ones stay valid."""
    if not wants_text(spec) or not verdict_pattern(spec):
        return
    try:
        refuse_pattern(verdict_pattern(spec))
    except PatternRefused as refused:
        raise InputRefused(f"The verdict pattern cannot be used: {refused}.") from None


def refuse_incomplete_template(spec: RubricSpec) -> None:
    needed, foreign = (POINTWISE_FIELDS, PAIRWISE_FIELDS) if is_pointwise(spec) else (PAIRWISE_FIELDS, POINTWISE_FIELDS)
    filled = {field: placeholder for placeholder, field in spec.placeholders.items()}
    missing = [field for field in needed if field not in filled]
    if missing:
        raise InputRefused(f"The prompt has no placeholder for {' and '.join(missing)}. Map a placeholder to each.")
    for field in foreign:
        if field in filled:
            raise InputRefused(
                f"{filled[field]} is mapped to {field}, which {spec.kind} rubrics do not have. Map it to another field."
            )
    if spec.few_shot and "examples" not in filled:
        raise InputRefused("The prompt has no placeholder for the examples. Map one to “examples”.")
    if len(spec.aspects) > 1 and "verdict_key" in filled:
        raise InputRefused(f"{filled['verdict_key']} holds one verdict. Use a single aspect, or map it to literal.")


def refuse_invalid_example(spec: RubricSpec, example: Mapping[str, object], number: int) -> None:
    fields = (*example_titles(spec), *VERDICT_FIELDS)
    unknown = next((key for key in example if key not in fields), None)
    if unknown is not None:
        raise InputRefused(
            f"Example {number}: unknown field “{unknown}”. A {spec.kind} example has {', '.join(fields)}."
        )
    for key in (*example_titles(spec), "reasoning"):
        if not isinstance(example.get(key, ""), str):
            raise InputRefused(f"Example {number}: “{key}” must be text.")
    for aspect in spec.aspects:
        refuse_invalid_example_verdict(spec, aspect, example, number)


def refuse_invalid_example_verdict(
    spec: RubricSpec, aspect: AspectSpec, example: Mapping[str, object], number: int
) -> None:
    """Refuse an example without a valid verdict on an aspect: examples teach the format."""
    verdict = example_verdict(spec, aspect, example)
    is_valid = is_scale_value(aspect, verdict) if is_pointwise(spec) else verdict in aspect.choices
    if is_valid:
        return
    try:
        parse_verdict_value(spec, aspect, verdict)
    except UnreadableReply:
        values = ", ".join(reply_labels(aspect)) or format_range(aspect)
        raise InputRefused(f"Example {number} needs a verdict for “{aspect.key}”: {values}.") from None


def is_scale_value(aspect: AspectSpec, value: object) -> bool:
    """A number, or a number written as a word."""
    try:
        return snap_to_scale(aspect, float(str(value))) is not None
    except ValueError:
        return False
