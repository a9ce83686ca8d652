"""Matching of label words: alone, among ornaments, behind “Verdict:”, before a harmless remark."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from evaluations.domain.choices import Choice
from evaluations.domain.rubrics import AspectSpec
from evaluations.replies.label_context import (
    DENIAL_MARKS,
    IGNORED_MARKS,
    SIDE_WORDS,
    choice_by_label,
    is_harmless_remark,
)
from evaluations.replies.reply_format import snap_to_scale

# What may surround a label that is alone on a line, without a meaning.
LABEL_ORNAMENTS: Final = " \t*_`\"'“”."
# A point before a number matters: .5 is no 5.
NUMBER_ORNAMENTS: Final = LABEL_ORNAMENTS.replace(".", "")
NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d+)?|\.\d+)")
LEADING_MARKS: Final = IGNORED_MARKS.translate(dict.fromkeys(map(ord, "!.,:;。！，：；、")))
LATEX: Final = re.compile(r"\\(?:boxed|text|textbf|textit|mathbf|mathrm|emph)\s?\{([^{}]{0,80})\}")
TAG: Final = re.compile(r"</?[a-z_]{2,20}>|<\|\w{2,40}\|>", re.IGNORECASE)
CLOSING_ORNAMENTS: Final = " \t\n$*_~!.。！\"'”’»`"
VERDICT: Final = (
    r"verdict|answer|judge?ment|decision|conclusion|result|label|evaluation|urteil|antwort|bewertung|entscheidung"
    r"|respuesta|réponse|risposta|resposta|décision|decisión|вердикт|ответ|решение|الحكم"
)
CHOICE_WORDS: Final = (
    rf"{VERDICT}|choice|winner|preference|response|assistant|output|option|selection|gewinner|gagnant|ganador|vincitore"
    r"|vencedor|победитель"
)
SCORE_WORDS: Final = rf"{VERDICT}|score|rating|grade|punktzahl|note|nota|puntuación|calificación|punteggio|оценка|балл"
CHINESE: Final = r"答案|结论|結論|判定|判断|裁决"


def lead_pattern(words: str, chinese: str) -> re.Pattern[str]:
    return re.compile(
        r"(?:(?:so|thus|therefore|hence|overall|finally|in (?:conclusion|summary))[,:]?\s)?"
        r"(?:(?:(?:my|the|our|final|overall|total|best|better|preferred|chosen|winning|meine?|mi|mon|ma)\s){0,4}"
        rf"(?:{words})(?:\s(?:score|verdict|choice|rating|answer))?\s?(?:[:：=–—→-]|[-=]>|\sis\s?:?|\sis)\s?"
        r"|I (?:choose|pick|select|prefer|vote for|go with)\s"
        rf"|(?:最终)?(?:{CHINESE}|{chinese})\s?(?:[:：]|是|为|は)[:：]?\s?|我?选择?(?=[A-Z1-9\s]))",
        re.IGNORECASE,
    )


CHOICE_LEAD: Final = lead_pattern(CHOICE_WORDS, "选择|胜者|勝者")
SCORE_LEAD: Final = lead_pattern(SCORE_WORDS, "评分|得分|評価|スコア|점수")
SIDE_PREFIX: Final = re.compile(rf"\A{SIDE_WORDS}(?:\b|(?=[_\d])|(?<=[^\x00-\x7f]))", re.IGNORECASE)
OUT_OF: Final = re.compile(r"(.+?)\s?(?:/|out of)\s?(\d+(?:\.\d+)?)")
REMARK_START: Final = re.compile(r"\s?[.!:;,。！：；，]\s|\s[–—-]{1,2}\s|\s?\n|\s(?=because\b)|[。！，；：]")
PRAISE: Final = re.compile(
    r"\swins(?=[\s.,;!]|\Z)|\s(?:is|was)\s(?:(?:the|clearly|slightly|much|far|somewhat|significantly|marginally|overall)\s){0,3}"
    r"(?:better|best|winner|preferred|superior|stronger)(?:\s(?:one|response|answer|choice))?(?=[\s.,;!]|\Z)",
    re.IGNORECASE,
)
THAN: Final = re.compile(rf"\sthan\s((?:{SIDE_WORDS}\s)?[\w()\[\]]{{1,40}})", re.IGNORECASE)
SIDE_ASIDES: Final[dict[Choice, str]] = {
    Choice.A: r"(?:the\s)?(?:first|1st|left)(?:\s(?:response|answer|one))?",
    Choice.B: r"(?:the\s)?(?:second|2nd|right)(?:\s(?:response|answer|one))?",
    Choice.TIE: r"(?:equal|both (?:are\s)?(?:equal|equally good|good|fine)|no difference|same)",
    Choice.BOTH_BAD: r"both (?:are\s)?(?:bad|poor)",
}
PRAISES: Final = r"(?:slightly\s|much\s|clearly\s|the\s)?(?:better|best|winner|preferred|strong(?:er)?)"
# What may begin a line that is a label alone: a bullet, or that it follows from what precedes it.
LINE_START: Final = re.compile(
    r"\s{0,9}(?:(?:[#>]{1,6}|[-•*→⇒])\s|(?:so|thus|therefore|hence)\s?[:,]\s)", re.IGNORECASE
)
UNTICKED_BOX: Final = re.compile(r"\W{0,9}\[\s?\]")
MAX_LABEL_LENGTH: Final = 300
MAX_LEAD_LENGTH: Final = 150


def fold_label(label: str) -> str:
    """The label trimmed and case-folded, for comparisons."""
    return label.strip().casefold()


def strip_ornaments(text: str) -> str:
    """The reply without closing marks, points and fences at its end."""
    return text.rstrip(CLOSING_ORNAMENTS)


def bare_words(words: str) -> str:
    """The words without marks: case-folded, full-width letters plain, LaTeX and tags removed.

    Words that are crossed out stay unchanged, which is no label.
    """
    if not words.isascii():
        inner = words.strip(IGNORED_MARKS)
        if inner.startswith(DENIAL_MARKS) or inner.endswith(DENIAL_MARKS) or has_superscript(words):
            return words
        plain = unicodedata.normalize("NFKC", words)
        words = "".join(character for character in plain if unicodedata.category(character) not in ("Cf", "So"))
    if "\\" in words:
        words = LATEX.sub(r"\1", LATEX.sub(r"\1", words))
    if "<" in words:
        words = TAG.sub("", words)
    words = " ".join(words.replace("**", "").replace("`", "").split())
    return words.rstrip(IGNORED_MARKS).lstrip(LEADING_MARKS).casefold()


def has_superscript(words: str) -> bool:
    """Whether any character is super- or subscript: “²” is no 2."""
    return any(unicodedata.decomposition(character).startswith(("<super>", "<sub>")) for character in words)


def bare_labels(aspect: AspectSpec) -> Mapping[str, str]:
    return index_by_bare(tuple(map(aspect.label, aspect.choices)))


@lru_cache(maxsize=256)
def index_by_bare(labels: tuple[str, ...]) -> Mapping[str, str]:
    """The labels by their bare words; without ambiguous or empty ones."""
    # Of “A>” the sign is part of the label.
    pairs = [(bare_words(label), label) for label in labels if label.count("<") == label.count(">")]
    pairs += [(spaced, label) for bare, label in pairs if (spaced := bare.replace("_", " ")) != bare]
    pairs += [(short, label) for bare, label in pairs if (short := strip_side_word(bare)) != bare]
    counts = Counter(bare for bare, _ in pairs)
    return {bare: label for bare, label in pairs if bare and counts[bare] == 1}


def strip_side_word(words: str) -> str:
    """“A” of the bare words “response A”."""
    return SIDE_PREFIX.sub("", words, count=1).rstrip(IGNORED_MARKS).lstrip(LEADING_MARKS)


def match_sole_label(aspect: AspectSpec, words: str) -> str | None:
    """The label that makes up these words, apart from marks and a word such as “Response”."""
    if len(words) > MAX_LABEL_LENGTH:
        return None
    labels, bare = bare_labels(aspect), bare_words(words)
    for form in (bare, strip_side_word(bare)):
        if form in labels:
            return labels[form]
    tie = re.sub(r"^(?:it['’]?s\s|it is\s)?an?\s", "", bare, count=1)
    return labels.get(tie) if tie != bare and aspect.label(Choice.TIE) == labels.get(tie) else None


def match_json_label(aspect: AspectSpec, words: str) -> str | None:
    """The label in a JSON value, which may have an aside or a remark after it that leaves it valid."""
    for choice in aspect.choices:
        if aspect.label(choice) == words:
            return words
    folded = fold_label(words)
    for choice in aspect.choices:
        if fold_label(aspect.label(choice)) == folded:
            return aspect.label(choice)
    led = strip_lead(words)
    if sole := match_sole_label(aspect, words) or (match_sole_label(aspect, led) if led else None):
        return sole
    leading = match_leading_labels(aspect, words)
    return next((label for label, remainder in leading if is_label_unaffected(aspect, label, remainder)), None)


def match_leading_labels(aspect: AspectSpec, words: str) -> Iterator[tuple[str, str]]:
    """Each label at the start of the words, with what follows it."""
    whole = words.lstrip(LEADING_MARKS)
    for start in dict.fromkeys((whole, SIDE_PREFIX.sub("", whole, count=1).lstrip(LEADING_MARKS))):
        for choice in aspect.choices:
            core = aspect.label(choice).strip(IGNORED_MARKS)
            remainder = start[len(core) :]
            if core and fold_label(start[: len(core)]) == core.casefold() and not remainder[:1].isalnum():
                yield aspect.label(choice), remainder.lstrip("*_`\"'”’)]")


def is_label_unaffected(aspect: AspectSpec, label: str, remainder: str) -> bool:
    choice = choice_by_label(aspect, label)
    aside = re.fullmatch(r"\s?\(([^()]{1,60})\)[\s.!*]{0,4}", remainder)
    if aside:
        words = aside[1].strip()
        is_harmless = re.fullmatch(rf"{SIDE_ASIDES[choice]}|{PRAISES}", words, re.IGNORECASE)
        return bool(is_harmless) or match_sole_label(aspect, words) == label
    behind = REMARK_START.match(remainder)
    if behind:
        remark = remainder[behind.end() :]
        return match_sole_label(aspect, remark) == label or is_harmless_remark(aspect, label, remark)
    praise = PRAISE.match(remainder)
    if praise is None or choice not in (Choice.A, Choice.B):
        return False
    compared = THAN.match(remainder, praise.end())
    end = compared.end() if compared and match_sole_label(aspect, compared[1]) not in (None, label) else praise.end()
    return not remainder[end:].strip(IGNORED_MARKS) or (
        bool(REMARK_START.match(remainder, end)) and is_harmless_remark(aspect, label, remainder[end:])
    )


def match_line_label(aspect: AspectSpec, line: str) -> str | None:
    """The label, or the value of a scale, that makes up a line; None if it says anything else."""
    if aspect.scale_min is not None:
        return match_line_value(aspect, line)
    if UNTICKED_BOX.match(line):
        return None
    if sole := match_sole_label(aspect, LINE_START.sub("", line, count=1)):
        return sole
    led = strip_lead(line)
    return match_json_label(aspect, led) if led else None


def match_line_value(aspect: AspectSpec, line: str) -> str | None:
    led = strip_lead(line, SCORE_LEAD)
    number = bare_number(aspect, line.lstrip(" #") if led is None else led)
    return number if NUMBER.fullmatch(number) and snap_to_scale(aspect, float(number)) is not None else None


def bare_number(aspect: AspectSpec, words: str) -> str:
    """The number without marks, and without the end of its scale after it."""
    number = words.replace("**", "").lstrip(NUMBER_ORNAMENTS).rstrip(LABEL_ORNAMENTS + "!")
    number = LATEX.sub(r"\1", number.strip("$ ")) if "\\" in number else number
    number = number.strip("[](){}")
    if not number.isascii() and not has_superscript(number):
        number = unicodedata.normalize("NFKC", number)
    out_of = OUT_OF.fullmatch(number)
    return out_of[1] if out_of and aspect.scale_max is not None and float(out_of[2]) == aspect.scale_max else number


def strip_lead(line: str, lead_pattern: re.Pattern[str] = CHOICE_LEAD) -> str | None:
    """The rest of a line after “Final verdict:” and the like; None if it does not begin so."""
    begin = line[:MAX_LEAD_LENGTH].replace("**", "").replace("`", "").lstrip(" \t#>*_-•$\\")
    lead = lead_pattern.match(begin)
    return begin[lead.end() :] + line[MAX_LEAD_LENGTH:] if lead and lead.end() < len(begin) else None
