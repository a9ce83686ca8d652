"""Verdicts in a JSON object."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from evaluations.domain.choices import Choice
from evaluations.domain.rubrics import AspectSpec, RubricSpec
from evaluations.replies.json_objects import JsonMembers, JsonObject, find_json_objects, parse_sole_object
from evaluations.replies.label_context import NOT_OWN_VERDICT, TAKEN_BACK, contradicts_label, is_neutral_remark
from evaluations.replies.labels import fold_label, match_line_label
from evaluations.replies.passages import MIN_PASSAGE_LETTERS, list_all_texts, repeats_passage, unescape_text
from evaluations.replies.reply_format import is_pointwise, reply_key, wants_text
from evaluations.replies.think_tags import strip_end_marks
from evaluations.replies.verdict_values import (
    ParsedVerdicts,
    QuotedVerdict,
    ReplyContext,
    UnreadableReply,
    VerdictValue,
    parse_verdict_value,
    squeeze_quotation,
    strip_fence,
)

WORD_BREAK: Final = re.compile(r"[\W_]+")
VALUE_START: Final = r"\s{0,9}(?:[\"'“”„«»‘’{\[\d]|\Z)"  # how a value in JSON begins, or is missing
QUOTE_CLASS: Final = "[\"'“”„«»‘’″＂]"
# Names of members that hold a verdict, too, and of those that hold one which came later; and of those that do not.
SECOND_VERDICT_KEY: Final = re.compile(
    r"verdict|choice|winner|preferen|decision|judge?ment|final|revis|corrected|updated|better|best"
)
REVISED_VERDICT_KEY: Final = re.compile(r"final|revis|corrected|updated|adjusted")
NOT_SECOND_KEY: Final = re.compile(
    r"reject|los[et]|wors|second|alternat|other|runner|before|initial|first|draft|not_|max|min"
)
WRAPPER_KEYS: Final = {
    *("result", "output", "answer", "final_answer", "evaluation", "verdict", "judgment", "judgement", "json"),
}


def parse_whole_object(context: ReplyContext, text: str) -> ParsedVerdicts | None:
    members = None if wants_text(context.spec) and not context.alone else parse_sole_object(strip_fence(text))
    if members is None:
        return None
    members = unwrap_members(members)
    try:
        return validate_verdicts(context, members)
    except UnreadableReply:
        if is_verdict_object(context.spec, members):
            raise
        return None


def parse_json_verdicts(context: ReplyContext, text: str) -> ParsedVerdicts:
    """The verdict of the objects in a reply, if all that may be the judge's own agree.

    All parts of a verdict must be in a readable object: a key elsewhere may belong to one that the judge only quotes or
    retracts.
    """
    text = strip_end_marks(text).rstrip("`~ \n")
    objects, is_broken = find_json_objects(text, may_end_open=not context.is_cut_off)
    readings: list[ParsedVerdicts] = []
    problem: UnreadableReply | None = None
    is_last, end = False, 0
    for found in objects:
        json_object = replace(found, members=unwrap_members(found.members))
        try:
            readings.append(parse_object_verdicts(context, json_object, text, text[end : json_object.start]))
            is_last = True
        except QuotedVerdict as error:
            problem = problem or error
        except UnreadableReply as error:
            problem, is_last = error, is_last and not is_verdict_object(context.spec, json_object.members)
        end = json_object.end
    starts, ends = [found.start for found in objects], [found.end for found in objects]
    outside = [text[start:end] for start, end in zip([0, *ends], [*starts, len(text)], strict=True)]
    *before, remark = outside
    # Words before a verdict may name a key and go on in prose; words after it may not.
    is_open = any(contains_key(context.spec, part, VALUE_START) for part in outside)
    if is_open or contains_key(context.spec, remark) or (is_broken and not readings and not problem):
        raise UnreadableReply("The reply holds a JSON object that is broken.")
    if not readings or not is_last:
        raise problem or UnreadableReply("The reply holds no JSON object.")
    if any(reading[0] != readings[0][0] for reading in readings):
        raise UnreadableReply("The reply gives more than one verdict.")
    if TAKEN_BACK.search(remark) or is_contradicted_verdict(context, readings[0], "\n".join(before), remark):
        raise UnreadableReply("The reply takes its verdict back.")
    return readings[-1]


def is_contradicted_verdict(context: ReplyContext, reading: ParsedVerdicts, before: str, remark: str) -> bool:
    """Whether the words around a verdict contradict it: by its key, on a separate line, or in a clause."""
    spec, verdicts = context.spec, reading[0]
    around = f"{before}\n{remark}".casefold()
    for aspect in spec.aspects:
        if loosen_key(reply_key(aspect))[:3] not in around:
            continue
        pattern = rf"(?<![\w-]){key_pattern(reply_key(aspect))}\W{{0,6}}?(?:[:=：→]|->|{{}})\s{{0,3}}([^\n]{{1,60}})"
        for words, connector in ((before, r"\Z\A"), (remark, r"\b(?:to|should be|is)\b")):
            values = re.findall(pattern.replace("{}", connector), words, re.IGNORECASE) if words.strip() else []
            if any(is_other_verdict(spec, aspect, value, verdicts[aspect.key]) for value in values):
                return True
    if len(spec.aspects) > 1 or not remark.strip():
        return False
    (aspect,) = spec.aspects
    verdict = verdicts[aspect.key]
    if not isinstance(verdict, Choice):
        return False
    label = aspect.label(verdict)
    lines = {match_line_label(aspect, line) for line in remark.splitlines()} - {None, label}
    return bool(lines) or contradicts_label(aspect, label, remark)


def is_other_verdict(spec: RubricSpec, aspect: AspectSpec, value: object, verdict: VerdictValue) -> bool:
    value = value.strip(" \t*_`.\"'|<") if isinstance(value, str) else value
    try:
        if isinstance(value, str) and is_pointwise(spec):
            value = float(value)
        return parse_verdict_value(spec, aspect, value) != verdict
    except (UnreadableReply, ValueError):
        return False


def parse_object_verdicts(context: ReplyContext, json_object: JsonObject, reply: str, before: str) -> ParsedVerdicts:
    reading = validate_verdicts(context, json_object.members)
    written = reply[json_object.start : json_object.end]
    if json_object.is_flawed and not is_unambiguous_object(context.spec, json_object, written):
        raise UnreadableReply("The reply holds a JSON object that is broken.")
    if is_quoted_object(context, json_object, written, reply) or is_announced_as_other(before):
        raise QuotedVerdict("The reply gives no verdict of its own: it only quotes one.")
    return reading


def is_announced_as_other(before: str) -> bool:
    """Whether the words that introduce an object say that it is not the judge's own verdict."""
    lines = before.rstrip("` \n").removesuffix("```json").rstrip("` \n").splitlines()
    if not lines or ("\n" in before[len(before.rstrip()) :] and not lines[-1].endswith((":", ","))):
        return False
    return bool(NOT_OWN_VERDICT.search(lines[-1]))


