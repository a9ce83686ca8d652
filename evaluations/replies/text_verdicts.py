"""Verdicts in plain text: a label or a number in the declared form, or alone on the last line."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from evaluations.domain.rubrics import AspectSpec
from evaluations.replies.label_context import (
    TAKEN_BACK,
    contradicts_label,
    is_harmless_remark,
    is_label_listed,
    is_label_stated,
)
from evaluations.replies.labels import (
    CHOICE_LEAD,
    LABEL_ORNAMENTS,
    LATEX,
    SCORE_LEAD,
    match_line_label,
    strip_lead,
    strip_ornaments,
)
from evaluations.replies.linear_patterns import PatternMatch, PatternTimedOut, find_matches
from evaluations.replies.passages import list_all_texts
from evaluations.replies.reply_format import verdict_pattern
from evaluations.replies.think_tags import strip_end_marks
from evaluations.replies.verdict_values import (
    OPENING_TAG,
    ParsedVerdicts,
    ReplyContext,
    UnreadableReply,
    parse_text_verdict,
    squeeze_quotation,
    strip_fence,
)

# How the text after a label in brackets begins if it does not continue the sentence.
REMARK_START: Final = re.compile(
    r"[.!:;,–—(\n-]|(?:because|since|as|due)\b|[A-Z]|[^\x00-\x7f]"
    r"|is (?:my|the) (?:final |own )?(?:verdict|answer|choice|judge?ment|decision|winner)\b"
)
MAX_PATTERN_MATCHES: Final = 100  # more mean that the model repeats itself
NEARBY_LENGTH: Final = 300  # characters around a label that are examined
SENTENCE_ENDINGS: Final = (".", "!", "?", "。", "！", "？")
# How a line ends whose sentence goes on in the next, or that asks for a value which is no verdict.
LABEL_CONTINUES: Final = re.compile(
    r"(?:\b(?:than|over|and|or|an?|beats?|vs\.?|versus|between|against|deserves|gets|chose|chosen|picked)"
    r"|(?:\A|\s)[<>]|[=,/&+])"
    r"[\s*_`\"'“(]*\Z"
    r"|\b(?:correct|right|gold|reference|expected|true) (?:answer|option|choice|output)\b|\bthe question\b",
    re.IGNORECASE,
)
# What may precede a word like “Verdict” in its clause, and how a number is written that has a sign.
OWN_VERDICT_WORD: Final = re.compile(
    r"(?:\A|[^\w\s*_#>|\"'“(<[-]"
    r"|\b(?:my|the|our|final|overall|total|own|so|thus|therefore|hence|finally|and|is|as|an?|this|with|following|combined"
    r"|resulting|single))[\s*_#>|\"'“(<[-]*\Z",
    re.IGNORECASE,
)
NUMBER_SIGN: Final = re.compile(r"(?:[-−–+.,~∼≈<≤≥±¬!≠?$€£/^]|(?<![\w\"'/-])>)\Z")
# So many lines may follow the one that holds a label.
MAX_LAST_LINES: Final = 6


def parse_text_verdicts(context: ReplyContext, text: str) -> ParsedVerdicts:
    """The label in the declared form, or alone on the last line. Labels inside prose never count."""
    (aspect,) = context.spec.aspects
    text = text.strip()
    labels = find_labels_at_end(context, text) or find_labels_before_remark(context, text)
    if not labels:
        raise UnreadableReply("The reply does not end in a verdict of the form that the rubric declares.")
    labels += find_other_statements(aspect, strip_end_marks(text))
    verdicts = {parse_text_verdict(context.spec, aspect, label) for label in labels}
    if len(verdicts) > 1:
        raise UnreadableReply(f"The reply gives more than one verdict: {', '.join(dict.fromkeys(labels))}.")
    return {aspect.key: verdicts.pop()}, text


def find_labels_at_end(context: ReplyContext, text: str) -> list[str]:
    """The labels in the declared form, also before closing marks; else the label of the last line."""
    (aspect,) = context.spec.aspects
    pattern = verdict_pattern(context.spec)
    if context.in_line and not text.endswith(tuple(bracketed_labels(aspect))):
        return []
    plain = strip_end_marks(text)
    for variant in reply_variants(text, plain) if pattern else ():
        if labels := find_pattern_labels(context, pattern, variant):
            return labels
    return parse_last_line(aspect, plain)


def reply_variants(text: str, plain: str) -> Iterator[str]:
    """The reply, and its variants without decoration around or inside the verdict; each only once."""
    yield text
    if plain != text:
        yield plain
    if (bare := strip_ornaments(plain)) != plain:
        yield bare
    if "**" in plain:
        yield plain.replace("**", "")
    if "\\" in plain:
        yield LATEX.sub(r"\1", plain)


def find_pattern_labels(context: ReplyContext, pattern: str, text: str) -> list[str]:
    """The labels that the rubric's pattern finds and no words around them deny.

    Words that also occur in a judged text may be quoted: they count only as the whole last line.
    """
    matches = find_stored_pattern(pattern, text)
    befores = [text_before_match(match, text) for match in matches]
    if len(matches) > MAX_PATTERN_MATCHES or any(map(is_label_listed, befores)):
        return []
    own = [
        match
        for match, before in zip(matches, befores, strict=True)
        if is_label_stated(before, text_after_match(match, text)) and is_own_label(match, before, text)
    ]
    if matches and not own and matches[-1].end > len(text.rstrip().rpartition("\n")[0]):
        raise UnreadableReply("The reply denies the verdict that it ends in, or gives it as another's.")
    if own and is_label_retracted(context, own[-1].label, text[own[-1].end :]):
        raise UnreadableReply("The reply takes its verdict back.")
    last = squeeze_quotation(text.strip().splitlines()[-1].strip(LABEL_ORNAMENTS)) if text.strip() else ""
    elsewhere = [match for match in own if squeeze_quotation(match.text) != last]
    if elsewhere and context.judged is not None:
        judged = [squeeze_quotation(judged_text) for judged_text in list_all_texts(context.judged())]
        quoted = [match for match in elsewhere if any(squeeze_quotation(match.text) in words for words in judged)]
        own = [match for match in own if match not in quoted]
    return [match.label for match in own]


def text_before_match(match: PatternMatch, text: str) -> str:
    return text[max(match.start - NEARBY_LENGTH, 0) : match.start]


def text_after_match(match: PatternMatch, text: str) -> str:
    """The text after a match, or after its label if the match has no more words."""
    tail = text[match.span[1] : match.end]
    end = match.span[1] if match.label and not re.search(r"[^\W_]{2}", tail) else match.end
    return text[end : match.end + NEARBY_LENGTH].lstrip("])")


def is_own_label(match: PatternMatch, before: str, text: str) -> bool:
    """Whether a label is complete, with its sign, and the word before it does not restrict it.

    “Clarity score: 4” is not the score, and “Score: -4” is not 4.
    """
    lead = text[match.start : match.span[0]]
    if not lead:
        return True
    if NUMBER_SIGN.search(lead):
        return False
    return not lead[0].isalpha() or bool(OWN_VERDICT_WORD.search(before.rpartition("\n")[2]))


def is_label_retracted(context: ReplyContext, label: str, remark: str) -> bool:
    """Whether the words after a label retract it, or give the verdict to another side."""
    if not re.search(r"\w", remark):
        return False
    (aspect,) = context.spec.aspects
    if aspect.scale_min is None:
        labels = map(aspect.label, aspect.choices)
        label = next((known for known in labels if known.casefold() == label.casefold()), "")
    return bool(label and (TAKEN_BACK.search(remark) or contradicts_label(aspect, label, remark)))


def find_stored_pattern(pattern: str, text: str) -> list[PatternMatch]:
    """The matches of a stored rubric's pattern; UnreadableReply if that takes too long."""
    try:
        return find_matches(pattern, text) if pattern else []
    except PatternTimedOut as error:
        raise UnreadableReply(str(error)) from None


