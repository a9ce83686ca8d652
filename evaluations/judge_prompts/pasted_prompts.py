"""From a pasted document to its prompts, each the start of a rubric.

Prompts are kept word for word. The meanings of their placeholders, the kind of verdict and its format are guessed; a
person sees the guess and corrects it. Unknown placeholders get no field.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from string import Formatter
from typing import Final

from evaluations.domain.errors import InputRefused
from evaluations.domain.rubrics import RubricKind, RubricSpec
from evaluations.judge_prompts.format_guesser import SHOWN_KEY, find_shown_objects, guess_format
from evaluations.judge_prompts.placeholders import PAIRWISE_FIELDS, find_placeholders, guess_field, has_double_braces
from evaluations.replies.reply_format import JSON_FORMAT, answer_format, json_format_text

MAX_DOCUMENT_LENGTH: Final = 200_000
UNNAMED_PROMPT: Final = "pasted prompt"
# NAME = """…""", a prompt in Python source.
PYTHON_TEXT: Final = re.compile(
    r"^[ \t]*(\w+)[ \t]*(?::[^=\n]+)?=[ \t]*\(?\s*[rRfFuU]{0,2}(\"\"\"|''')(.*?)\2", re.DOTALL | re.MULTILINE
)
# | 12 | …the line… |, as numbered lines come out of a table.
NUMBERED_LINE: Final = re.compile(r"\|\s*(\d+)\s*\| ?(.*)")


@dataclass(frozen=True)
class PastedPrompt:
    """One prompt of a document; ``after`` is the document up to the next prompt."""

    name: str
    text: str
    after: str = ""


def find_pasted_prompts(document: str) -> list[PastedPrompt]:
    """The texts that Python code assigns; otherwise the whole document, without line numbers."""
    document = document.replace("\r\n", "\n")
    if not document.strip():
        raise InputRefused("Paste a prompt.")
    if len(document) > MAX_DOCUMENT_LENGTH:
        raise InputRefused(f"The text is too long. The maximum is {MAX_DOCUMENT_LENGTH} characters.")
    matches = find_python_prompts(document)
    if not matches:
        return [PastedPrompt(UNNAMED_PROMPT, decode_format_text(strip_number_table(document)))]
    ends = [*(match.start() for match in matches[1:]), len(document)]
    prompts = [
        PastedPrompt(prompt_name(match[1]), decode_python_text(match[3]), document[match.end() : end])
        for match, end in zip(matches, ends, strict=True)
    ]
    return make_names_unique(prompts)


def find_python_prompts(document: str) -> list[re.Match[str]]:
    """The texts with placeholders that Python code assigns, with name and text as groups 1 and 3."""
    return [match for match in PYTHON_TEXT.finditer(document) if find_placeholders(match[3])]


def prompt_name(variable: str) -> str:
    """The lower-case name without “prompt”: SUMMARY_PROMPT is called summary."""
    words = variable.casefold().replace("_", " ").strip()
    return words.removesuffix("prompt").removesuffix("template").strip() or words


def make_names_unique(prompts: list[PastedPrompt]) -> list[PastedPrompt]:
    names = [prompt.name for prompt in prompts]
    return [
        replace(prompt, name=f"{prompt.name} {place + 1}") if names.count(prompt.name) > 1 else prompt
        for place, prompt in enumerate(prompts)
    ]


def decode_python_text(text: str) -> str:
    """A backslash at the end of a line carries it on; braces are doubled where the text is to be formatted."""
    text = text.replace("\\\n", "")
    if "{{" not in text or has_double_braced_name(text):
        return text
    return text.replace("{{", "{").replace("}}", "}")


def has_double_braced_name(text: str) -> bool:
    """Whether doubled braces contain a name: another style of placeholder, or a literal one."""
    return any(
        has_double_braces(placeholder) and " " not in placeholder.strip("{} ")
        for placeholder in find_placeholders(text)
    )


def decode_format_text(text: str) -> str:
    """The text as Python's str.format sends it, if its placeholders are in single braces and other braces doubled."""
    if "{{" not in text or has_double_braced_name(text):
        return text
    try:
        parts = list(Formatter().parse(text))
    except ValueError:
        return text
    names = [name for _, name, _, _ in parts if name is not None]
    if not names or any(f"{{{name}}}" not in find_placeholders(f"{{{name}}}") for name in names):
        return text
    return "".join(part + ("" if name is None else f"{{{name}}}") for part, name, _, _ in parts)


def strip_number_table(text: str) -> str:
    """The lines without the table that numbers them; other texts unchanged."""
    lines = [NUMBERED_LINE.fullmatch(line.strip()) for line in text.splitlines() if line.strip()]
    numbers = [int(line[1]) for line in lines if line]
    if len(numbers) < len(lines) or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return text
    return "\n".join(line[2].removesuffix("|").rstrip() for line in lines if line)


def guess_rubric(prompt: PastedPrompt, placeholders: Mapping[str, str] | None = None) -> RubricSpec:
    """The rubric that the prompt seems to be. If it wants JSON and never says so, the form is added at its end.

    ``placeholders``: their meanings as a person corrected them; guessed by default.
    """
    placeholders = guess_fields(prompt.text) if placeholders is None else placeholders
    fields = set(placeholders.values())
    is_pointwise = "response" in fields and not fields & set(PAIRWISE_FIELDS)
    kind = RubricKind.POINTWISE if is_pointwise else RubricKind.PAIRWISE
    form = guess_format(kind, prompt.text, prompt.after, fields)
    spec = RubricSpec(kind, prompt.text, form.aspects, form.output_order, placeholders, form.answer_format)
    spec = replace(spec, rationale_key=form.rationale_key, choices_key=form.choices_key)
    # Without placeholders the text is instructions, and the output format is always added.
    says_form = "json" in prompt.text.casefold() or find_shown_objects(prompt.text) or SHOWN_KEY.search(prompt.text)
    if find_placeholders(prompt.text) and answer_format(spec) == JSON_FORMAT and not says_form:
        spec = replace(spec, instructions=f"{prompt.text.rstrip()}\n\n{json_format_text(spec)}\n")
    return spec


def guess_fields(text: str) -> dict[str, str]:
    """Placeholder → field, for those whose name tells their meaning."""
    guessed = {placeholder: field for placeholder in find_placeholders(text) if (field := guess_field(placeholder))}
    # If single braces are placeholders, doubled ones may be literal: only the author knows.
    if not all(map(has_double_braces, guessed)):
        guessed = {placeholder: field for placeholder, field in guessed.items() if not has_double_braces(placeholder)}
    return add_other_response(guessed)


def add_other_response(guessed: dict[str, str]) -> dict[str, str]:
    """Map a placeholder “response” to the side that no other placeholder names."""
    sides = set(guessed.values()) & set(PAIRWISE_FIELDS)
    if len(sides) != 1:
        return guessed
    (other,) = set(PAIRWISE_FIELDS) - sides
    return {placeholder: other if field == "response" else field for placeholder, field in guessed.items()}
