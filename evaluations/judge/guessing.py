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

# An opening brace that begins a JSON object, rather than a brace of prose, code or a formula.
OPENS_OBJECT: Final = re.compile(r'\{(?=\s*["}])')
# So many objects of a text are looked at, its last ones: a prompt shows the form at its end.
MOST_OBJECTS: Final = 50
BRACE: Final = re.compile(r"[{}]")
USUAL_SCALE: Final = ["1", "5"]
# A value that a shown object leaves without quotes, such as <1-5>.
UNQUOTED: Final = re.compile(r':[ \t]*([^\s"{\[,}][^,}\n]*)')
LONGEST_OPTIONS: Final = 200  # characters; more are prose
# What may part the options in "[A or B or tie]".
BETWEEN: Final = re.compile(r"\s+or\s+|\s*[|/,]\s*")
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
    """As an object that is shown, as fields that are named, as labels in plain text; without any, the usual one."""
    for shown in reversed(shown_objects(text)):
        if form := form_shown_as(shown, text):
            return form
    labels = labels_in(enum_values(after)) or labels_in(QUOTED_LABEL.findall(text))
    verdict, reason = named_fields(text)
    if verdict:
        return of_one(with_labels(replace(OVERALL, reply_key=verdict), labels), rationale_key=reason)
    return text_form(text) or of_one(with_labels(OVERALL, labels), choices_key="choices")


def text_form(text: str) -> Form | None:
    """Labels in double brackets count at the end of the reply, Output (a) alone on its last line."""
    brackets = labels_in(dict.fromkeys(re.findall(r"\[\[\w+\]\]", text)))
    if brackets:
        pattern = "|".join(re.escape(label) for label in brackets.values())
        return of_one(with_labels(OVERALL, brackets), answer_format=f"{TEXT}:({pattern}){ENDING}")
    outputs = labels_in(dict.fromkeys(re.findall(r"Output \([ab]\)", text)))
    return of_one(with_labels(OVERALL, outputs), answer_format=TEXT) if outputs else None


def form_shown_as(shown: Mapping[str, Any], text: str) -> Form | None:
    """An object with an object of choices in it, or with one choice beside its reasons."""
    nested = {key: value for key, value in shown.items() if isinstance(value, dict)}
    key, choices = next(iter(nested.items())) if len(nested) == 1 else ("", shown)
    labels = {name: labels_in(options_in(value)) for name, value in choices.items()}
    asked = [with_labels(aspect_called(name, text), one) for name, one in labels.items() if one]
    if not asked or (not key and len(asked) > 1):
        return None
    if not key:
        asked = [replace(asked[0], key=OVERALL.key, name=OVERALL.name, reply_key=asked[0].reply_key or asked[0].key)]
    reasons = [name for name, value in shown.items() if isinstance(value, str) and not labels.get(name)]
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
    return of_one(replace(OVERALL, reply_key="score"), answer_format=TWO_STEP)


def scores_shown_as(shown: Mapping[str, Any], text: str) -> Form | None:
    """Whatever is no reason is a score; those of an object inside, where there is one."""
    nested = {key: value for key, value in shown.items() if isinstance(value, dict)}
    key, scores = next(iter(nested.items())) if len(nested) == 1 else ("", shown)
    asked = [aspect_called(name, text) for name in scores if folded(name) not in REASONS]
    if not asked:
        return None
    reasons = [name for name in shown if folded(name) in REASONS]
    return Form(tuple(asked), tuple(one.key for one in asked), rationale_key=reason_among(reasons), choices_key=key)


def with_scale(form: Form, text: str, after: str) -> Form:
    """The scale of a list of values behind the prompt, of the values that it explains, or of its ends in words."""
    meanings = {band: meaning.strip() for band, meaning in BAND.findall(text)}
    ends = FROM_TO.search(text)
    told = [enum_values(after), list(meanings), list(ends.groups()) if ends else [], USUAL_SCALE]
    written = next(words for words in told if len(set(numbers_of(words))) > 1)
    low, high = min(numbers_of(written)), max(numbers_of(written))
    meanings = {band: said for band, said in meanings.items() if all(low <= one <= high for one in numbers_in(band))}
    step = None if "." in "".join([*written, *meanings]) else 1.0
    scale = {"scale_min": low, "scale_max": high, "scale_step": step, "scale_labels": meanings}
    return replace(form, aspects=tuple(replace(aspect, **scale) for aspect in form.aspects))  # type: ignore[arg-type]


def numbers_of(words: Iterable[str]) -> list[float]:
    return [number for word in words for number in numbers_in(word)]


# ---- what a document shows -----------------------------------------------------------------


def shown_objects(text: str) -> list[dict[str, Any]]:
    """The objects that the text shows, inside no other; what they hold without quotes comes as text."""
    found: list[dict[str, Any]] = []
    position = 0
    for opening in list(OPENS_OBJECT.finditer(text))[-MOST_OBJECTS:]:
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
    for attempt in (written, UNQUOTED.sub(r': "\1"', written)):
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