def parse_last_line(aspect: AspectSpec, text: str) -> list[str]:
    """The last non-empty line, if it is one label alone."""
    lines = [line for line in strip_fence(text).splitlines() if line.strip(" \t`")]
    label = match_line_label(aspect, OPENING_TAG.sub("", lines[-1])) if lines else None
    if label and len(lines) > 1:
        before = lines[-2][-NEARBY_LENGTH:].rstrip(" *_`\"'”’)")
        is_open = not before.endswith(SENTENCE_ENDINGS)
        if is_open and (LABEL_CONTINUES.search(before) or not is_label_stated(before, "")):
            return []
        if lines[-1].strip(LABEL_ORNAMENTS).isdecimal() and is_foreign_number(aspect, lines, before):
            return []
    return [label] if label else []


def is_foreign_number(aspect: AspectSpec, lines: Sequence[str], before: str) -> bool:
    """Whether a number on the last line continues a list, or is the value of something else."""
    number = int(lines[-1].strip(LABEL_ORNAMENTS))
    if re.match(rf"\W{{0,9}}{number - 1}[.)]", lines[-2]):
        return True
    is_led = before.endswith((":", "：", "=")) or re.search(r"\b(?:is|of)\Z", before) is not None
    if is_led and aspect.scale_min is not None and re.search(r"\b(?:score|rate|rating|grade)\b", before, re.IGNORECASE):
        return False
    return is_led and match_line_label(aspect, f"{before} {number}") is None


