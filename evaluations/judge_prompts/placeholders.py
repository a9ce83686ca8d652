"""Placeholders of pasted prompts: mapped to fields, filled once, never interpreted."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from evaluations.domain.errors import InputRefused
from evaluations.domain.rubrics import RubricSpec

LITERAL_FIELD: Final = "literal"  # looks like a placeholder and stays unchanged
# The fields of both kinds of prompt, and those of one kind.
SHARED_FIELDS: Final = ("query", "context", "reference", "examples", "verdict_key", "rationale_key", LITERAL_FIELD)
PAIRWISE_FIELDS: Final[tuple[str, ...]] = ("response_a", "response_b")
POINTWISE_FIELDS: Final[tuple[str, ...]] = ("response",)
FIELDS: Final = (*SHARED_FIELDS, *PAIRWISE_FIELDS, *POINTWISE_FIELDS)
FIELD_NAMES: Final = {
    "query": "query queries question questions instruction instructions prompt input inputs task request message "
    "problem user_input user_query user_prompt user_question user_message user_instruction input_text orig_instruction "
    "question_text 问题 題目 题目 指令 输入 提问 質問 вопрос запрос frage eingabe aufgabe pregunta",
    "context": "context contexts document documents source source_text passage article background retrieved_context "
    "retrieved_contexts retrieval_context",
    "reference": "reference references expected expected_output expected_answer expected_response reference_answer "
    "gold reference_output reference_outputs reference_response gold_answer ground_truth golden_answer correct_answer "
    "ideal_answer ideal target ground_truth_answer ref_answer orig_reference_answer 参考答案 標準答案 标准答案 эталон",
    "response": "response output outputs answer completion candidate prediction summary generation submission "
    "actual_output ai_response ai_answer model_response model_output model_answer generated_text llm_response "
    "output_text orig_response 回答 答案 回复 输出 模型回答 ответ antwort respuesta",
    "examples": "examples example examples_str examples_text few_shot fewshot few_shot_examples shots demonstrations",
    "verdict_key": "verdict_key build_score_key metric metric_name metric_key",
    "rationale_key": "reason_key rationale_key explanation_key reasoning_key",
}
FIELD_BY_NAME: Final = {name: field for field, names in FIELD_NAMES.items() for name in names.split()}
JUDGED_WORDS: Final = (
    r"(?:candidate|response|answer|output|assistant|completion|generation|prediction|model|summary|text|story"
    r"|回答|答案|回复|输出|助手|模型|ответ|antwort|respuesta)"
)
FIRST_RESPONSE_NAME: Final = re.compile(
    rf"(?:orig_|model_)?{JUDGED_WORDS}s?_?(?:a|1|one)|(?:baseline|first)(?:_model)?(?:_{JUDGED_WORDS})?"
)
SECOND_RESPONSE_NAME: Final = re.compile(
    rf"(?:orig_|model_)?{JUDGED_WORDS}s?_?(?:b|2|two)|second(?:_model)?(?:_{JUDGED_WORDS})?"
)

PLACEHOLDER_NAME: Final = r"[^\W\d]\w{0,80}(?:\.\w{1,80}){0,5}"
# In doubled braces a name may have other parts, too: {{user-question}}.
LOOSE_PLACEHOLDER_NAME: Final = rf"{PLACEHOLDER_NAME}(?:[ -][\w.]{{1,80}}){{0,4}}"
# {{input}}, {{{input}}}, {{ input }}, {{&input}}, {{- input -}} and {{ input | trim }}, as mustache and Jinja write it.
DOUBLE_BRACES: Final = (
    rf"\{{\{{\{{[ \t]{{0,9}}{LOOSE_PLACEHOLDER_NAME}[ \t]{{0,9}}\}}\}}\}}"
    rf"|\{{\{{-?[ \t]{{0,9}}[&$.]?[ \t]{{0,9}}{LOOSE_PLACEHOLDER_NAME}[ \t]{{0,9}}"
    rf"(?:\|[ \t]{{0,9}}(?:trim|safe|string)[ \t]{{0,9}}){{0,3}}-?\}}\}}"
)
# {prompt}, {VERDICT_KEY}, {$instruction}, ${input} and {data.input}. A brace of literal JSON is followed by a quote, a
# space or a line end, and is left alone.
SINGLE_BRACES: Final = rf"\$?\{{\$?{PLACEHOLDER_NAME}\}}"
# These may also be words of the prompt: they are placeholders if their name, or another of the style, is a known one.
MARK_STYLES: Final = {
    "spaced": rf"\{{[ \t]{{0,9}}{LOOSE_PLACEHOLDER_NAME}[ \t]{{0,9}}\}}",
    "angles": rf"<<\s{{0,9}}{PLACEHOLDER_NAME}\s{{0,9}}>>",
    "percent": rf"%\({PLACEHOLDER_NAME}\)s",
    "dollar": rf"(?<![\w$\\])\${PLACEHOLDER_NAME}(?![\w$])",
    "square": rf"(?<!\[)\[\[\s?{PLACEHOLDER_NAME}\s?\]\](?!\])",
}
PLACEHOLDER: Final = re.compile(
    "|".join(
        (
            f"(?P<doubled>{DOUBLE_BRACES})|(?P<single>{SINGLE_BRACES})",
            *(f"(?P<{name}>{pattern})" for name, pattern in MARK_STYLES.items()),
        )
    )
)
# Braces with several words are prose unless the words are a known name; brackets are so for a verdict, too.
LONE_STYLES: Final = {"spaced", "square"}
TEXT_FIELDS: Final = ("query", "context", "reference")
# What only the engine of a template language can fill: blocks, expressions, and places that are numbered.
TEMPLATE_SYNTAX: Final = re.compile(
    r"\{%-?\s{0,9}\w[^%{}\n]{0,200}%\}|\{#[^#{}]{1,200}#\}|<%[=#-]?\s?[\w.]{1,80}[^%\n]{0,200}%>"
    rf"|\{{\{{-?\s{{0,9}}{LOOSE_PLACEHOLDER_NAME}\s{{0,9}}-?\}}\}}"
    r"|\{\{=[^{}\n]{1,20}=\}\}|\{\{\s{0,9}(?:@|\.{0,2}/)[\w./-]{1,80}\s{0,9}\}\}"
    rf"|\$\{{[^{{}}\n\"']{{0,3}}{PLACEHOLDER_NAME}[^{{}}\n]{{1,200}}\}}|\{{{PLACEHOLDER_NAME}\([^{{}}()\n]{{0,80}}\)\}}|%\({PLACEHOLDER_NAME}\)[a-rt-z]\b"
    r"|\{\{-?\s{0,9}[#/^>!~][^{}\n]{0,200}\}\}"
    rf"|\{{\{{-?\s{{0,9}}{PLACEHOLDER_NAME}\s{{0,9}}[(\[|+.?][^{{}}\n]{{0,200}}\}}\}}"
    rf"|\{{\{{-?\s{{0,9}}{PLACEHOLDER_NAME}\s{{1,9}}(?:or|and|if|not|is|in|~)\s[^{{}}\n]{{0,200}}\}}\}}"
    rf"|\{{{PLACEHOLDER_NAME}(?:\[[\w'\"]{{1,80}}\]|![rsa])\}}"
    r"|(?<![\w{}\\)\]])\{\d\}(?!\})"
    r"|(?<![\w%])%s(?!\w)"
)


# Placeholders that no tool fills: they count if their name is a known one.
UNKNOWN_PLACEHOLDER_STYLE: Final = re.compile(
    r"(?<!\w)__[A-Za-z]\w{1,60}?__(?!\w)|(?<![\w%])%[A-Za-z]\w{1,60}%(?!\w)|｛\s?\w{1,60}\s?｝"
    r"|\[(?:insert|paste) (?:the )?[\w ]{1,60}\]",
    re.IGNORECASE,
)
NAME_ORNAMENTS: Final = re.compile(r"^\W*_*(?:(?:insert|paste) (?:the )?)?|(?: here)?_*\W*$", re.IGNORECASE)


def find_placeholders(template: str) -> list[str]:
    """Every placeholder of the text once, its marks included, in the order of first use."""
    matches = [(match.lastgroup, match[0], guess_field(match[0])) for match in PLACEHOLDER.finditer(template)]
    styles = {"doubled", "single", *(style for style, _, field in matches if field)}
    if not any(style == "square" and field in TEXT_FIELDS for style, _, field in matches):
        styles -= {"square"}
    placeholders = [
        placeholder for style, placeholder, field in matches if style in styles and (style not in LONE_STYLES or field)
    ]
    return list(dict.fromkeys(placeholders))


def has_double_braces(placeholder: str) -> bool:
    return placeholder.startswith("{{")


def find_template_syntax(template: str, mapping: Mapping[str, str]) -> list[str]:
    """The distinct template expressions in a text, except for the placeholders of the mapping."""
    syntax = [match[0] for match in TEMPLATE_SYNTAX.finditer(template)]
    unknown = (match[0] for match in UNKNOWN_PLACEHOLDER_STYLE.finditer(template))
    syntax += [text for text in unknown if guess_field_by_name(NAME_ORNAMENTS.sub("", text))]
    return [text for text in dict.fromkeys(syntax) if text not in mapping and not PLACEHOLDER.fullmatch(text)]


def is_template(mapping: Mapping[str, str]) -> bool:
    """Whether anything is filled in: a rubric that only keeps words in braces as they are is none."""
    return any(field != LITERAL_FIELD for field in mapping.values())


def find_unplaced_fields(mapping: Mapping[str, str]) -> tuple[str, ...]:
    """The texts of a query that a pasted prompt has no placeholder for; nothing in the built-in layout, which has all.

    The query is the whole conversation before the responses.
    """
    return tuple(field for field in TEXT_FIELDS if field not in mapping.values()) if is_template(mapping) else ()


def guess_field(placeholder: str) -> str | None:
    """Guess the field of a placeholder from its name, or None.

    Of ``inputs.question`` the last part counts, of ``reference_outputs.answer`` and ``outputs.body`` the first.
    """
    match = re.search(LOOSE_PLACEHOLDER_NAME, placeholder)
    parts = match[0].split(".") if match else [""]
    if len(parts) > 1 and parts[-1] in ("value", "text", "content", "body") and guess_field_by_name(parts[-2]):
        parts.pop()
    first, last = guess_field_by_name(parts[0]), guess_field_by_name(parts[-1])
    return first if first == "reference" or (last is None and first == "response") else last


def guess_field_by_name(name: str) -> str | None:
    name = re.sub(r"(?<=[a-z\d])(?=[A-Z])|[ -]", "_", name).casefold()
    if FIRST_RESPONSE_NAME.fullmatch(name):
        return "response_a"
    if SECOND_RESPONSE_NAME.fullmatch(name):
        return "response_b"
    return FIELD_BY_NAME.get(name)


def find_unmapped_placeholders(template: str, mapping: Mapping[str, str]) -> list[str]:
    """The placeholders for which the mapping names no field."""
    return [placeholder for placeholder in find_placeholders(template) if mapping.get(placeholder) not in FIELDS]


def fill_template(template: str, mapping: Mapping[str, str], values: Mapping[str, str]) -> str:
    """The template with every mapped placeholder replaced by its field's value, in one pass.

    Values are not searched for placeholders: a response that holds ``{prompt}`` keeps it.
    """
    filled = {placeholder: values[field] for placeholder, field in mapping.items() if field != LITERAL_FIELD}
    if not filled:
        return template
    pattern = re.compile("|".join(re.escape(placeholder) for placeholder in sorted(filled, key=len, reverse=True)))
    return pattern.sub(lambda match: filled[match[0]], template)


MAX_NAMES_LISTED: Final = 8


def refuse_unresolved_placeholders(spec: RubricSpec) -> None:
    """Refuse placeholders without a field, in plain instructions too: none is ever sent to a judge."""
    if unfillable := find_template_syntax(spec.instructions, spec.placeholders):
        raise InputRefused(
            f"The prompt has {list_names(unfillable)}, which needs a template engine. Use plain "
            f"placeholders such as {{input}}, or map it to literal to keep it."
        )
    if unknown := find_unmapped_placeholders(spec.instructions, spec.placeholders):
        raise InputRefused(
            f"Unknown placeholders: {list_names(unknown)}. Map each to one of {', '.join(FIELDS)}; "
            "“literal” keeps the text unchanged."
        )


def list_names(names: Sequence[str]) -> str:
    return ", ".join(name[:80] for name in names[:MAX_NAMES_LISTED]) + (" …" if len(names) > MAX_NAMES_LISTED else "")
