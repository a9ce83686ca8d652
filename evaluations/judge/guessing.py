"""In which form a pasted prompt wants its verdict: guessed from what the document shows and says."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from evaluations.domain import AspectSpec, Choice, RubricKind
from evaluations.judge.labels import folded
from evaluations.judge.replying import JSON, TEXT, TWO_STEP
from evaluations.judge.scales import numbers_in

OVERALL: Final = AspectSpec("overall", "Overall", "")
METRIC: Final = AspectSpec("correctness", "Correctness", "", reply_key="correctness")

REASONS: Final = {
    *("rationale", "reason", "reasons", "reasoning", "explanation", "justification"),
    *("analysis", "thoughts", "feedback", "critique", "comment", "comments", "why"),
}
VERDICTS: Final = {
    *("verdict", "choice", "winner", "preference", "score", "rating", "grade", "judgment", "judgement", "decision"),
}
SIDES: Final = {
    **dict.fromkeys(("a", "1", "first"), Choice.A),
    **dict.fromkeys(("b", "2", "second"), Choice.B),
    **dict.fromkeys(("tie", "same", "c", "equal", "draw"), Choice.TIE),
    **dict.fromkeys(("both_bad", "bad"), Choice.BOTH_BAD),
}

# The words before a verdict in plain text, or of a tag around it.
VERDICT_WORDS: Final = r"(?:final |overall |my )?(?:verdict|winner|choice|preference|answer|decision|judge?ment)"
SCORE_WORDS: Final = r"(?:final |overall |total )?(?:score|rating|grade)"
NUMBER: Final = r"-?\d+(?:\.\d+)?"
# A prompt that says how to answer: whatever form of ours came behind it would contradict it.
ASKS_FORM: Final = re.compile(
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

# So many objects of a text are looked at, its last ones: a prompt shows the form at its end.
MOST_OBJECTS: Final = 50
BRACE: Final = re.compile(r"[{}]")
USUAL_SCALE: Final = ["1", "5"]
# A value that a shown object leaves without quotes, such as <1-5>.
UNQUOTED: Final = re.compile(r':[ \t]*([^\s"{\[,}][^,}\n]*)')
LONGEST_OPTIONS: Final = 200  # characters; more are prose
# What may part the options in "[A or B or tie]".
BETWEEN: Final = re.compile(r"\s+or\s+|\s*[|/,]\s*")
# An object that is shown as Python or JavaScript write it: its keys in other quotes, or in none.
# An object with a verdict's key that is no JSON, such as {"choice": "A" or "B"}.
SHOWS_KEY: Final = re.compile(r"\{\s*[\"'“`]?\w{1,40}[\"'”`]?\s{0,3}:\s?[\"'<“\[]?\w")
OPENS_SHOWN: Final = re.compile(r"\{(?=\s*(?:[\"'}]|[A-Za-z_]\w*\s*:))")
BARE_KEY: Final = re.compile(r"([{,]\s*)'?([A-Za-z_]\w*)'?\s*:(?!:)")
IN_QUOTES: Final = re.compile(r"[\"“'‘`]([^\"“”'‘’`\n]{1,40})[\"”'’`]")
OPENS_QUOTE, ENDS_QUOTE, BETWEEN_TWO = r"[\"“'‘`*(\[]{0,2}", r"[\"”'’`*)\]]{0,2}", r"\s?(?:,|/|\||\bor\b)\s?(?:or\s)?"
BARE_OPTIONS: Final = re.compile(
    r"\b(?:with|only|either|exactly|of|say|output|print|return|write|word|letter|answer|respond|reply|be|choose|pick)s?:?\s"
    rf"{OPENS_QUOTE}(A|1){ENDS_QUOTE}{BETWEEN_TWO}{OPENS_QUOTE}(B|2)\b{ENDS_QUOTE}"
    rf"(?:{BETWEEN_TWO}{OPENS_QUOTE}(tie|same|C|equal|draw)\b)?",
    re.IGNORECASE,
)
TAGGED: Final = re.compile(r"<(\w{1,40})>\s{0,9}([^<>\n]{1,60}?)\s{0,9}</\1>")
NAMED_VERDICT: Final = re.compile(
    rf"^[^\w\n]*({VERDICT_WORDS})[ \t*]*:[ \t*]*(\S[^\n]{{0,60}})$", re.IGNORECASE | re.MULTILINE
)
NAMED_SCORE: Final = re.compile(
    rf"^[^\w\n]*({SCORE_WORDS})[ \t*]*:[ \t]*(?:[<\[(_X\d][^\n]*)?$", re.IGNORECASE | re.MULTILINE
)
# What may part a verdict from the word before it: no sign that says something of it.
BEFORE: Final = r"[\s:：=*_\"'“(\[]"
# What may follow a verdict that ends a reply.
ENDING: Final = r"[\s.\"'*]*\Z"
NAMED_FIELD: Final = re.compile(r"[\"'`]?\b([A-Za-z_]\w*)[\"'`]? field\b")
QUOTED_LABEL: Final = re.compile(r"^[ \t]*[\"']([^\"'\n]{1,40})[\"'][ \t]*:", re.MULTILINE)
ENUM: Final = re.compile(r"^class \w+\([^)]*Enum\):\s*\n((?:[ \t]+\w+[ \t]*=[^\n]*\n?|[ \t]*\n)+)", re.MULTILINE)
ENUM_VALUE: Final = re.compile(r"=[ \t]*[\"']?([^\"'\n#]+)")
BAND: Final = re.compile(
    r"^[ \t\-*•]*?(-?\d+(?:\.\d+)?(?:\s*[-–]\s*\d+(?:\.\d+)?)?)\**[ \t]*:[ \t*]*(\S.*)$", re.MULTILINE
)
FROM_TO: Final = re.compile(
    r"(?:from|scale of|between)[ \t*]+(-?\d+(?:\.\d+)?)[ \t*]*(?:to|-|–|and)[ \t*]*(-?\d+(?:\.\d+)?)", re.IGNORECASE
)

RANGE: Final = re.compile(r"[<\[(\"'“]\s?(-?\d+(?:\.\d+)?)\s?(?:to|-|–)\s?(-?\d+(?:\.\d+)?)\s?[>\])\"'”]")
CONTINUOUS: Final = re.compile(r"\b(?:continuous|decimals?|float|fractional)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Form:
    """What a rubric says about its reply."""

    aspects: tuple[AspectSpec, ...]
    output_order: tuple[str, ...]
    answer_format: str = JSON
    rationale_key: str = "rationale"
    choices_key: str = ""


def form_of(kind: RubricKind, text: str, after: str, fields: Collection[str]) -> Form:
    """``after`` is what the document says behind the prompt, ``fields`` what its placeholders mean."""
    if kind == RubricKind.POINTWISE:
        return with_scale(pointwise_form(text, fields), text, after)
    return pairwise_form(text, after)


def of_one(aspect: AspectSpec, **said: str) -> Form:
    return Form((aspect,), (aspect.key,), **said)


# ---- pairwise ------------------------------------------------------------------------------


def pairwise_form(text: str, after: str) -> Form:
    """As an object that is shown, as fields that are named, as labels in plain text; without any, the usual one.

    A prompt with a form of its own that is not understood is answered in it first, and in ours in a second step.
    """
    shown = shown_objects(text)
    for one in reversed(shown):
        if form := form_shown_as(one, text):
            return form
    labels = labels_in(enum_values(after)) or labels_in(QUOTED_LABEL.findall(text))
    verdict, reason = named_fields(text)
    if verdict:
        return of_one(with_labels(replace(OVERALL, reply_key=verdict), labels), rationale_key=reason)
    if form := text_form(text):
        return form
    is_own = (
        bool(shown)
        or SHOWS_KEY.search(text) is not None
        or ("json" not in text.casefold() and ASKS_FORM.search(text) is not None)
    )
    form = of_one(with_labels(OVERALL, labels), choices_key="choices")
    return replace(form, answer_format=TWO_STEP) if is_own else form


def text_form(text: str) -> Form | None:
    """Labels in tags, in double brackets or behind a word count in that form, others alone on the last line."""
    return tagged_form(text) or bracketed_form(text) or named_form(text) or label_form(text)


def tagged_form(text: str) -> Form | None:
    """<verdict>A or B</verdict>; the options may be said elsewhere."""
    for tag, inside in reversed(TAGGED.findall(text)):
        if folded(tag) not in VERDICTS | {"answer", "result"} or inside.startswith("{"):
            continue
        labels = labels_in(options_in(inside)) or said_labels(text)
        if labels:
            return with_pattern(labels, rf"(?i:<{tag}>\s*({{}})\s*</{tag}>)")
    return None


def bracketed_form(text: str) -> Form | None:
    """[[A]], Arena-Hard's [[A>>B]], and Prometheus' [RESULT] A."""
    graded = re.findall(r"\[\[[AB][<>=]{1,2}[AB]\]\]", text)
    if len(graded) > 1:
        sides = {Choice.A: "A>", Choice.TIE: "A=", Choice.B: "B>"}
        labels = {side: label for side, label in sides.items() if any(one.startswith(f"[[{label}") for one in graded)}
        if {Choice.A, Choice.B} <= labels.keys():
            return with_pattern(labels, rf"\[\[({{}})>?[AB]\]\]{ENDING}")
    brackets = labels_in(dict.fromkeys(re.findall(r"\[\[\w+\]\]", text)))
    if brackets:
        return with_pattern(brackets, f"({{}}){ENDING}")
    if "[RESULT]" in text:
        return with_pattern(
            said_labels(text) or {Choice.A: "A", Choice.B: "B"}, rf"\[RESULT\]{BEFORE}*({{}})\)?{ENDING}"
        )
    return None


def named_form(text: str) -> Form | None:
    """Verdict: A."""
    labels: dict[str, dict[str, None]] = {}
    for words, options in NAMED_VERDICT.findall(text):
        for option in options_in(options.strip(" *.\"'")):
            labels.setdefault(folded(words), {})[option] = None
    for words, options in reversed(labels.items()):
        if found := labels_in(options):
            return with_pattern(found, rf"(?i:{words}{BEFORE}{{1,9}}({{}})){ENDING}")
    return None


def label_form(text: str) -> Form | None:
    """Output (a), or another label that the prompt asks for, alone on the last line."""
    labels = labels_in(dict.fromkeys(re.findall(r"Output \([ab]\)", text)))
    if not labels and "json" not in text.casefold() and ASKS_FORM.search(text):
        labels = said_labels(text)
    return of_one(with_labels(OVERALL, labels), answer_format=TEXT) if labels else None


def said_labels(text: str) -> dict[Choice, str]:
    """The options that the text names, such as “with A, B or tie” or "Response 1" and "Response 2"."""
    if bare := BARE_OPTIONS.search(text):
        return labels_in(option for option in bare.groups() if option)
    return labels_in(dict.fromkeys(IN_QUOTES.findall(text)))


def with_pattern(labels: Mapping[Choice, str], pattern: str) -> Form:
    """A verdict in plain text where the pattern finds it; its braces stand for the labels."""
    options = "|".join(re.escape(label) for label in labels.values())
    return of_one(with_labels(OVERALL, labels), answer_format=f"{TEXT}:{pattern.replace('{}', options, 1)}")


def form_shown_as(shown: Mapping[str, Any], text: str) -> Form | None:
    """An object with an object of choices in it, or with one choice beside its reasons."""
    nested = {key: value for key, value in shown.items() if isinstance(value, dict)}
    key, choices = next(iter(nested.items())) if len(nested) == 1 else ("", shown)
    labels = {name: labels_in(options_in(value)) for name, value in choices.items()}
    asked = [with_labels(aspect_called(name, text), one) for name, one in labels.items() if one]
    if not asked and not key:
        verdicts = [name for name in choices if set(folded(name).split("_")) & VERDICTS]
        asked = [with_labels(aspect_called(name, text), said_labels(text)) for name in verdicts]
    if not asked or (not key and len(asked) > 1):
        return None
    if not key:
        asked = [replace(asked[0], key=OVERALL.key, name=OVERALL.name, reply_key=asked[0].reply_key or asked[0].key)]
    named = {aspect.reply_key or aspect.key for aspect in asked}
    reasons = [name for name, value in shown.items() if isinstance(value, str) and name not in named]
    order = tuple(aspect.key for aspect in asked)
    page = tuple(sorted(asked, key=lambda aspect: place_of(aspect, text)))
    return Form(page, order, rationale_key=reason_among(reasons, *reasons[:1]), choices_key=key)


def options_in(shown: object) -> list[str]:
    """The options of "[A or B or tie]", "<A | B>" or "A/B"."""
    if not isinstance(shown, str) or len(shown) > LONGEST_OPTIONS:
        return []
    bare = re.sub(r"^[\[<(]([^\[\]<>()]*)[\]>)]$", r"\1", shown.strip())
    return [option.strip(" \"'") for option in BETWEEN.split(bare)]


def labels_in(options: Iterable[str]) -> dict[Choice, str]:
    """Choice → label, where the options hold one for each side; otherwise nothing."""
    labels = {side: option for option in options if (side := side_of(option))}
    return labels if {Choice.A, Choice.B} <= labels.keys() else {}


def side_of(label: str) -> Choice | None:
    words = re.findall(r"\w+", folded(label))
    return SIDES.get(words[-1]) if words and len(words) <= 2 else None


def with_labels(aspect: AspectSpec, labels: Mapping[Choice, str]) -> AspectSpec:
    """The aspect with what is offered; without labels it offers A, tie and B."""
    if not labels:
        return aspect
    return replace(
        aspect,
        offers_tie=Choice.TIE in labels,
        offers_both_bad=Choice.BOTH_BAD in labels,
        labels={str(choice): label for choice, label in labels.items() if label != choice},
    )


# ---- pointwise -----------------------------------------------------------------------------


def pointwise_form(text: str, fields: Collection[str]) -> Form:
    """As named keys, as an object that is shown, as fields that are named; without any, in two steps."""
    if "verdict_key" in fields:
        return of_one(METRIC, rationale_key="reason")
    for shown in reversed(shown_objects(text)):
        if form := scores_shown_as(shown, text):
            return form
    verdict, reason = named_fields(text)
    if verdict:
        return of_one(replace(OVERALL, reply_key=verdict), rationale_key=reason)
    pattern = score_pattern(text)
    return of_one(replace(OVERALL, reply_key="score"), answer_format=f"{TEXT}:{pattern}" if pattern else TWO_STEP)


def score_pattern(text: str) -> str:
    """Where a prompt wants its score in plain text: <score>4</score>, [[4]], [RESULT] 4, Score: 4 or 4 alone."""
    for tag, inside in reversed(TAGGED.findall(text)):
        if folded(tag) in VERDICTS | {"answer", "result"} and not inside.startswith("{"):
            return rf"(?i:<{tag}>\s*({NUMBER})\s*</{tag}>)"
    if re.search(rf"\[\[(?:\w*(?:rating|score)\w*|{NUMBER})\]\]", text, re.IGNORECASE):
        return rf"\[\[({NUMBER})\]\]{ENDING}"
    if "[RESULT]" in text:
        return rf"\[RESULT\]{BEFORE}*({NUMBER})\)?{ENDING}"
    if named := NAMED_SCORE.findall(text):
        return rf"(?i:{folded(named[-1])}{BEFORE}{{1,9}}({NUMBER})){ENDING}"
    if re.search(
        r"\bscores? only\b|\bonly (?:a|the|one) (?:single )?(?:score|number|integer|rating)\b", text, re.IGNORECASE
    ):
        return rf"(?:^|[\s:*])({NUMBER}){ENDING}"
    return ""


def scores_shown_as(shown: Mapping[str, Any], text: str) -> Form | None:
    """Whatever is no reason is a score; those of an object inside, where there is one."""
    nested = {key: value for key, value in shown.items() if isinstance(value, dict)}
    key, scores = next(iter(nested.items())) if len(nested) == 1 else ("", shown)
    names = [name for name in scores if folded(name) not in REASONS]
    # Beside a number, as in {"pass": true, "score": 0.5}, what is none is no score.
    asked = [aspect_called(name, text) for name in [one for one in names if is_numeric(scores[one])] or names]
    if not asked:
        return None
    reasons = [name for name in shown if folded(name) in REASONS]
    return Form(tuple(asked), tuple(one.key for one in asked), rationale_key=reason_among(reasons), choices_key=key)


def is_numeric(shown: object) -> bool:
    """Whether a value that is shown is a number, or words for one."""
    if isinstance(shown, str):
        return re.search(r"\d|\b(?:number|integer|float|score|rating)\b", shown) is not None
    return isinstance(shown, (int, float)) and not isinstance(shown, bool)


def with_scale(form: Form, text: str, after: str) -> Form:
    """The scale of a list of values behind the prompt, of the values that it explains, or of its ends in words."""
    meanings = {band: meaning.strip() for band, meaning in BAND.findall(text)}
    ends = FROM_TO.search(text)
    ranges = RANGE.search(text)
    told = [
        enum_values(after),
        list(meanings),
        *(list(one.groups()) if one else [] for one in (ends, ranges)),
        USUAL_SCALE,
    ]
    written = next(words for words in told if len(set(numbers_of(words))) > 1)
    low, high = min(numbers_of(written)), max(numbers_of(written))
    meanings = {band: said for band, said in meanings.items() if all(low <= one <= high for one in numbers_in(band))}
    is_fine = (high - low <= 1 and not meanings) or CONTINUOUS.search(text)
    step = None if is_fine or "." in "".join([*written, *meanings]) else 1.0
    scale = {"scale_min": low, "scale_max": high, "scale_step": step, "scale_labels": meanings}
    return replace(form, aspects=tuple(replace(aspect, **scale) for aspect in form.aspects))  # type: ignore[arg-type]


def numbers_of(words: Iterable[str]) -> list[float]:
    return [number for word in words for number in numbers_in(word)]


# ---- what a document shows -----------------------------------------------------------------


def shown_objects(text: str) -> list[dict[str, Any]]:
    """The objects that the text shows, inside no other; what they hold without quotes comes as text."""
    found: list[dict[str, Any]] = []
    position = 0
    for opening in list(OPENS_SHOWN.finditer(text))[-MOST_OBJECTS:]:
        end = closing_of(text, opening.start())
        shown = loaded(text[opening.start() : end]) if opening.start() >= position else None
        if shown:
            found.append(shown)
            position = end
    return found


def closing_of(text: str, start: int) -> int:
    """Behind the brace that closes the one at ``start``; the end of the text where none does."""
    depth = 0
    for brace in BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    return len(text)


def loaded(written: str) -> dict[str, Any] | None:
    quoted = BARE_KEY.sub(r'\1"\2":', written)
    in_json = re.sub(r"'([^'\"\n]*)'", r'"\1"', quoted)
    for attempt in (written, *(UNQUOTED.sub(r': "\1"', one) for one in (written, quoted, in_json)), in_json):
        try:
            shown = json.loads(attempt)
        except (ValueError, RecursionError):
            continue
        return shown if isinstance(shown, dict) else None
    return None


def enum_values(text: str) -> list[str]:
    """The values of the first list of Python's that the text defines."""
    found = ENUM.search(text)
    return [value.strip() for value in ENUM_VALUE.findall(found[1])] if found else []