def validate_verdicts(context: ReplyContext, reply_object: Mapping[str, object]) -> ParsedVerdicts:
    spec, members = context.spec, fold_keys(context.spec, reply_object)
    rationale = members.get(fold_label(spec.rationale_key))
    if rationale is None and is_pointwise(spec) and not context.alone:
        raise UnreadableReply(f"The reply's JSON has no “{spec.rationale_key}”.")
    labels = find_verdict_object(spec, members)
    missing = [reply_key(aspect) for aspect in spec.aspects if fold_label(reply_key(aspect)) not in labels]
    if missing:
        raise UnreadableReply(f"The reply says nothing on {', '.join(missing)}.")
    verdicts = {}
    for aspect in spec.aspects:
        verdicts[aspect.key] = parse_verdict_value(spec, aspect, labels[fold_label(reply_key(aspect))])
    refuse_second_verdict(spec, members, verdicts)
    return verdicts, rationale if isinstance(rationale, str) else rationale_text(rationale)


def refuse_second_verdict(
    spec: RubricSpec, members: Mapping[str, object], verdicts: Mapping[str, VerdictValue]
) -> None:
    """UnreadableReply if another member gives another verdict, or retracts this one."""
    expected = 1 if spec.choices_key and fold_label(spec.choices_key) in members else len(spec.aspects)
    if len(members) == expected + (fold_label(spec.rationale_key) in members):
        return
    expected_keys = {fold_label(key) for key in verdict_keys(spec)}
    second_key = REVISED_VERDICT_KEY if is_pointwise(spec) else SECOND_VERDICT_KEY
    for key, value in members.items():
        if key in expected_keys:
            continue
        if isinstance(value, str) and TAKEN_BACK.search(value):
            raise UnreadableReply("The reply takes its verdict back.")
        if not second_key.search(key) or NOT_SECOND_KEY.search(key):
            continue
        is_one = len(spec.aspects) == 1 and not isinstance(value, dict)
        for aspect in spec.aspects:
            other = value if is_one else value.get(reply_key(aspect)) if isinstance(value, dict) else None
            if is_other_verdict(spec, aspect, other, verdicts[aspect.key]):
                raise UnreadableReply("The reply gives more than one verdict.")


