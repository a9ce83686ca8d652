"""The reply format of a pasted prompt, guessed from what the document shows."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from evaluations.domain.choices import Choice
from evaluations.domain.rubrics import AspectSpec, RubricKind
from evaluations.replies.labels import fold_label
from evaluations.replies.reply_format import JSON_FORMAT, TEXT_FORMAT, TWO_STEP_FORMAT, parse_band_numbers

OVERALL_ASPECT: Final = AspectSpec("overall", "Overall", "")
METRIC_ASPECT: Final = AspectSpec("correctness", "Correctness", "", reply_key="correctness")
RATIONALE_KEYS: Final = {
    *("rationale", "reason", "reasons", "reasoning", "explanation", "justification"),
    *("analysis", "thoughts", "feedback", "critique", "comment", "comments", "why"),
}
VERDICT_KEYS: Final = {
    *("verdict", "choice", "winner", "preference", "score", "rating", "grade", "judgment", "judgement", "decision"),
}
CHOICE_BY_SIDE: Final = {
    **dict.fromkeys(("a", "1", "first"), Choice.A),
    **dict.fromkeys(("b", "2", "second"), Choice.B),
    **dict.fromkeys(("tie", "same", "c", "equal", "draw"), Choice.TIE),
    **dict.fromkeys(("both_bad", "bad"), Choice.BOTH_BAD),
}

# The words before a verdict in plain text, or of a tag around it.
VERDICT_WORDS: Final = r"(?:final |overall |my )?(?:verdict|winner|choice|preference|answer|decision|judge?ment)"
SCORE_WORDS: Final = r"(?:final |overall |total )?(?:score|rating|grade)"
NUMBER: Final = r"-?\d+(?:\.\d+)?"
# A prompt that says how to answer: a format added after it would contradict it.
FORMAT_REQUEST: Final = re.compile(
    r"\b(?:(?:answer|respond|reply) (?:only |just |simply |strictly )?(?:with|in|by|as)"
    r"|(?:end|finish|conclude|begin|start) (?:your \w+ )?(?:with|by)"
    r"|(?:this|following|exact|output|answer|required|strict) format|in (?:this|the following) form"
    r"|(?:output|print|return|write) (?:only|just|either|exactly|one|a single|the word)"
    r"|only (?:output|print|return|write|answer)|on the last line"
    r"|(?:answer|respond|reply|output|print|return|write|say)\b[^.\n]{0,40}\bonly"
    r"|(?:your )?(?:answer|response|reply|output) (?:must|should|has to|is to) (?:only )?be"
    r"|(?:just|simply) (?:answer|respond|reply|say)|(?:one|a single) (?:word|letter|character|digit|number)"
    r"|one of:)\b"
    rf"|^[^\w\n]*{VERDICT_WORDS}[ \t*]*:|</\w+>[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)

# How many objects of a text are examined, the last ones: prompts show the format at their end.
MAX_OBJECTS: Final = 50
BRACE: Final = re.compile(r"[{}]")
DEFAULT_SCALE: Final = ["1", "5"]
# A value that a shown object leaves without quotes, such as <1-5>.
UNQUOTED_VALUE: Final = re.compile(r':[ \t]*([^\s"{\[,}][^,}\n]*)')
MAX_OPTIONS_LENGTH: Final = 200  # characters; more are prose
# What may part the options in "[A or B or tie]".
OPTION_SEPARATOR: Final = re.compile(r"\s+or\s+|\s*[|/,]\s*")
# An object that is shown as Python or JavaScript write it: its keys in other quotes, or in none.
# An object with a verdict's key that is no JSON, such as {"choice": "A" or "B"}.
SHOWN_KEY: Final = re.compile(r"\{\s*[\"'“`]?\w{1,40}[\"'”`]?\s{0,3}:\s?[\"'<“\[]?\w")
SHOWN_OBJECT_START: Final = re.compile(r"\{(?=\s*(?:[\"'}]|[A-Za-z_]\w*\s*:))")
BARE_KEY: Final = re.compile(r"([{,]\s*)'?([A-Za-z_]\w*)'?\s*:(?!:)")
QUOTED_TEXT: Final = re.compile(r"[\"“'‘`]([^\"“”'‘’`\n]{1,40})[\"”'’`]")
OPENS_QUOTE, ENDS_QUOTE, BETWEEN_TWO = r"[\"“'‘`*(\[]{0,2}", r"[\"”'’`*)\]]{0,2}", r"\s?(?:,|/|\||\bor\b)\s?(?:or\s)?"
BARE_OPTIONS: Final = re.compile(
    r"\b(?:with|only|either|exactly|of|say|output|print|return|write|word|letter|answer|respond|reply|be|choose|pick)s?:?\s"
    rf"{OPENS_QUOTE}(A|1){ENDS_QUOTE}{BETWEEN_TWO}{OPENS_QUOTE}(B|2)\b{ENDS_QUOTE}"
    rf"(?:{BETWEEN_TWO}{OPENS_QUOTE}(tie|same|C|equal|draw)\b)?",
    re.IGNORECASE,
)
TAGGED_TEXT: Final = re.compile(r"<(\w{1,40})>\s{0,9}([^<>\n]{1,60}?)\s{0,9}</\1>")
NAMED_VERDICT: Final = re.compile(
    rf"^[^\w\n]*({VERDICT_WORDS})[ \t*]*:[ \t*]*(\S[^\n]{{0,60}})$", re.IGNORECASE | re.MULTILINE
)
NAMED_SCORE: Final = re.compile(
    rf"^[^\w\n]*({SCORE_WORDS})[ \t*]*:[ \t]*(?:[<\[(_X\d][^\n]*)?$", re.IGNORECASE | re.MULTILINE
)
# What may part a verdict from the word before it: no sign that says something of it.
BEFORE_LABEL: Final = r"[\s:：=*_\"'“(\[]"
# What may follow a verdict that ends a reply.
LABEL_ENDING: Final = r"[\s.\"'*]*\Z"
NAMED_FIELD: Final = re.compile(r"[\"'`]?\b([A-Za-z_]\w*)[\"'`]? field\b")
QUOTED_LABEL: Final = re.compile(r"^[ \t]*[\"']([^\"'\n]{1,40})[\"'][ \t]*:", re.MULTILINE)
ENUM_CLASS: Final = re.compile(r"^class \w+\([^)]*Enum\):\s*\n((?:[ \t]+\w+[ \t]*=[^\n]*\n?|[ \t]*\n)+)", re.MULTILINE)
ENUM_VALUE: Final = re.compile(r"=[ \t]*[\"']?([^\"'\n#]+)")
SCALE_BAND: Final = re.compile(
    r"^[ \t\-*•]*?(-?\d+(?:\.\d+)?(?:\s*[-–]\s*\d+(?:\.\d+)?)?)\**[ \t]*:[ \t*]*(\S.*)$", re.MULTILINE
)
SCALE_ENDS: Final = re.compile(
    r"(?:from|scale of|between)[ \t*]+(-?\d+(?:\.\d+)?)[ \t*]*(?:to|-|–|and)[ \t*]*(-?\d+(?:\.\d+)?)", re.IGNORECASE
)

SCALE_RANGE: Final = re.compile(r"[<\[(\"'“]\s?(-?\d+(?:\.\d+)?)\s?(?:to|-|–)\s?(-?\d+(?:\.\d+)?)\s?[>\])\"'”]")
CONTINUOUS_WORDS: Final = re.compile(r"\b(?:continuous|decimals?|float|fractional)\b", re.IGNORECASE)


@dataclass(frozen=True)
class GuessedFormat:
    """The guessed reply format of a rubric."""

    aspects: tuple[AspectSpec, ...]
    output_order: tuple[str, ...]
    answer_format: str = JSON_FORMAT
    rationale_key: str = "rationale"
    choices_key: str = ""


def guess_format(kind: RubricKind, text: str, after: str, fields: Collection[str]) -> GuessedFormat:
    """The format; ``after`` is the document after the prompt, ``fields`` are the meanings of its placeholders."""
    if kind == RubricKind.POINTWISE:
        return add_scale(guess_pointwise_format(text, fields), text, after)
    return guess_pairwise_format(text, after)


def single_aspect_format(aspect: AspectSpec, **options: str) -> GuessedFormat:
    return GuessedFormat((aspect,), (aspect.key,), **options)


def guess_pairwise_format(text: str, after: str) -> GuessedFormat:
    """The format by a shown object, named fields, or labels in plain text; otherwise the default.

    A prompt whose own format is not understood is answered in it first, and in ours in a second step.
    """
    shown_objects = find_shown_objects(text)
    for shown in reversed(shown_objects):
        if form := format_of_shown_object(shown, text):
            return form
    labels = parse_option_labels(find_enum_values(after)) or parse_option_labels(QUOTED_LABEL.findall(text))
    verdict, reason = find_named_fields(text)
    if verdict:
        aspect = offer_labels(replace(OVERALL_ASPECT, reply_key=verdict), labels)
        return single_aspect_format(aspect, rationale_key=reason)
    # Labels in tags, double brackets or after a word count in that form, others alone on the last line.
    for guess in (guess_tagged_format, guess_bracketed_format, guess_named_format, guess_label_format):
        if form := guess(text):
            return form
    has_own_format = shown_objects or SHOWN_KEY.search(text) or requests_text_format(text)
    answer_format = TWO_STEP_FORMAT if has_own_format else JSON_FORMAT
    aspect = offer_labels(OVERALL_ASPECT, labels)
    return single_aspect_format(aspect, choices_key="choices", answer_format=answer_format)


def requests_text_format(text: str) -> bool:
    return "json" not in text.casefold() and FORMAT_REQUEST.search(text) is not None


def guess_tagged_format(text: str) -> GuessedFormat | None:
    """<verdict>A or B</verdict>; the options may be named elsewhere."""
    for tag, inside in reversed(TAGGED_TEXT.findall(text)):
        if fold_label(tag) not in VERDICT_KEYS | {"answer", "result"} or inside.startswith("{"):
            continue
        labels = parse_option_labels(parse_options(inside)) or find_named_labels(text)
        if labels:
            return make_text_format(labels, rf"(?i:<{tag}>\s*({{}})\s*</{tag}>)")
    return None


def guess_bracketed_format(text: str) -> GuessedFormat | None:
    """[[A]], Arena-Hard's [[A>>B]], and Prometheus' [RESULT] A."""
    graded = re.findall(r"\[\[[AB][<>=]{1,2}[AB]\]\]", text)
    if len(graded) > 1:
        sides = {Choice.A: "A>", Choice.TIE: "A=", Choice.B: "B>"}
        labels = {side: label for side, label in sides.items() if f"[[{label}" in "".join(graded)}
        if {Choice.A, Choice.B} <= labels.keys():
            return make_text_format(labels, rf"\[\[({{}})>?[AB]\]\]{LABEL_ENDING}")
    brackets = parse_option_labels(dict.fromkeys(re.findall(r"\[\[\w+\]\]", text)))
    if brackets:
        return make_text_format(brackets, f"({{}}){LABEL_ENDING}")
    if "[RESULT]" in text:
        labels = find_named_labels(text) or {Choice.A: "A", Choice.B: "B"}
        return make_text_format(labels, rf"\[RESULT\]{BEFORE_LABEL}*({{}})\)?{LABEL_ENDING}")
    return None


def guess_named_format(text: str) -> GuessedFormat | None:
    """Verdict: A."""
    options_by_words: dict[str, dict[str, None]] = {}
    for words, options in NAMED_VERDICT.findall(text):
        for option in parse_options(options.strip(" *.\"'")):
            options_by_words.setdefault(fold_label(words), {})[option] = None
    for words, options in reversed(options_by_words.items()):
        if labels := parse_option_labels(options):
            return make_text_format(labels, rf"(?i:{words}{BEFORE_LABEL}{{1,9}}({{}})){LABEL_ENDING}")
    return None


def guess_label_format(text: str) -> GuessedFormat | None:
    """Output (a), or another label that the prompt asks for, alone on the last line."""
    labels = parse_option_labels(dict.fromkeys(re.findall(r"Output \([ab]\)", text)))
    if not labels and requests_text_format(text):
        labels = find_named_labels(text)
    return single_aspect_format(offer_labels(OVERALL_ASPECT, labels), answer_format=TEXT_FORMAT) if labels else None


def find_named_labels(text: str) -> dict[Choice, str]:
    """The options that the text names, such as “with A, B or tie” or "Response 1" and "Response 2"."""
    if bare := BARE_OPTIONS.search(text):
        return parse_option_labels(option for option in bare.groups() if option)
    return parse_option_labels(dict.fromkeys(QUOTED_TEXT.findall(text)))


def make_text_format(labels: Mapping[Choice, str], pattern: str) -> GuessedFormat:
    """A verdict in plain text found by this pattern; its braces stand for the labels."""
    pattern = pattern.replace("{}", "|".join(re.escape(label) for label in labels.values()), 1)
    return single_aspect_format(offer_labels(OVERALL_ASPECT, labels), answer_format=f"{TEXT_FORMAT}:{pattern}")


def format_of_shown_object(shown: Mapping[str, object], text: str) -> GuessedFormat | None:
    """An object with an object of choices in it, or with one choice and its reasons."""
    key, choices = split_nested_object(shown)
    labels = {name: parse_option_labels(parse_options(value)) for name, value in choices.items()}
    aspects = [offer_labels(make_named_aspect(name, text), offered) for name, offered in labels.items() if offered]
    if not aspects and not key:
        verdicts = [name for name in choices if set(fold_label(name).split("_")) & VERDICT_KEYS]
        aspects = [offer_labels(make_named_aspect(name, text), find_named_labels(text)) for name in verdicts]
    if not aspects or (not key and len(aspects) > 1):
        return None
    if not key:
        (aspect,) = aspects
        own_key = aspect.reply_key or aspect.key
        aspects = [replace(aspect, key=OVERALL_ASPECT.key, name=OVERALL_ASPECT.name, reply_key=own_key)]
    named = {aspect.reply_key or aspect.key for aspect in aspects}
    reasons = [name for name, value in shown.items() if isinstance(value, str) and name not in named]
    order = tuple(aspect.key for aspect in aspects)
    page = tuple(sorted(aspects, key=lambda aspect: definition_position(aspect, text)))
    return GuessedFormat(page, order, rationale_key=pick_rationale_key(reasons, *reasons[:1]), choices_key=key)


def split_nested_object(shown: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
    """The only object in a shown object with its key; without one, the shown object itself and ""."""
    nested = [(key, value) for key, value in shown.items() if isinstance(value, dict)]
    return nested[0] if len(nested) == 1 else ("", shown)


def parse_options(shown: object) -> list[str]:
    """The options of "[A or B or tie]", "<A | B>" or "A/B"."""
    if not isinstance(shown, str) or len(shown) > MAX_OPTIONS_LENGTH:
        return []
    bare = re.sub(r"^[\[<(]([^\[\]<>()]*)[\]>)]$", r"\1", shown.strip())
    return [option.strip(" \"'") for option in OPTION_SEPARATOR.split(bare)]


def parse_option_labels(options: Iterable[str]) -> dict[Choice, str]:
    """Choice → label if the options have one for each side; otherwise empty."""
    labels = {side: option for option in options if (side := parse_side(option))}
    return labels if {Choice.A, Choice.B} <= labels.keys() else {}


def parse_side(label: str) -> Choice | None:
    words = re.findall(r"\w+", fold_label(label))
    return CHOICE_BY_SIDE.get(words[-1]) if words and len(words) <= 2 else None


def offer_labels(aspect: AspectSpec, labels: Mapping[Choice, str]) -> AspectSpec:
    """The aspect with the offered choices; without labels it offers A, tie and B."""
    if not labels:
        return aspect
    return replace(
        aspect,
        offers_tie=Choice.TIE in labels,
        offers_both_bad=Choice.BOTH_BAD in labels,
        labels={str(choice): label for choice, label in labels.items() if label != choice},
    )


def guess_pointwise_format(text: str, fields: Collection[str]) -> GuessedFormat:
    """The format by named keys, a shown object, or named fields; otherwise two steps."""
    if "verdict_key" in fields:
        return single_aspect_format(METRIC_ASPECT, rationale_key="reason")
    for shown in reversed(find_shown_objects(text)):
        if form := scores_of_shown_object(shown, text):
            return form
    verdict, reason = find_named_fields(text)
    if verdict:
        return single_aspect_format(replace(OVERALL_ASPECT, reply_key=verdict), rationale_key=reason)
    pattern = guess_score_pattern(text)
    return single_aspect_format(
        replace(OVERALL_ASPECT, reply_key="score"),
        answer_format=f"{TEXT_FORMAT}:{pattern}" if pattern else TWO_STEP_FORMAT,
    )


def guess_score_pattern(text: str) -> str:
    """The pattern of a score in plain text: <score>4</score>, [[4]], [RESULT] 4, Score: 4, or 4 alone."""
    for tag, inside in reversed(TAGGED_TEXT.findall(text)):
        if fold_label(tag) in VERDICT_KEYS | {"answer", "result"} and not inside.startswith("{"):
            return rf"(?i:<{tag}>\s*({NUMBER})\s*</{tag}>)"
    if re.search(rf"\[\[(?:\w*(?:rating|score)\w*|{NUMBER})\]\]", text, re.IGNORECASE):
        return rf"\[\[({NUMBER})\]\]{LABEL_ENDING}"
    if "[RESULT]" in text:
        return rf"\[RESULT\]{BEFORE_LABEL}*({NUMBER})\)?{LABEL_ENDING}"
    if named := NAMED_SCORE.findall(text):
        return rf"(?i:{fold_label(named[-1])}{BEFORE_LABEL}{{1,9}}({NUMBER})){LABEL_ENDING}"
    if re.search(
        r"\bscores? only\b|\bonly (?:a|the|one) (?:single )?(?:score|number|integer|rating)\b", text, re.IGNORECASE
    ):
        return rf"(?:^|[\s:*])({NUMBER}){LABEL_ENDING}"
    return ""


def scores_of_shown_object(shown: Mapping[str, object], text: str) -> GuessedFormat | None:
    """Every member that is not the rationale is a score; those of a nested object if there is one."""
    key, scores = split_nested_object(shown)
    names = [name for name in scores if fold_label(name) not in RATIONALE_KEYS]
    # If one member is a number, as in {"pass": true, "score": 0.5}, others are no scores.
    numeric = [name for name in names if is_numeric_placeholder(scores[name])]
    aspects = tuple(make_named_aspect(name, text) for name in numeric or names)
    if not aspects:
        return None
    order, rationale_key = tuple(aspect.key for aspect in aspects), pick_rationale_key(shown)
    return GuessedFormat(aspects, order, rationale_key=rationale_key, choices_key=key)


def is_numeric_placeholder(shown: object) -> bool:
    """Whether a shown value is a number, or words for one."""
    if isinstance(shown, str):
        return re.search(r"\d|\b(?:number|integer|float|score|rating)\b", shown) is not None
    return isinstance(shown, (int, float)) and not isinstance(shown, bool)


def add_scale(form: GuessedFormat, text: str, after: str) -> GuessedFormat:
    """The scale by an enum after the prompt, explained values, or ends in words."""
    meanings = {band: meaning.strip() for band, meaning in SCALE_BAND.findall(text)}
    ends = [list(match.groups()) for pattern in (SCALE_ENDS, SCALE_RANGE) if (match := pattern.search(text))]
    candidates = [find_enum_values(after), list(meanings), *ends, DEFAULT_SCALE]
    written = next(words for words in candidates if len(set(parse_number_words(words))) > 1)
    low, high = min(parse_number_words(written)), max(parse_number_words(written))
    meanings = {
        band: meaning
        for band, meaning in meanings.items()
        if all(low <= number <= high for number in parse_band_numbers(band))
    }
    is_fine = (high - low <= 1 and not meanings) or CONTINUOUS_WORDS.search(text)
    step = None if is_fine or "." in "".join([*written, *meanings]) else 1.0
    scale = {"scale_min": low, "scale_max": high, "scale_step": step, "scale_labels": meanings}
    return replace(form, aspects=tuple(replace(aspect, **scale) for aspect in form.aspects))  # type: ignore[arg-type]


def parse_number_words(words: Iterable[str]) -> list[float]:
    return [number for word in words for number in parse_band_numbers(word)]


def find_shown_objects(text: str) -> list[dict[str, object]]:
    """The top-level objects in the text; unquoted values become text."""
    objects: list[dict[str, object]] = []
    position = 0
    for opening in list(SHOWN_OBJECT_START.finditer(text))[-MAX_OBJECTS:]:
        end = find_closing_brace(text, opening.start())
        shown = load_shown_object(text[opening.start() : end]) if opening.start() >= position else None
        if shown:
            objects.append(shown)
            position = end
    return objects


def find_closing_brace(text: str, start: int) -> int:
    """The end of the object at ``start``; the end of the text if it is not closed."""
    depth = 0
    for brace in BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    return len(text)


def load_shown_object(written: str) -> dict[str, object] | None:
    quoted = BARE_KEY.sub(r'\1"\2":', written)
    in_json = re.sub(r"'([^'\"\n]*)'", r'"\1"', quoted)
    with_quotes = (UNQUOTED_VALUE.sub(r': "\1"', variant) for variant in (written, quoted, in_json))
    for attempt in (written, *with_quotes, in_json):
        try:
            shown = json.loads(attempt)
        except (ValueError, RecursionError):
            continue
        return shown if isinstance(shown, dict) else None
    return None


def find_enum_values(text: str) -> list[str]:
    """The values of the first Python enum that the text defines."""
    match = ENUM_CLASS.search(text)
    return [value.strip() for value in ENUM_VALUE.findall(match[1])] if match else []


def find_named_fields(text: str) -> tuple[str, str]:
    """The names of the verdict's and the rationale's field, as in “… in the explanation field”; "" if not named."""
    names = dict.fromkeys(NAMED_FIELD.findall(text))
    verdict = next((name for name in names if set(fold_label(name).split("_")) & VERDICT_KEYS), "")
    return verdict, pick_rationale_key(names)


def pick_rationale_key(names: Iterable[str], otherwise: str = "rationale") -> str:
    return next((name for name in names if fold_label(name) in RATIONALE_KEYS), otherwise)


def make_named_aspect(name: str, text: str) -> AspectSpec:
    """The aspect with this key, defined by the text after its name and a colon."""
    key = re.sub(r"[^a-z0-9_-]+", "_", fold_label(name)).strip("_")[:60] or OVERALL_ASPECT.key
    definition = find_definition(name, text)
    return AspectSpec(
        key,
        name.strip().replace("_", " ").capitalize()[:80],
        definition[1].strip() if definition else "",
        reply_key="" if name == key else name,
    )


def find_definition(name: str, text: str) -> re.Match[str] | None:
    words = re.escape(name.replace("_", " "))
    return re.search(rf"^[^\w\n\"']*{words}[ \t*]*:[ \t*]*(\S.*)$", text, re.MULTILINE | re.IGNORECASE)


def definition_position(aspect: AspectSpec, text: str) -> int:
    """Where the text defines the aspect; undefined aspects come last."""
    definition = find_definition(aspect.reply_key or aspect.key, text)
    return definition.start() if definition else len(text)
