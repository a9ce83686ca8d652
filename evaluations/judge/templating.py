"""Pasted prompts: their placeholders are mapped to fields, filled once, and never interpreted."""

import re
from collections.abc import Mapping
from typing import Final

LITERAL: Final = "literal"  # looks like a placeholder and stays as it stands
# What both kinds of prompt may ask for, and what only one kind has.
SHARED_FIELDS: Final = ("query", "context", "reference", "examples", "verdict_key", "rationale_key", LITERAL)
PAIRWISE_FIELDS: Final[tuple[str, ...]] = ("response_a", "response_b")
POINTWISE_FIELDS: Final[tuple[str, ...]] = ("response",)
FIELDS: Final = (*SHARED_FIELDS, *PAIRWISE_FIELDS, *POINTWISE_FIELDS)

NAMES: Final = {
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
    "verdict_key": "verdict_key score_key metric metric_name metric_key",
    "rationale_key": "reason_key rationale_key explanation_key reasoning_key",
}
FIELD_OF: Final = {name: field for field, names in NAMES.items() for name in names.split()}
JUDGED: Final = (
    r"(?:candidate|response|answer|output|assistant|completion|generation|prediction|model|summary|text|story"
    r"|回答|答案|回复|输出|助手|模型|ответ|antwort|respuesta)"
)
FIRST: Final = re.compile(rf"(?:orig_|model_)?{JUDGED}s?_?(?:a|1|one)|(?:baseline|first)(?:_model)?(?:_{JUDGED})?")
SECOND: Final = re.compile(rf"(?:orig_|model_)?{JUDGED}s?_?(?:b|2|two)|second(?:_model)?(?:_{JUDGED})?")

NAME: Final = r"[^\W\d]\w{0,80}(?:\.\w{1,80}){0,5}"
# In doubled braces a name may have other parts, too: {{user-question}}.
LOOSE_NAME: Final = rf"{NAME}(?:[ -][\w.]{{1,80}}){{0,4}}"
# {{input}}, {{{input}}}, {{ input }}, {{&input}}, {{- input -}} and {{ input | trim }}, as mustache and Jinja write it.
DOUBLED: Final = (
    rf"\{{\{{\{{[ \t]{{0,9}}{LOOSE_NAME}[ \t]{{0,9}}\}}\}}\}}"
    rf"|\{{\{{-?[ \t]{{0,9}}[&$.]?[ \t]{{0,9}}{LOOSE_NAME}[ \t]{{0,9}}"
    rf"(?:\|[ \t]{{0,9}}(?:trim|safe|string)[ \t]{{0,9}}){{0,3}}-?\}}\}}"
)
# {prompt}, {VERDICT_KEY}, {$instruction}, ${input} and {data.input}. A brace of literal JSON is followed by a quote, a
# space or a line end, and is left alone.
SINGLE: Final = rf"\$?\{{\$?{NAME}\}}"
# These may also be words of the prompt: they are placeholders where the name is a known one, or another of the style.
NAMED: Final = {
    "spaced": rf"\{{[ \t]{{0,9}}{LOOSE_NAME}[ \t]{{0,9}}\}}",
    "angles": rf"<<\s{{0,9}}{NAME}\s{{0,9}}>>",
    "percent": rf"%\({NAME}\)s",
    "dollar": rf"(?<![\w$\\])\${NAME}(?![\w$])",
    "square": rf"(?<!\[)\[\[\s?{NAME}\s?\]\](?!\])",
}
PLACEHOLDER: Final = re.compile(
    "|".join((f"(?P<doubled>{DOUBLED})|(?P<single>{SINGLE})", *(f"(?P<{name}>{one})" for name, one in NAMED.items())))
)
# Braces with several words are prose unless the words are a known name; brackets are so for a verdict, too.
LONE: Final = {"spaced", "square"}
TEXT_FIELDS: Final = ("query", "context", "reference")
# What only the engine of a template language can fill: blocks, expressions, and places that are numbered.
UNFILLABLE: Final = re.compile(
    r"\{%-?\s{0,9}\w[^%{}\n]{0,200}%\}|\{#[^#{}]{1,200}#\}|<%[=#-]?\s?[\w.]{1,80}[^%\n]{0,200}%>"
    rf"|\{{\{{-?\s{{0,9}}{LOOSE_NAME}\s{{0,9}}-?\}}\}}"
    r"|\{\{=[^{}\n]{1,20}=\}\}|\{\{\s{0,9}(?:@|\.{0,2}/)[\w./-]{1,80}\s{0,9}\}\}"
    rf"|\$\{{[^{{}}\n\"']{{0,3}}{NAME}[^{{}}\n]{{1,200}}\}}|\{{{NAME}\([^{{}}()\n]{{0,80}}\)\}}|%\({NAME}\)[a-rt-z]\b"
    r"|\{\{-?\s{0,9}[#/^>!~][^{}\n]{0,200}\}\}"
    rf"|\{{\{{-?\s{{0,9}}{NAME}\s{{0,9}}[(\[|+.?][^{{}}\n]{{0,200}}\}}\}}"
    rf"|\{{\{{-?\s{{0,9}}{NAME}\s{{1,9}}(?:or|and|if|not|is|in|~)\s[^{{}}\n]{{0,200}}\}}\}}"
    rf"|\{{{NAME}(?:\[[\w'\"]{{1,80}}\]|![rsa])\}}"
    r"|(?<![\w{}\\)\]])\{\d\}(?!\})"
    r"|(?<![\w%])%s(?!\w)"
)