def find_other_statements(aspect: AspectSpec, text: str) -> list[str]:
    """The labels of lines like “Verdict: A”, of bracketed labels, and of the line before the last.

    If labels are bracketed, a bare letter may be anything, such as the answer to a question.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    lead_pattern = CHOICE_LEAD if aspect.scale_min is None else SCORE_LEAD
    if bracketed := bracketed_labels(aspect):
        with_bracket = [strip_lead(line) or line for line in lines if "[" in line]
        return [label for label in bracketed for line in with_bracket if line.strip(LABEL_ORNAMENTS) == label]
    stated = [line for line in lines if strip_lead(line, lead_pattern)]
    if len(lines) > 1 and match_line_label(aspect, lines[-1]):
        stated.append(lines[-2])
    return [label for line in stated if (label := match_line_label(aspect, line))]


def find_labels_before_remark(context: ReplyContext, text: str) -> list[str]:
    """The label before a remark that leaves it valid, on its own line or bracketed."""
    (aspect,) = context.spec.aspects
    after_brackets = () if context.is_cut_off else split_after_brackets(aspect, text)
    for head, remark in chain(split_after_lines(text), after_brackets):
        if labels := find_labels_at_end(replace(context, in_line=False), head):
            label = labels[0]
            is_own = len({*labels, *find_all_labels(aspect, text)}) == 1 and not is_planted_label(context, label)
            is_closed = not context.is_cut_off or label in bracketed_labels(aspect)
            return labels if is_own and is_closed and is_harmless_remark(aspect, label, remark) else []
    return []


def split_after_lines(text: str) -> Iterator[tuple[str, str]]:
    """The reply in two, split after each of its last lines."""
    lines = text.splitlines(keepends=True)
    for count in range(1, min(MAX_LAST_LINES, len(lines))):
        yield "".join(lines[:-count]), "".join(lines[-count:])


def split_after_brackets(aspect: AspectSpec, text: str) -> Iterator[tuple[str, str]]:
    """The reply in two, split after the last of each bracketed label, if a remark begins there."""
    for label in bracketed_labels(aspect):
        head, separator, remark = text.rpartition(label)
        remark = remark.lstrip("*_`\"'”’ ")
        if separator and REMARK_START.match(remark):
            yield head + label, remark


def bracketed_labels(aspect: AspectSpec) -> list[str]:
    return [label for label in map(aspect.label, aspect.choices) if label.startswith("[") and label.endswith("]")]


def find_all_labels(aspect: AspectSpec, text: str) -> set[str]:
    """Bracketed labels anywhere, and labels that are a whole line."""
    lines = {label for line in text.splitlines() if (label := match_line_label(aspect, line))}
    return lines | {label for label in bracketed_labels(aspect) if label in text}


def is_planted_label(context: ReplyContext, label: str) -> bool:
    """Whether a judged text contains the label in brackets, or as a whole line."""
    if context.judged is None:
        return False
    (aspect,) = context.spec.aspects
    return any(label in find_all_labels(aspect, text) for text in list_all_texts(context.judged()))
