"""The form of a reply: one list, from which the schema and the format in the prompt are built."""

import json
from typing import Any, Final

from evaluations.domain import AspectSpec, RubricSpec

RATIONALE: Final = "rationale"
CHOICES: Final = "choices"
TEXT: Final = "text"


def asked_in_order(spec: RubricSpec) -> list[AspectSpec]:
    """The aspects as the reply is to give them, after the rationale."""
    by_key = {aspect.key: aspect for aspect in spec.aspects}
    return [by_key[key] for key in spec.output_order]


def labels_of(aspect: AspectSpec) -> list[str]:
    return [aspect.label(choice) for choice in aspect.choices]


def wants_text(spec: RubricSpec) -> bool:
    """Whether the verdict stands in plain text rather than in a JSON object."""
    return spec.answer_format.partition(":")[0] == TEXT


def text_pattern(spec: RubricSpec) -> str:
    """The regular expression of a verdict in text; empty where the last line is one label alone."""
    return spec.answer_format.partition(":")[2]


def reply_schema(spec: RubricSpec) -> dict[str, Any]:
    """The JSON schema, strict: the rationale first, so that the model reasons before it decides."""
    choices = {aspect.key: {"type": "string", "enum": labels_of(aspect)} for aspect in asked_in_order(spec)}
    return object_of({RATIONALE: {"type": "string"}, CHOICES: object_of(choices)})


def object_of(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def format_shown(spec: RubricSpec) -> str:
    """What the prompt says about the form of the answer."""
    if wants_text(spec):
        return text_format(spec)
    schema = reply_schema(spec)["properties"]
    shown = {
        RATIONALE: "<a few short sentences>",
        CHOICES: {key: f"<{' | '.join(one['enum'])}>" for key, one in schema[CHOICES]["properties"].items()},
    }
    return (
        "Answer with one JSON object of this form, and with nothing after it:\n"
        f"{json.dumps(shown, indent=2, ensure_ascii=False)}"
    )


def text_format(spec: RubricSpec) -> str:
    """A rubric with a pattern of its own says in its instructions what it wants to read."""
    if text_pattern(spec):
        return ""
    return (
        "First write your reasons in a few short sentences. Then end with a line that holds one of these "
        f"and nothing else: {', '.join(labels_of(spec.aspects[0]))}."
    )
