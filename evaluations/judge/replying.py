"""The form of a reply: one list of fields, from which the schema and the format in the prompt are built."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from evaluations.domain import AspectSpec, AttemptStep, RubricKind, RubricSpec
from evaluations.judge.scales import ends_of, range_shown, spelled, values_of

JSON: Final = "json"
TEXT: Final = "text"
TWO_STEP: Final = "two_step"

# What the first of two requests asks for; the verdict follows in the second.
EVALUATION_FORM: Final = (
    "Write your evaluation now, in plain text and step by step. You will be asked for the verdict itself afterwards."
)


@dataclass(frozen=True)
class ReplyField:
    """One verdict of a reply: its key, what the schema allows there, and what the prompt shows in its place."""

    key: str
    schema: Mapping[str, Any]
    shown: str


def asked_in_order(spec: RubricSpec) -> list[AspectSpec]:
    """The aspects as the reply is to give them, after the rationale."""
    by_key = {aspect.key: aspect for aspect in spec.aspects}
    return [by_key[key] for key in spec.output_order]


def only(spec: RubricSpec, key: str) -> RubricSpec:
    """The rubric with this one of its aspects alone, its instructions unchanged."""
    return replace(spec, aspects=tuple(one for one in spec.aspects if one.key == key), output_order=(key,))


def reply_key(aspect: AspectSpec) -> str:
    return aspect.reply_key or aspect.key


def is_pointwise(spec: RubricSpec) -> bool:
    return spec.kind == RubricKind.POINTWISE


def labels_of(aspect: AspectSpec) -> list[str]:
    """What the judge may call each choice, or each value of a scale in steps."""
    if aspect.scale_min is not None:
        return [spelled(value) for value in values_of(aspect)]
    return [aspect.label(choice) for choice in aspect.choices]


def answers_of(spec: RubricSpec) -> str | None:
    """How the rubric wants to be answered: json, two_step or text; None for what is none of them."""
    kind, _, pattern = spec.answer_format.partition(":")
    known = (TEXT,) if pattern else (JSON, TWO_STEP, TEXT)
    return kind if kind in known else None


def wants_text(spec: RubricSpec) -> bool:
    """Whether the verdict stands in plain text rather than in a JSON object."""
    return answers_of(spec) == TEXT


def wants_two_steps(spec: RubricSpec) -> bool:
    """Whether the rubric itself asks for an evaluation first and for its verdict in a second request."""
    return answers_of(spec) == TWO_STEP


def text_pattern(spec: RubricSpec) -> str:
    """The regular expression of a verdict in text; empty where the last line is one label alone."""
    return spec.answer_format.partition(":")[2]


def is_verdict_alone(step: AttemptStep, before: Sequence[str]) -> bool:
    """Whether this request asks for the verdict of an evaluation that was given before it.

    A repair has one reply before it where the judge answers in one step, and two where in two.
    """
    return step == AttemptStep.SCORE or (step == AttemptStep.REPAIR and len(before) > 1)


# ---- the list ------------------------------------------------------------------------------


def verdict_fields(spec: RubricSpec) -> list[ReplyField]:
    field = score_field if is_pointwise(spec) else choice_field
    return [field(aspect) for aspect in asked_in_order(spec)]


def choice_field(aspect: AspectSpec) -> ReplyField:
    return enumerated(aspect)


def score_field(aspect: AspectSpec) -> ReplyField:
    """A scale in steps is a list of words, as servers that hold a reply to a list take only words everywhere."""
    if values_of(aspect):
        return enumerated(aspect)
    low, high = ends_of(aspect)
    schema = {"type": "number", "minimum": low, "maximum": high}
    return ReplyField(reply_key(aspect), schema, f"<{range_shown(aspect)}>")


def enumerated(aspect: AspectSpec) -> ReplyField:
    labels = labels_of(aspect)
    shown = json.dumps(f"<{' | '.join(labels)}>", ensure_ascii=False)
    return ReplyField(reply_key(aspect), {"type": "string", "enum": labels}, shown)


# ---- the schema ----------------------------------------------------------------------------


def reply_schema(spec: RubricSpec) -> dict[str, Any]:
    """The JSON schema, strict: the rationale first, so that the model reasons before it decides."""
    return object_of({spec.rationale_key: {"type": "string"}, **verdict_properties(spec)})


def score_schema(spec: RubricSpec) -> dict[str, Any]:
    """The schema of the second of two steps: the verdict alone, since the reasons stand in the first."""
    return object_of(verdict_properties(spec))


def verdict_properties(spec: RubricSpec) -> dict[str, Any]:
    """The verdicts under their key, or beside the rationale where the rubric names none."""
    verdicts = {field.key: dict(field.schema) for field in verdict_fields(spec)}
    return {spec.choices_key: object_of(verdicts)} if spec.choices_key else verdicts


def object_of(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


# ---- the format in the prompt --------------------------------------------------------------


def format_shown(spec: RubricSpec, *, two_steps: bool = False) -> str:
    """What the prompt says about the form of the answer to its first request."""
    if two_steps or wants_two_steps(spec):
        return EVALUATION_FORM
    if wants_text(spec):
        return text_format(spec)
    return json_format(spec)


def json_format(spec: RubricSpec, *, alone: bool = False) -> str:
    """The JSON object that is wanted; ``alone``: of the verdict without its reasons."""
    rationale = [] if alone else [(spec.rationale_key, '"<your reasons>"')]
    return (
        "Answer with one JSON object of this form, and with nothing after it:\n"
        f"{braced([*rationale, *shown_verdicts(spec)])}"
    )


def shown_verdicts(spec: RubricSpec) -> list[tuple[str, str]]:
    verdicts = [(field.key, field.shown) for field in verdict_fields(spec)]
    return [(spec.choices_key, braced(verdicts, "  "))] if spec.choices_key else verdicts


def braced(members: Sequence[tuple[str, str]], indent: str = "") -> str:
    """An object as JSON writes it; what stands in for a number stands without quotes, as the number would."""
    lines = ",\n".join(f"{indent}  {json.dumps(key, ensure_ascii=False)}: {shown}" for key, shown in members)
    return f"{{\n{lines}\n{indent}}}"


def text_format(spec: RubricSpec) -> str:
    """A rubric with a pattern of its own says in its instructions what it wants to read."""
    if text_pattern(spec):
        return ""
    return f"First write your reasons. Then {last_line_format(spec)}"


def last_line_format(spec: RubricSpec) -> str:
    """What the reader takes in any plain text, whatever the pattern."""
    (aspect,) = spec.aspects
    labels = labels_of(aspect)
    wanted = f"one of these and nothing else: {', '.join(labels)}" if labels else f"{range_shown(aspect)}, alone"
    return f"end with a line that holds {wanted}."
