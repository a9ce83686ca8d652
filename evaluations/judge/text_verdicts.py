"""Verdicts in plain text: a label or a number in the form that the rubric declares, or alone on the last line."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from evaluations.domain import AspectSpec
from evaluations.judge.labels import AROUND, LATEX, LEAD, LEAD_TO_SCORE, label_on, without_lead, without_ornaments
from evaluations.judge.linear_patterns import Match, PatternTimedOut, find_matches
from evaluations.judge.prompting import all_texts
from evaluations.judge.remarks import TAKEN_BACK, is_harmless, is_listed, is_stated, speaks_against
from evaluations.judge.replying import text_pattern
from evaluations.judge.thoughts import without_end_marks
from evaluations.judge.verdicts import (
    OPENING_TAG,
    Asked,
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
# How a line ends whose sentence goes on in the next, or that asks for a value which is no verdict.
GOES_ON: Final = re.compile(
    r"(?:\b(?:than|over|and|or|an?|beats?|vs\.?|versus|between|against|deserves|gets|chose|chosen|picked)"
    r"|(?:\A|\s)[<>]|[=,/&+])"
    r"[\s*_`\"'“(]*\Z"
    r"|\b(?:correct|right|gold|reference|expected|true) (?:answer|option|choice|output)\b|\bthe question\b",
    re.IGNORECASE,
)
# What may precede a word like “Verdict” in its clause, and how a number is written that has a sign.
OWN_WORD: Final = re.compile(
    r"(?:\A|[^\w\s*_#>|\"'“(<[-]"
    r"|\b(?:my|the|our|final|overall|total|own|so|thus|therefore|hence|finally|and|is|as|an?|this|with|following|combined"
    r"|resulting|single))[\s*_#>|\"'“(<[-]*\Z",
    re.IGNORECASE,
)
SIGN: Final = re.compile(r"(?:[-−–+.,~∼≈<≤≥±¬!≠?$€£/^]|(?<![\w\"'/-])>)\Z")
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
    found = next(filter(None, (matches(asked, pattern, form) for form in forms_of(text, plain))), []) if pattern else []
    return found or last_line(aspect, plain)


def forms_of(text: str, plain: str) -> Iterator[str]:
    """The reply as it is, and without what is around its verdict or in it and says nothing; each only once."""
    yield text
    if plain != text:
        yield plain
    if (bare := without_ornaments(plain)) != plain:
        yield bare
    if "**" in plain:
        yield plain.replace("**", "")
    if "\\" in plain:
        yield LATEX.sub(r"\1", plain)


def matches(asked: Asked, pattern: str, text: str) -> list[str]:
    """Every label that the rubric's pattern finds and nothing beside it denies: its one group, or the whole match.

    Words that a judged text holds too may be quoted from it: they count as the whole last line alone.
    """
    found = found_by(pattern, text)
    befores = [text[max(one.start - NEAR, 0) : one.start] for one in found]
    if len(found) > MOST_MATCHES or any(map(is_listed, befores)):
        return []
    behinds = [behind(one, text) for one in found]
    own = [
        one for one, *around in zip(found, befores, behinds, strict=True) if is_stated(*around) and is_own(one, text)
    ]
    if found and not own and found[-1].end > len(text.rstrip().rpartition("\n")[0]):
        raise Unreadable("The reply denies the verdict that it ends in, or gives it as another's.")
    found, judged = own, asked.judged
    if found and is_taken_back(asked, found[-1].label, text[found[-1].end :]):
        raise Unreadable("The reply takes its verdict back.")
    if not found or judged is None:
        return [one.label for one in found]
    last = squeezed(text.strip().splitlines()[-1].strip(AROUND)) if text.strip() else ""
    if all(last == squeezed(one.text) for one in found):
        return [one.label for one in found]
    texts = [squeezed(one) for one in all_texts(judged())]
    own = [one for one in found if last == (words := squeezed(one.text)) or not any(words in text for text in texts)]
    return [one.label for one in own]


def behind(one: Match, text: str) -> str:
    """What follows a match, or the label in it where no more words belong to the match."""
    tail = text[one.span[1] : one.end]
    end = one.span[1] if one.label and not re.search(r"[^\W_]{2}", tail) else one.end
    return text[end : one.end + NEAR].lstrip("])")


def is_own(one: Match, text: str) -> bool:
    """Whether a label is whole, with the sign before it, and the word that leads on to it says no more of itself.

    “Clarity score: 4” is not the score, and “Score: -4” is not 4.
    """
    first = one.span[0]
    if first <= one.start:
        return True
    lead = text[one.start : first]
    return not SIGN.search(lead) and (
        not lead[0].isalpha() or bool(OWN_WORD.search(text[max(one.start - NEAR, 0) : one.start].rpartition("\n")[2]))
    )


def is_taken_back(asked: Asked, label: str, remark: str) -> bool:
    """Whether the words behind a label that a pattern found take it back, or give the verdict to another."""
    if not re.search(r"\w", remark):
        return False
    (aspect,) = asked.spec.aspects
    if aspect.scale_min is None:
        label = next((one for one in map(aspect.label, aspect.choices) if one.casefold() == label.casefold()), "")
    return bool(label and (TAKEN_BACK.search(remark) or speaks_against(aspect, label, remark)))


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
    if label and len(lines) > 1:
        before = lines[-2][-NEAR:].rstrip(" *_`\"'”’)")
        leads_on = not before.endswith(ENDED)
        if leads_on and (GOES_ON.search(before) or not is_stated(before, "")):
            return []
        if lines[-1].strip(AROUND).isdecimal() and is_no_value(aspect, lines, before):
            return []
    return [label] if label else []


def is_no_value(aspect: AspectSpec, lines: Sequence[str], before: str) -> bool:
    """Whether a number on the last line goes on with a list, or is the value of something else."""
    number = int(lines[-1].strip(AROUND))
    if re.match(rf"\W{{0,9}}{number - 1}[.)]", lines[-2]):
        return True
    is_led = before.endswith((":", "：", "=")) or re.search(r"\b(?:is|of)\Z", before) is not None
    if is_led and aspect.scale_min is not None and re.search(r"\b(?:score|rate|rating|grade)\b", before, re.IGNORECASE):
        return False
    return is_led and label_on(aspect, f"{before} {number}") is None


def stated_elsewhere(aspect: AspectSpec, text: str) -> list[str]:
    """The labels of lines that say “Verdict:” or the like, that are one in brackets, or that precede the last line.

    Where labels are in brackets, a letter without them names anything: the answer to a question, for one.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    leads = LEAD if aspect.scale_min is None else LEAD_TO_SCORE
    if marked := bracketed(aspect):
        said = [without_lead(line) or line for line in lines if "[" in line]
        return [label for label in marked for line in said if line.strip(AROUND) == label]
    found = [label for line in lines if without_lead(line, leads) and (label := label_on(aspect, line))]
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
