"""The format of a reply: its fields, schema and format instruction, the values of scales."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isclose
from typing import Final

from evaluations.domain.json_values import JsonDict
from evaluations.domain.judges import AttemptStep, OutputMode, ReplyShape
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricSpec

# Scales with more values are requested as a number between their ends.
MAX_SCALE_VALUES: Final = 101
# The tolerance around a step: 0.1 + 0.2 is a value of a scale in tenths.
SCALE_TOLERANCE: Final = 1e-9
# A number in the name of a band, such as both of "0.1 - 0.3".
BAND_NUMBER: Final = re.compile(r"(?<![\d.])-?\d+(?:\.\d+)?")


def scale_ends(aspect: AspectSpec) -> tuple[float, float]:
    """The lowest and highest value; every aspect of a valid pointwise rubric has both."""
    assert aspect.scale_min is not None
    assert aspect.scale_max is not None
    return aspect.scale_min, aspect.scale_max


def scale_values(aspect: AspectSpec) -> tuple[float, ...]:
    """The values of a stepped scale, lowest first; empty if any number between the ends is valid."""
    low, high = scale_ends(aspect)
    if not aspect.scale_step:
        return ()
    count = round((high - low) / aspect.scale_step) + 1
    if count > MAX_SCALE_VALUES:
        return ()
    return tuple(round(float(low + place * aspect.scale_step), 10) for place in range(count))


def snap_to_scale(aspect: AspectSpec, number: float) -> float | None:
    """The number as a value of the scale; None if it is off the scale or no number."""
    low, high = scale_ends(aspect)
    if not low <= number <= high:  # NaN is never between
        return None
    if not aspect.scale_step:
        return float(number)
    steps = (number - low) / aspect.scale_step
    if not isclose(steps, round(steps), abs_tol=SCALE_TOLERANCE):
        return None
    return round(float(low + round(steps) * aspect.scale_step), 10)


def format_value(value: float) -> str:
    """A value as prompts and replies write it: 4, not 4.0."""
    return str(int(value)) if value == int(value) else repr(value)


def format_range(aspect: AspectSpec) -> str:
    low, high = map(format_value, scale_ends(aspect))
    in_steps = f" in steps of {format_value(aspect.scale_step)}" if aspect.scale_step else ""
    return f"a number from {low} to {high}{in_steps}"


def parse_band_numbers(band: str) -> list[float]:
    return [float(number) for number in BAND_NUMBER.findall(band)]


def scale_meanings(aspect: AspectSpec) -> list[tuple[str, str]]:
    """The meanings of values and bands, lowest first: databases need not keep their order."""
    return sorted(aspect.scale_labels.items(), key=lambda item: (next(iter(parse_band_numbers(item[0])), inf), item[0]))


JSON_FORMAT: Final = "json"
TEXT_FORMAT: Final = "text"
TWO_STEP_FORMAT: Final = "two_step"
# The instruction of the first of two requests; the verdict follows in the second.
EVALUATION_INSTRUCTION: Final = (
    "Write your evaluation now, in plain text and step by step. You will be asked for the verdict itself afterwards."
)


@dataclass(frozen=True)
class ReplyField:
    """One verdict of a reply: its key, its schema, and its placeholder in the prompt."""

    key: str
    schema: Mapping[str, object]
    shown: str


def aspects_in_reply_order(spec: RubricSpec) -> list[AspectSpec]:
    by_key = {aspect.key: aspect for aspect in spec.aspects}
    return [by_key[key] for key in spec.output_order]


def only_aspect(spec: RubricSpec, key: str) -> RubricSpec:
    """The rubric with only this aspect, its instructions unchanged."""
    return replace(spec, aspects=tuple(aspect for aspect in spec.aspects if aspect.key == key), output_order=(key,))


def reply_key(aspect: AspectSpec) -> str:
    return aspect.reply_key or aspect.key


def is_pointwise(spec: RubricSpec) -> bool:
    return spec.kind == RubricKind.POINTWISE


def reply_labels(aspect: AspectSpec) -> list[str]:
    """The labels of the choices, or of the values of a stepped scale."""
    if aspect.scale_min is not None:
        return [format_value(value) for value in scale_values(aspect)]
    return [aspect.label(choice) for choice in aspect.choices]


def answer_format(spec: RubricSpec) -> str | None:
    """The rubric's answer format: json, two_step or text; None if it is unknown."""
    kind, _, pattern = spec.answer_format.partition(":")
    formats = (TEXT_FORMAT,) if pattern else (JSON_FORMAT, TWO_STEP_FORMAT, TEXT_FORMAT)
    return kind if kind in formats else None