# Places that no tool fills: they count where the name is a known one.
UNKNOWN_STYLE: Final = re.compile(
    r"(?<!\w)__[A-Za-z]\w{1,60}?__(?!\w)|(?<![\w%])%[A-Za-z]\w{1,60}%(?!\w)|｛\s?\w{1,60}\s?｝"
    r"|\[(?:insert|paste) (?:the )?[\w ]{1,60}\]",
    re.IGNORECASE,
)
AROUND_NAME: Final = re.compile(r"^\W*_*(?:(?:insert|paste) (?:the )?)?|(?: here)?_*\W*$", re.IGNORECASE)


def placeholders_in(template: str) -> list[str]:
    """Every placeholder of the text once, its marks included, in the order of first use."""
    found = list(PLACEHOLDER.finditer(template))
    fields = {
        one.lastgroup: {field_of(other[0]) for other in found if other.lastgroup == one.lastgroup} for one in found
    }
    styles = {style for style, known in fields.items() if known - {None}} | {"doubled", "single"}
    styles -= set() if fields.get("square", set()) & set(TEXT_FIELDS) else {"square"}
    found = [one for one in found if one.lastgroup in styles and (one.lastgroup not in LONE or field_of(one[0]))]
    return list(dict.fromkeys(one[0] for one in found))


def is_doubled(placeholder: str) -> bool:
    return placeholder.startswith("{{")


def unfillable_in(template: str, mapping: Mapping[str, str]) -> list[str]:
    """What the text leaves to a template engine, once each; what the mapping names stays as it is."""
    found = dict.fromkeys(one[0] for one in UNFILLABLE.finditer(template))
    odd = (one[0] for one in UNKNOWN_STYLE.finditer(template))
    found |= dict.fromkeys(one for one in odd if field_named(AROUND_NAME.sub("", one)))
    return [one for one in found if one not in mapping and not PLACEHOLDER.fullmatch(one)]


def is_template(mapping: Mapping[str, str]) -> bool:
    """Whether anything is filled in: a rubric that only keeps words in braces as they are is none."""
    return any(field != LITERAL for field in mapping.values())


def left_out_of(mapping: Mapping[str, str]) -> tuple[str, ...]:
    """The texts of a query that a pasted prompt has no placeholder for; nothing in the built-in layout, which has all.

    The query is the whole conversation before the responses.
    """
    return tuple(field for field in TEXT_FIELDS if field not in mapping.values()) if is_template(mapping) else ()


def field_of(placeholder: str) -> str | None:
    """What a placeholder means by its name; None where that says nothing.

    Of ``inputs.question`` the last part counts, of ``reference_outputs.answer`` and ``outputs.body`` the first.
    """
    whole = re.search(LOOSE_NAME, placeholder)
    parts = whole[0].split(".") if whole else [""]
    if len(parts) > 1 and parts[-1] in ("value", "text", "content", "body") and field_named(parts[-2]):
        parts.pop()
    first, last = field_named(parts[0]), field_named(parts[-1])
    return first if first == "reference" or (last is None and first == "response") else last


def field_named(name: str) -> str | None:
    name = re.sub(r"(?<=[a-z\d])(?=[A-Z])|[ -]", "_", name).casefold()
    if FIRST.fullmatch(name):
        return "response_a"
    if SECOND.fullmatch(name):
        return "response_b"
    return FIELD_OF.get(name)


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
