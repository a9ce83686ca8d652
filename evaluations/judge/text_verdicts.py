"""Verdicts in plain text: a label or a number in the form that the rubric declares, or alone on the last line."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from evaluations.domain import AspectSpec
from evaluations.judge.labels import AROUND, label_on, without_lead, without_ornaments
from evaluations.judge.linear_patterns import Match, PatternTimedOut, find_matches
from evaluations.judge.prompting import all_texts
from evaluations.judge.remarks import is_harmless, is_listed, is_stated
from evaluations.judge.replying import text_pattern
from evaluations.judge.thoughts import without_end_marks
from evaluations.judge.verdicts import (
    OPENING_TAG,
    Asked,
    Judged,
    Reading,
    Unreadable,
    out_of_fence,
    squeezed,
    verdict_in_words,
)

# How what follows a label in brackets begins where it does not go on with its sentence.
REMARK: Final = re.compile(
    r"[.!:;,–—(\n-]|(?:because|since|as|due)\b|[A-Z]|[^\x00-\x7f]"
    r"|is (?:my|the) (?:final |own )?(?:verdict|answer|choice|judge?ment|decision|winner)\b"
)
MOST_MATCHES: Final = 100  # more are a model that repeats itself
NEAR: Final = 300  # characters around a label that are looked at
ENDED: Final = (".", "!", "?", "。", "！", "？")
# So many lines may follow the one that holds a label.
MOST_LINES: Final = 6


def read_text(asked: Asked, text: str) -> Reading:
    """The label in the declared form, or alone on the last line. Labels inside prose never count."""
    (aspect,) = asked.spec.aspects
    text = text.strip()
    labels = labels_at_end(asked, text) or labels_before_remark(asked, text)
    if not labels:
        raise Unreadable("The reply does not end in a verdict of the form that the rubric declares.")
    labels += stated_elsewhere(aspect, without_end_marks(text))
    verdicts = {verdict_in_words(asked.spec, aspect, label) for label in labels}
    if len(verdicts) > 1:
        raise Unreadable(f"The reply gives more than one verdict: {', '.join(dict.fromkeys(labels))}.")
    return {aspect.key: verdicts.pop()}, text


def labels_at_end(asked: Asked, text: str) -> list[str]:
    """The labels in the declared form, also where marks that say nothing follow them; else that of the last line."""
    (aspect,) = asked.spec.aspects
    pattern = text_pattern(asked.spec)
    if asked.in_line and not text.endswith(tuple(bracketed(aspect))):
        return []
    plain = without_end_marks(text)
    forms = dict.fromkeys((text, plain, without_ornaments(plain))) if pattern else ()
    found = next(filter(None, (matches(pattern, form, asked.judged) for form in forms)), [])
    return found or last_line(aspect, plain)


def matches(pattern: str, text: str, judged: Judged | None) -> list[str]:
    """Every label that the rubric's pattern finds and nothing beside it denies: its one group, or the whole match.

    Words that a judged text holds too may be quoted from it: they count as the whole last line alone.
    """
    found = found_by(pattern, text)
    befores = [text[max(one.start - NEAR, 0) : one.start] for one in found]
    if len(found) > MOST_MATCHES or any(map(is_listed, befores)):
        return []
    behinds = [text[one.end : one.end + NEAR] for one in found]
    found = [one for one, *around in zip(found, befores, behinds, strict=True) if is_stated(*around)]
    if not found or judged is None:
        return [one.label for one in found]
    last = squeezed(text.strip().splitlines()[-1].strip(AROUND)) if text.strip() else ""
    texts = [squeezed(one) for one in all_texts(judged())]
    own = [one for one in found if last == (words := squeezed(one.text)) or not any(words in text for text in texts)]
    return [one.label for one in own]


def found_by(pattern: str, text: str) -> list[Match]:
    """Where the pattern of a stored rubric matches. Unreadable where that takes too long."""
    try:
        return find_matches(pattern, text) if pattern else []
    except PatternTimedOut as error:
        raise Unreadable(str(error)) from None


def last_line(aspect: AspectSpec, text: str) -> list[str]:
    """The last line that is not empty, where it states one label and nothing else."""
    lines = [line for line in out_of_fence(text).splitlines() if line.strip(" \t`")]
    label = label_on(aspect, OPENING_TAG.sub("", lines[-1])) if lines else None
    leads_on = len(lines) > 1 and not lines[-2][-NEAR:].rstrip(" *_`\"'”’)").endswith(ENDED)
    return [label] if label and not (leads_on and not is_stated(lines[-2][-NEAR:], "")) else []


def stated_elsewhere(aspect: AspectSpec, text: str) -> list[str]:
    """The labels of lines that say “Verdict:” or the like, that are one in brackets, or that precede the last line.

    Where labels are in brackets, a letter without them names anything: the answer to a question, for one.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if marked := bracketed(aspect):
        said = [without_lead(line) or line for line in lines if "[" in line]
        return [label for label in marked for line in said if line.strip(AROUND) == label]
    found = [label for line in lines if without_lead(line) and (label := label_on(aspect, line))]
    if len(lines) > 1 and label_on(aspect, lines[-1]):
        found += [label for label in [label_on(aspect, lines[-2])] if label]
    return found


# ---- a remark after the label --------------------------------------------------------------


def labels_before_remark(asked: Asked, text: str) -> list[str]:
    """The label that a remark follows which leaves it standing, on its own line or behind a label in brackets."""
    (aspect,) = asked.spec.aspects
    for head, remark in chain(after_lines(text), () if asked.is_cut_off else after_brackets(aspect, text)):
        labels = labels_at_end(replace(asked, in_line=False), head)
        if labels:
            one = labels[0]
            is_own = len({*labels, *labels_anywhere(aspect, text)}) == 1 and not is_planted(asked, one)
            is_closed = not asked.is_cut_off or one in bracketed(aspect)
            return labels if is_own and is_closed and is_harmless(aspect, one, remark) else []
    return []


def after_lines(text: str) -> Iterator[tuple[str, str]]:
    """The reply in two, at the end of each of its last lines."""
    lines = text.splitlines(keepends=True)
    for count in range(1, min(MOST_LINES, len(lines))):
        yield "".join(lines[:-count]), "".join(lines[-count:])


def after_brackets(aspect: AspectSpec, text: str) -> Iterator[tuple[str, str]]:
    """The reply in two, behind the last of each label in brackets, where a remark of its own begins there."""
    for label in bracketed(aspect):
        head, found, remark = text.rpartition(label)
        remark = remark.lstrip("*_`\"'”’ ")
        if found and REMARK.match(remark):
            yield head + label, remark


def bracketed(aspect: AspectSpec) -> list[str]:
    return [label for label in map(aspect.label, aspect.choices) if label.startswith("[") and label.endswith("]")]


def labels_anywhere(aspect: AspectSpec, text: str) -> set[str]:
    """Labels in brackets wherever they stand, and those that are a whole line."""
    lines = {label for line in text.splitlines() if (label := label_on(aspect, line))}
    return lines | {label for label in bracketed(aspect) if label in text}


def is_planted(asked: Asked, label: str) -> bool:
    """Whether a judged text holds the label in brackets, or as a whole line."""
    if asked.judged is None:
        return False
    (aspect,) = asked.spec.aspects
    return any(label in labels_anywhere(aspect, text) for text in all_texts(asked.judged()))
