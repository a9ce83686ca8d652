"""Pasted prompts: their placeholders are mapped to fields, filled once, and never interpreted."""

import re
from collections.abc import Mapping
from typing import Final

# The three styles met in prompts that people paste: {$instruction}, {prompt}, {VERDICT_KEY}.
# A brace of literal JSON is followed by a quote, a space or a line end, and is left alone.
PLACEHOLDER: Final = re.compile(r"\{\$?[A-Za-z_][A-Za-z0-9_]*\}")

LITERAL: Final = "literal"  # looks like a placeholder and stays as it stands
# What both kinds of prompt may ask for, and what only one kind has.
SHARED_FIELDS: Final = ("query", "context", "reference", "examples", "verdict_key", "rationale_key", LITERAL)
PAIRWISE_FIELDS: Final[tuple[str, ...]] = ("response_a", "response_b")
POINTWISE_FIELDS: Final[tuple[str, ...]] = ("response",)
FIELDS: Final = (*SHARED_FIELDS, *PAIRWISE_FIELDS, *POINTWISE_FIELDS)


def placeholders_in(template: str) -> list[str]:
    """Every placeholder of the text once, braces included, in the order of first use."""
    return list(dict.fromkeys(PLACEHOLDER.findall(template)))


def unknown_placeholders(template: str, mapping: Mapping[str, str]) -> list[str]:
    """The placeholders for which the mapping names no field."""
    return [placeholder for placeholder in placeholders_in(template) if mapping.get(placeholder) not in FIELDS]


def fill(template: str, mapping: Mapping[str, str], values: Mapping[str, str]) -> str:
    """The template with every mapped placeholder replaced by its field's value, in one pass.

    What is put in is not looked at again: a response that holds ``{prompt}`` keeps it.
    """
    filled = {placeholder: values[field] for placeholder, field in mapping.items() if field != LITERAL}
    if not filled:
        return template
    anyone = re.compile("|".join(re.escape(placeholder) for placeholder in sorted(filled, key=len, reverse=True)))
    return anyone.sub(lambda found: filled[found[0]], template)