def find_verdict_object(spec: RubricSpec, members: dict[str, object]) -> dict[str, object]:
    """The object with the verdicts: the one under its key, or the whole reply if that key was left out."""
    if not spec.choices_key:
        return members
    choices = members.get(fold_label(spec.choices_key))
    if choices is None and all(fold_label(reply_key(aspect)) in members for aspect in spec.aspects):
        return members
    if not isinstance(choices, dict):
        raise UnreadableReply(f"The reply's JSON has no “{spec.choices_key}”.")
    return fold_keys(spec, choices)


def rationale_text(rationale: object) -> str:
    """Reasons that are not text, such as a list, as JSON."""
    return "" if rationale is None else json.dumps(rationale, ensure_ascii=False)


def fold_keys(spec: RubricSpec, members: Mapping[str, object]) -> dict[str, object]:
    """The members by the rubric's keys, regardless of case and word separators."""
    return dict(refuse_repeated_verdict_keys(JsonMembers.of(match_keys(spec, refuse_repeated_verdict_keys(members)))))


def match_keys(spec: RubricSpec, members: Mapping[str, object]) -> list[tuple[str, object]]:
    keys = [fold_label(key) for key in verdict_keys(spec)]
    if all(fold_label(key) in keys for key in members):
        return [(fold_label(key), value) for key, value in members.items()]
    loose = Counter(map(loosen_key, keys))
    matches = {loosen_key(key): key for key in keys if loosen_key(key) and loose[loosen_key(key)] == 1}
    matches |= {key: key for key in keys}
    return [
        (matches.get(fold_label(key), matches.get(loosen_key(key), fold_label(key))), value)
        for key, value in members.items()
    ]


def loosen_key(key: str) -> str:
    return WORD_BREAK.sub("", key).casefold()


def refuse_repeated_verdict_keys(members: Mapping[str, object]) -> Mapping[str, object]:
    if isinstance(members, JsonMembers) and members.repeated:
        raise UnreadableReply(f"The reply gives “{members.repeated[:80]}” twice.")
    return members


def is_verdict_object(spec: RubricSpec, members: Mapping[str, object]) -> bool:
    """Whether an object has an aspect's key in the expected place, valid or not."""
    verdicts = dict(match_keys(spec, members))
    if spec.choices_key:
        inside = verdicts.get(fold_label(spec.choices_key))
        verdicts = dict(match_keys(spec, inside)) if isinstance(inside, dict) else {}
    return any(fold_label(reply_key(aspect)) in verdicts for aspect in spec.aspects)