def named_fields(text: str) -> tuple[str, str]:
    """The names of the verdict's and of the reasons' field, of “… in the explanation field”; empty where none is."""
    names = dict.fromkeys(NAMED_FIELD.findall(text))
    verdict = next((name for name in names if set(folded(name).split("_")) & VERDICTS), "")
    return verdict, reason_among(names)


def reason_among(names: Iterable[str], otherwise: str = "rationale") -> str:
    return next((name for name in names if folded(name) in REASONS), otherwise)


def aspect_called(name: str, text: str) -> AspectSpec:
    """The aspect of this key, with what the text says behind its name and a colon."""
    key = re.sub(r"[^a-z0-9_-]+", "_", folded(name)).strip("_")[:60] or OVERALL.key
    said = definition_of(name, text)
    return AspectSpec(
        key,
        name.strip().replace("_", " ").capitalize()[:80],
        said[1].strip() if said else "",
        reply_key="" if name == key else name,
    )


def definition_of(name: str, text: str) -> re.Match[str] | None:
    words = re.escape(name.replace("_", " "))
    return re.search(rf"^[^\w\n\"']*{words}[ \t*]*:[ \t*]*(\S.*)$", text, re.MULTILINE | re.IGNORECASE)


def place_of(aspect: AspectSpec, text: str) -> int:
    """Where the text defines the aspect; what it does not define comes last."""
    said = definition_of(aspect.reply_key or aspect.key, text)
    return said.start() if said else len(text)
