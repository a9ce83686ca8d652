"""Verdicts in a JSON object."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from evaluations.domain import AspectSpec, Choice, RubricSpec
from evaluations.judge.json_objects import Found, Members, objects_in, whole_object
from evaluations.judge.labels import folded, label_on
from evaluations.judge.passages import ENOUGH_LETTERS, repeats, unescaped
from evaluations.judge.prompting import all_texts
from evaluations.judge.remarks import NOT_OWN, TAKEN_BACK, is_neutral, speaks_against
from evaluations.judge.replying import is_pointwise, reply_key, wants_text
from evaluations.judge.thoughts import without_end_marks
from evaluations.judge.verdicts import (
    Asked,
    Quoted,
    Reading,
    Unreadable,
    Verdict,
    out_of_fence,
    squeezed,
    verdict_for,
)

PARTED: Final = re.compile(r"[\W_]+")
AS_VALUE: Final = r"\s{0,9}(?:[\"'“”„«»‘’{\[\d]|\Z)"  # how a value in JSON begins, or is missing
QUOTE: Final = "[\"'“”„«»‘’″＂]"
# Names of members that hold a verdict, too, and of those that hold one which came later; and of those that do not.
SECOND: Final = re.compile(
    r"verdict|choice|winner|preferen|decision|judge?ment|final|revis|corrected|updated|better|best"
)
LATER: Final = re.compile(r"final|revis|corrected|updated|adjusted")
NO_SECOND: Final = re.compile(
    r"reject|los[et]|wors|second|alternat|other|runner|before|initial|first|draft|not_|max|min"
)
WRAPPERS: Final = {
    "result",
    "output",
    "answer",
    "final_answer",
    "evaluation",
    "verdict",
    "judgment",
    "judgement",
    "json",
}


def read_whole_object(asked: Asked, text: str) -> Reading | None:
    members = None if wants_text(asked.spec) and not asked.alone else whole_object(out_of_fence(text))
    if members is None:
        return None
    members = unwrapped(members)
    try:
        return validated(asked, members)
    except Unreadable:
        if is_verdict(asked.spec, members):
            raise
        return None


def read_json(asked: Asked, text: str) -> Reading:
    """The verdict of the objects in a reply, where all that could be its own give the same.

    What a verdict is made of must be in an object that can be read: any of its keys elsewhere may be part of one that
    the judge only quotes, or takes back.
    """
    text = without_end_marks(text).rstrip("`~ \n")
    objects, is_broken = objects_in(text, may_end_open=not asked.is_cut_off)
    readings: list[Reading] = []
    problem: Unreadable | None = None
    is_last, end = False, 0
    for one in objects:
        one = replace(one, members=unwrapped(one.members))
        try:
            readings.append(read_object(asked, one, text, text[end : one.start]))
            is_last = True
        except Quoted as error:
            problem = problem or error
        except Unreadable as error:
            problem, is_last = error, is_last and not is_verdict(asked.spec, one.members)
        end = one.end
    starts, ends = [one.start for one in objects], [one.end for one in objects]
    outside = [text[start:end] for start, end in zip([0, *ends], [*starts, len(text)], strict=True)]
    # Words before a verdict may name a key and go on in prose; words after it may not.
    is_open = any(holds_key(asked.spec, part, AS_VALUE) for part in outside) or holds_key(asked.spec, outside[-1])
    if is_open or (is_broken and not readings and not problem):
        raise Unreadable("The reply holds a JSON object that is broken.")
    if not readings or not is_last:
        raise problem or Unreadable("The reply holds no JSON object.")
    if any(reading[0] != readings[0][0] for reading in readings):
        raise Unreadable("The reply gives more than one verdict.")
    if TAKEN_BACK.search(outside[-1]) or is_contradicted(asked, readings[0], "\n".join(outside[:-1]), outside[-1]):
        raise Unreadable("The reply takes its verdict back.")
    return readings[-1]


def is_contradicted(asked: Asked, reading: Reading, before: str, remark: str) -> bool:
    """Whether the words around a verdict give it to another: by its key, on a line alone, or in a clause."""
    spec, verdicts = asked.spec, reading[0]
    around = f"{before}\n{remark}".casefold()
    for aspect in spec.aspects:
        if loosened(reply_key(aspect))[:3] not in around:
            continue
        given = rf"(?<![\w-]){pattern_of(reply_key(aspect))}\W{{0,6}}?(?:[:=：→]|->|{{}})\s{{0,3}}([^\n]{{1,60}})"
        for words, more in ((before, r"\Z\A"), (remark, r"\b(?:to|should be|is)\b")):
            said = re.findall(given.replace("{}", more), words, re.IGNORECASE) if words.strip() else []
            if any(is_another(spec, aspect, one, verdicts[aspect.key]) for one in said):
                return True
    if len(spec.aspects) > 1 or not remark.strip():
        return False
    (aspect,) = spec.aspects
    verdict = verdicts[aspect.key]
    if not isinstance(verdict, Choice):
        return False
    label = aspect.label(verdict)
    lines = {label_on(aspect, line) for line in remark.splitlines()} - {None, label}
    return bool(lines) or speaks_against(aspect, label, remark)


def is_another(spec: RubricSpec, aspect: AspectSpec, given: object, verdict: Verdict) -> bool:
    """Whether a value is a verdict, but not this one."""
    given = given.strip(" \t*_`.\"'|<") if isinstance(given, str) else given
    try:
        if isinstance(given, str) and is_pointwise(spec):
            given = float(given)
        return verdict_for(spec, aspect, given) != verdict
    except (Unreadable, ValueError):
        return False


def read_object(asked: Asked, one: Found, reply: str, before: str) -> Reading:
    reading = validated(asked, one.members)
    written = reply[one.start : one.end]
    if one.is_flawed and not is_unmistakable(asked.spec, one, written):
        raise Unreadable("The reply holds a JSON object that is broken.")
    if is_quoted(asked, one, written, reply) or is_announced_as_another(before):
        raise Quoted("The reply gives no verdict of its own: it only quotes one.")
    return reading


def is_announced_as_another(before: str) -> bool:
    """Whether what leads on to an object, on its line or by a colon on the line before, says whose it is instead."""
    lines = before.rstrip("` \n").removesuffix("```json").rstrip("` \n").splitlines()
    if not lines or ("\n" in before[len(before.rstrip()) :] and not lines[-1].endswith((":", ","))):
        return False
    return bool(NOT_OWN.search(lines[-1]))


def validated(asked: Asked, found: Mapping[str, Any]) -> Reading:
    spec, given = asked.spec, by_folded_key(asked.spec, found)
    rationale = given.get(folded(spec.rationale_key))
    if rationale is None and is_pointwise(spec) and not asked.alone:
        raise Unreadable(f"The reply's JSON has no “{spec.rationale_key}”.")
    labels = given_verdicts(spec, given)
    missing = [reply_key(aspect) for aspect in spec.aspects if folded(reply_key(aspect)) not in labels]
    if missing:
        raise Unreadable(f"The reply says nothing on {', '.join(missing)}.")
    verdicts = {aspect.key: verdict_for(spec, aspect, labels[folded(reply_key(aspect))]) for aspect in spec.aspects}
    refuse_second_verdict(spec, given, verdicts)
    return verdicts, rationale if isinstance(rationale, str) else said(rationale)


def refuse_second_verdict(spec: RubricSpec, given: Mapping[str, Any], verdicts: Mapping[str, Verdict]) -> None:
    """Unreadable where another member gives another verdict, or takes this one back."""
    asked = 1 if spec.choices_key and folded(spec.choices_key) in given else len(spec.aspects)
    if len(given) == asked + (folded(spec.rationale_key) in given):
        return
    known = {folded(key) for key in keys_of(spec)}
    for key, value in given.items():
        if key in known:
            continue
        if isinstance(value, str) and TAKEN_BACK.search(value):
            raise Unreadable("The reply takes its verdict back.")
        if not (LATER if is_pointwise(spec) else SECOND).search(key) or NO_SECOND.search(key):
            continue
        is_one = len(spec.aspects) == 1 and not isinstance(value, dict)
        for aspect in spec.aspects:
            other = value if is_one else value.get(reply_key(aspect)) if isinstance(value, dict) else None
            if is_another(spec, aspect, other, verdicts[aspect.key]):
                raise Unreadable("The reply gives more than one verdict.")


def given_verdicts(spec: RubricSpec, given: dict[str, Any]) -> dict[str, Any]:
    """The object of the verdicts: the one under its key, or the reply itself, also where that key was left out."""
    if not spec.choices_key:
        return given
    choices = given.get(folded(spec.choices_key))
    if choices is None and all(folded(reply_key(aspect)) in given for aspect in spec.aspects):
        return given
    if not isinstance(choices, dict):
        raise Unreadable(f"The reply's JSON has no “{spec.choices_key}”.")
    return by_folded_key(spec, choices)


def said(rationale: object) -> str:
    """Reasons that are no text, such as a list of them, as they were given."""
    return "" if rationale is None else json.dumps(rationale, ensure_ascii=False)


def by_folded_key(spec: RubricSpec, found: Mapping[str, Any]) -> dict[str, Any]:
    """The members by the keys of the rubric, in any case and however their words are parted."""
    return dict(without_repeats(Members.of(keyed(spec, without_repeats(found)))))


def keyed(spec: RubricSpec, found: Mapping[str, Any]) -> list[tuple[str, Any]]:
    keys = [folded(key) for key in keys_of(spec)]
    if all(folded(key) in keys for key in found):
        return [(folded(key), value) for key, value in found.items()]
    loose = Counter(map(loosened, keys))
    known = {loosened(key): key for key in keys if loosened(key) and loose[loosened(key)] == 1} | {
        key: key for key in keys
    }
    return [(known.get(folded(key), known.get(loosened(key), folded(key))), value) for key, value in found.items()]


def loosened(key: str) -> str:
    return PARTED.sub("", key).casefold()


def without_repeats(found: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(found, Members) and found.repeated:
        raise Unreadable(f"The reply gives “{found.repeated[:80]}” twice.")
    return found


def is_verdict(spec: RubricSpec, members: Mapping[str, Any]) -> bool:
    """Whether an object speaks of an aspect where the rubric said it would, valid or not."""
    given = dict(keyed(spec, members))
    if spec.choices_key:
        inside = given.get(folded(spec.choices_key))
        given = dict(keyed(spec, inside)) if isinstance(inside, dict) else {}
    return any(folded(reply_key(aspect)) in given for aspect in spec.aspects)


def unwrapped(members: Members) -> Members:
    """The arguments of a function call, as models write one that were told of no function, or the one result."""
    outer, inner = members, None
    if outer.keys() <= {"type", "id", "function"} and isinstance(outer.get("function"), Members):
        outer = outer["function"]
    if "name" in outer and outer.keys() <= {"type", "id", "name", "arguments", "parameters"}:
        inner = outer.get("arguments", outer.get("parameters"))
    elif len(outer) == 1 and folded(next(iter(outer))) in WRAPPERS:
        (inner,) = outer.values()
    inner = whole_object(inner.strip()) if isinstance(inner, str) else inner
    return inner if isinstance(inner, Members) else members


# ---- whose it is ---------------------------------------------------------------------------


def is_quoted(asked: Asked, one: Found, written: str, reply: str) -> bool:
    """Whether a judged text holds an object that is amid other words: it was planted there, and is not the judge's.

    Its verdicts alone suffice, each with its key: a quotation may leave the reasons out. A reply
    that is the object and nothing else is the judge's own, whatever a judged text holds.
    """
    if asked.judged is None or (out_of_fence(reply) == written and not one.is_flawed):
        return False
    whole, parts = squeezed(written), [squeezed(label) for label in labels_in(asked.spec, one.members)]
    judged = all_texts(asked.judged())
    texts = [squeezed(text) for text in judged]
    if any(whole in text or all(f"{part}," in text or f"{part}}}" in text for part in parts) for text in texts):
        return True
    return repeats(written, [unescaped(text) for text in judged if len(text) >= ENOUGH_LETTERS])


def labels_in(spec: RubricSpec, found: Mapping[str, Any]) -> list[str]:
    """Every verdict of an object that validates, with its key."""
    given = given_verdicts(spec, by_folded_key(spec, found))
    keys = [folded(reply_key(aspect)) for aspect in spec.aspects]
    return [f"{key}:{said(given[key])}" for key in keys]


def is_unmistakable(spec: RubricSpec, one: Found, written: str) -> bool:
    """Whether a flawed object holds each key once, and no comment on its labels that could turn them round."""
    if any(count_of(key, written) > 1 for key in keys_of(spec)):
        return False
    given = given_verdicts(spec, by_folded_key(spec, one.members))
    labels = [(aspect, str(given[folded(reply_key(aspect))])) for aspect in spec.aspects]
    return not one.comments or all(is_neutral(aspect, label, one.comments) for aspect, label in labels)


def count_of(key: str, written: str) -> int:
    words = pattern_of(key)
    quoted = re.findall(rf"{QUOTE}\W{{0,3}}?{words}\W{{0,3}}?{QUOTE}\s{{0,9}}[:：]", written, re.IGNORECASE)
    return len(quoted) or len(re.findall(rf"(?<!\w){words}\s{{0,9}}[:：]", written, re.IGNORECASE))


def holds_key(spec: RubricSpec, text: str, before: str = "") -> bool:
    """Whether the text holds a key of the reply as JSON writes it, before what the pattern says."""
    if ":" not in text and "：" not in text:
        return False
    keys = "|".join(map(pattern_of, keys_of(spec)))
    return bool(re.search(rf"{QUOTE}\W{{0,3}}?(?:{keys})\W{{0,3}}?{QUOTE}\s{{0,9}}[:：]{before}", text, re.IGNORECASE))


def pattern_of(key: str) -> str:
    """A key with whatever parts its words."""
    return r"[\W_]{0,3}".join(map(re.escape, filter(None, PARTED.split(key)))) or re.escape(key)


def keys_of(spec: RubricSpec) -> list[str]:
    return [spec.rationale_key, *([spec.choices_key] if spec.choices_key else []), *map(reply_key, spec.aspects)]