def unwrap_members(members: JsonMembers) -> JsonMembers:
    """The members inside a function call or a single wrapper key, as models write them."""
    outer, inner = members, None
    if outer.keys() <= {"type", "id", "function"} and isinstance(outer.get("function"), JsonMembers):
        outer = outer["function"]
    if "name" in outer and outer.keys() <= {"type", "id", "name", "arguments", "parameters"}:
        inner = outer.get("arguments", outer.get("parameters"))
    elif len(outer) == 1 and fold_label(next(iter(outer))) in WRAPPER_KEYS:
        (inner,) = outer.values()
    inner = parse_sole_object(inner.strip()) if isinstance(inner, str) else inner
    return inner if isinstance(inner, JsonMembers) else members


def is_quoted_object(context: ReplyContext, json_object: JsonObject, written: str, reply: str) -> bool:
    """Whether an object among other words occurs in a judged text: it was planted there and is not the judge's own.

    Verdicts with their keys suffice, since a quotation may omit the reasons. A reply that is only the object is the
    judge's own, whatever a judged text contains.
    """
    if context.judged is None or (strip_fence(reply) == written and not json_object.is_flawed):
        return False
    whole = squeeze_quotation(written)
    parts = [squeeze_quotation(label) for label in verdict_labels(context.spec, json_object.members)]
    judged = list_all_texts(context.judged())
    texts = [squeeze_quotation(text) for text in judged]
    if any(whole in text or all(f"{part}," in text or f"{part}}}" in text for part in parts) for text in texts):
        return True
    return repeats_passage(written, [unescape_text(text) for text in judged if len(text) >= MIN_PASSAGE_LETTERS])


def verdict_labels(spec: RubricSpec, reply_object: Mapping[str, object]) -> list[str]:
    """Every verdict of a valid object, with its key."""
    members = find_verdict_object(spec, fold_keys(spec, reply_object))
    keys = [fold_label(reply_key(aspect)) for aspect in spec.aspects]
    return [f"{key}:{rationale_text(members[key])}" for key in keys]


def is_unambiguous_object(spec: RubricSpec, json_object: JsonObject, written: str) -> bool:
    """Whether a flawed object has each key once, and no comment that could reverse a label."""
    if any(count_key(key, written) > 1 for key in verdict_keys(spec)):
        return False
    comments, verdicts = json_object.comments, find_verdict_object(spec, fold_keys(spec, json_object.members))
    labels = [(aspect, str(verdicts[fold_label(reply_key(aspect))])) for aspect in spec.aspects]
    return not comments or all(is_neutral_remark(aspect, label, comments) for aspect, label in labels)


def count_key(key: str, written: str) -> int:
    words = key_pattern(key)
    quoted = re.findall(rf"{QUOTE_CLASS}\W{{0,3}}?{words}\W{{0,3}}?{QUOTE_CLASS}\s{{0,9}}[:：]", written, re.IGNORECASE)
    return len(quoted) or len(re.findall(rf"(?<!\w){words}\s{{0,9}}[:：]", written, re.IGNORECASE))


def contains_key(spec: RubricSpec, text: str, before: str = "") -> bool:
    """Whether the text contains a reply key in JSON, followed by the pattern ``before``."""
    if ":" not in text and "：" not in text:
        return False
    keys = "|".join(map(key_pattern, verdict_keys(spec)))
    pattern = rf"{QUOTE_CLASS}\W{{0,3}}?(?:{keys})\W{{0,3}}?{QUOTE_CLASS}\s{{0,9}}[:：]{before}"
    return bool(re.search(pattern, text, re.IGNORECASE))


def key_pattern(key: str) -> str:
    """A key with any word separators."""
    return r"[\W_]{0,3}".join(map(re.escape, filter(None, WORD_BREAK.split(key)))) or re.escape(key)


def verdict_keys(spec: RubricSpec) -> list[str]:
    return [spec.rationale_key, *([spec.choices_key] if spec.choices_key else []), *map(reply_key, spec.aspects)]