def wants_text(spec: RubricSpec) -> bool:
    return answer_format(spec) == TEXT_FORMAT


def wants_two_steps(spec: RubricSpec, mode: str = "") -> bool:
    """Whether rubric or judge ask for an evaluation in free text first, and for the verdict in a second request."""
    return mode == OutputMode.TWO_STEP or answer_format(spec) == TWO_STEP_FORMAT


def known_reply_shape(spec: RubricSpec, mode: str, probed_shape: str) -> ReplyShape | None:
    """The shape of a judge's replies; None if its probe has not found it yet."""
    if wants_text(spec):
        return ReplyShape.TEXT
    if probed_shape:
        return ReplyShape(probed_shape)
    return ReplyShape(mode) if mode in set(ReplyShape) else None


def verdict_pattern(spec: RubricSpec) -> str:
    """The regular expression of a verdict in text; "" if the last line is the label alone."""
    return spec.answer_format.partition(":")[2]


def asks_verdict_alone(step: AttemptStep, before: Sequence[str]) -> bool:
    """Whether this request asks for the verdict of an earlier evaluation.

    A repair follows one reply in one-step judging, and two in two-step judging.
    """
    return step == AttemptStep.SCORE or (step == AttemptStep.REPAIR and len(before) > 1)


def verdict_fields(spec: RubricSpec) -> list[ReplyField]:
    return [verdict_field(aspect) for aspect in aspects_in_reply_order(spec)]


def verdict_field(aspect: AspectSpec) -> ReplyField:
    """A stepped scale is a list of words, because constrained decoding everywhere supports only words in lists."""
    if labels := reply_labels(aspect):
        shown = json.dumps(f"<{' | '.join(labels)}>", ensure_ascii=False)
        return ReplyField(reply_key(aspect), {"type": "string", "enum": labels}, shown)
    low, high = scale_ends(aspect)
    schema = {"type": "number", "minimum": low, "maximum": high}
    return ReplyField(reply_key(aspect), schema, f"<{format_range(aspect)}>")


def build_reply_schema(spec: RubricSpec) -> JsonDict:
    """The strict JSON schema, with the rationale first so that the model reasons before it decides."""
    return strict_object({spec.rationale_key: {"type": "string"}, **verdict_properties(spec)})


def build_score_schema(spec: RubricSpec) -> JsonDict:
    """The schema of the second of two steps: the verdict alone."""
    return strict_object(verdict_properties(spec))


def verdict_properties(spec: RubricSpec) -> JsonDict:
    """The verdicts under their key, or next to the rationale if the rubric has none."""
    verdicts = {field.key: dict(field.schema) for field in verdict_fields(spec)}
    return {spec.choices_key: strict_object(verdicts)} if spec.choices_key else verdicts


def strict_object(properties: JsonDict) -> JsonDict:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def format_instruction(spec: RubricSpec, *, two_steps: bool = False) -> str:
    """The part of the first request that describes the answer's format."""
    if two_steps or wants_two_steps(spec):
        return EVALUATION_INSTRUCTION
    if not wants_text(spec):
        return json_format_text(spec)
    # Rubrics with their own pattern describe it themselves.
    return "" if verdict_pattern(spec) else f"First write your reasons. Then {last_line_instruction(spec)}"


def json_format_text(spec: RubricSpec, *, alone: bool = False) -> str:
    """The JSON object to answer with; ``alone``: of the verdict without its reasons."""
    rationale = [] if alone else [(spec.rationale_key, '"<your reasons>"')]
    return (
        "Answer with one JSON object of this form, and with nothing after it:\n"
        f"{format_json_object([*rationale, *verdict_placeholders(spec)])}"
    )


def verdict_placeholders(spec: RubricSpec) -> list[tuple[str, str]]:
    verdicts = [(field.key, field.shown) for field in verdict_fields(spec)]
    return [(spec.choices_key, format_json_object(verdicts, "  "))] if spec.choices_key else verdicts


def format_json_object(members: Sequence[tuple[str, str]], indent: str = "") -> str:
    """An object in JSON; placeholders of numbers have no quotes."""
    lines = ",\n".join(f"{indent}  {json.dumps(key, ensure_ascii=False)}: {shown}" for key, shown in members)
    return f"{{\n{lines}\n{indent}}}"


def last_line_instruction(spec: RubricSpec) -> str:
    """The instruction for a last line, which the parser accepts with any pattern."""
    (aspect,) = spec.aspects
    labels = reply_labels(aspect)
    content = f"one of these and nothing else: {', '.join(labels)}" if labels else f"{format_range(aspect)}, alone"
    return f"end with a line that holds {content}."
