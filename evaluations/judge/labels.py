"""Which label words are: alone, in marks that say nothing, behind “Verdict:”, or before a remark that leaves it be."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from evaluations.domain import AspectSpec, Choice
from evaluations.judge.remarks import DENIED, MARKS, SIDE, choice_called, is_harmless
from evaluations.judge.scales import placed

# What may surround a label that is alone on a line, and says nothing.
AROUND: Final = " \t*_`\"'“”."
# Before a number a point says something: .5 is no 5.
BEFORE_NUMBER: Final = AROUND.replace(".", "")
NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d+)?|\.\d+)")
LEADING: Final = MARKS.translate(dict.fromkeys(map(ord, "!.,:;。！，：；、")))
LATEX: Final = re.compile(r"\\(?:boxed|text|textbf|textit|mathbf|mathrm|emph)\s?\{([^{}]{0,80})\}")
TAG: Final = re.compile(r"</?[a-z_]{2,20}>|<\|\w{2,40}\|>", re.IGNORECASE)
ORNAMENTS: Final = " \t\n$*_~!.。！\"'”’»`"
VERDICT: Final = (
    r"verdict|answer|judge?ment|decision|conclusion|result|label|evaluation|urteil|antwort|bewertung|entscheidung"
    r"|respuesta|réponse|risposta|resposta|décision|decisión|вердикт|ответ|решение|الحكم"
)
A_CHOICE: Final = (
    rf"{VERDICT}|choice|winner|preference|response|assistant|output|option|selection|gewinner|gagnant|ganador|vincitore"
    r"|vencedor|победитель"
)
A_SCORE: Final = rf"{VERDICT}|score|rating|grade|punktzahl|note|nota|puntuación|calificación|punteggio|оценка|балл"
CHINESE: Final = r"答案|结论|結論|判定|判断|裁决"


def lead_to(words: str, chinese: str) -> re.Pattern[str]:
    return re.compile(
        r"(?:(?:so|thus|therefore|hence|overall|finally|in (?:conclusion|summary))[,:]?\s)?"
        r"(?:(?:(?:my|the|our|final|overall|total|best|better|preferred|chosen|winning|meine?|mi|mon|ma)\s){0,4}"
        rf"(?:{words})(?:\s(?:score|verdict|choice|rating|answer))?\s?(?:[:：=–—→-]|[-=]>|\sis\s?:?|\sis)\s?"
        r"|I (?:choose|pick|select|prefer|vote for|go with)\s"
        rf"|(?:最终)?(?:{CHINESE}|{chinese})\s?(?:[:：]|是|为|は)[:：]?\s?|我?选择?(?=[A-Z1-9\s]))",
        re.IGNORECASE,
    )


LEAD: Final = lead_to(A_CHOICE, "选择|胜者|勝者")
LEAD_TO_SCORE: Final = lead_to(A_SCORE, "评分|得分|評価|スコア|점수")
A_SIDE: Final = re.compile(rf"\A{SIDE}(?:\b|(?=[_\d])|(?<=[^\x00-\x7f]))", re.IGNORECASE)
OUT_OF: Final = re.compile(r"(.+?)\s?(?:/|out of)\s?(\d+(?:\.\d+)?)")
BEHIND: Final = re.compile(r"\s?[.!:;,。！：；，]\s|\s[–—-]{1,2}\s|\s?\n|\s(?=because\b)|[。！，；：]")
PRAISE: Final = re.compile(
    r"\swins(?=[\s.,;!]|\Z)|\s(?:is|was)\s(?:(?:the|clearly|slightly|much|far|somewhat|significantly|marginally|overall)\s){0,3}"
    r"(?:better|best|winner|preferred|superior|stronger)(?:\s(?:one|response|answer|choice))?(?=[\s.,;!]|\Z)",
    re.IGNORECASE,
)
THAN: Final = re.compile(rf"\sthan\s((?:{SIDE}\s)?[\w()\[\]]{{1,40}})", re.IGNORECASE)
ASIDES: Final[dict[Choice, str]] = {
    Choice.A: r"(?:the\s)?(?:first|1st|left)(?:\s(?:response|answer|one))?",
    Choice.B: r"(?:the\s)?(?:second|2nd|right)(?:\s(?:response|answer|one))?",
    Choice.TIE: r"(?:equal|both (?:are\s)?(?:equal|equally good|good|fine)|no difference|same)",
    Choice.BOTH_BAD: r"both (?:are\s)?(?:bad|poor)",
}
PRAISES: Final = r"(?:slightly\s|much\s|clearly\s|the\s)?(?:better|best|winner|preferred|strong(?:er)?)"
# What may begin a line that is a label alone: a bullet, or that it follows from what precedes it.
BEGINNING: Final = re.compile(r"\s{0,9}(?:(?:[#>]{1,6}|[-•*→⇒])\s|(?:so|thus|therefore|hence)\s?[:,]\s)", re.IGNORECASE)
UNTICKED: Final = re.compile(r"\W{0,9}\[\s?\]")
LONGEST_LABEL: Final = 300
LONGEST_LEAD: Final = 150


def folded(label: str) -> str:
    """A label as it is compared: trimmed, in one case."""
    return label.strip().casefold()


def without_ornaments(text: str) -> str:
    """The reply without the closing marks, points and fences at its end, which say nothing."""
    return text.rstrip(ORNAMENTS)


# ---- one label -----------------------------------------------------------------------------


def bare(words: str) -> str:
    """Words as they read without any mark: in one case, full-width letters plain, LaTeX and tags left out.

    Words with a mark that crosses them out stay as they are, which is no label.
    """
    if not words.isascii():
        if words.strip(MARKS).startswith(DENIED) or words.strip(MARKS).endswith(DENIED) or has_small(words):
            return words
        plain = unicodedata.normalize("NFKC", words)
        words = "".join(one for one in plain if unicodedata.category(one) not in ("Cf", "So"))
    if "\\" in words:
        words = LATEX.sub(r"\1", LATEX.sub(r"\1", words))
    if "<" in words:
        words = TAG.sub("", words)
    return " ".join(words.replace("**", "").replace("`", "").split()).rstrip(MARKS).lstrip(LEADING).casefold()


def has_small(words: str) -> bool:
    """Whether any character is written above or below the line: “²” is no 2."""
    return any(unicodedata.decomposition(one).startswith(("<super>", "<sub>")) for one in words)


def labels_by_bare(aspect: AspectSpec) -> Mapping[str, str]:
    return by_bare(tuple(map(aspect.label, aspect.choices)))


@lru_cache(maxsize=256)
def by_bare(labels: tuple[str, ...]) -> Mapping[str, str]:
    """Every label by how it reads without marks; none that reads as another does, or as nothing."""
    # Of “A>” the sign is part of the label.
    read = [(bare(label), label) for label in labels if label.count("<") == label.count(">")]
    read += [(spaced, label) for one, label in read if (spaced := one.replace("_", " ")) != one]
    read += [(short, label) for one, label in read if (short := without_side(one)) != one]
    words = [one for one, _ in read]
    return {one: label for one, label in read if one and words.count(one) == 1}


def without_side(words: str) -> str:
    """“A” of “response A”, of words that are bare."""
    return A_SIDE.sub("", words, count=1).rstrip(MARKS).lstrip(LEADING)


def label_alone(aspect: AspectSpec, words: str) -> str | None:
    """The label that these words are and nothing else, in marks that say nothing, or after “Response”."""
    if len(words) > LONGEST_LABEL:
        return None
    known, said = labels_by_bare(aspect), bare(words)
    if said in known:
        return known[said]
    if (named := without_side(said)) in known:
        return known[named]
    tie = re.sub(r"^(?:it['’]?s\s|it is\s)?an?\s", "", said, count=1)
    return known.get(tie) if tie != said and aspect.label(Choice.TIE) == known.get(tie) else None


def label_given(aspect: AspectSpec, words: str) -> str | None:
    """The label that a value in JSON is, also with an aside or a remark behind it that leaves it standing."""
    for choice in aspect.choices:
        if aspect.label(choice) == words:
            return words
    said = folded(words)
    for choice in aspect.choices:
        if folded(aspect.label(choice)) == said:
            return aspect.label(choice)
    led = without_lead(words)
    if alone := label_alone(aspect, words) or (label_alone(aspect, led) if led else None):
        return alone
    for label, rest in labels_that_begin(aspect, words):
        if leaves_standing(aspect, label, rest):
            return label
    return None


def labels_that_begin(aspect: AspectSpec, words: str) -> Iterator[tuple[str, str]]:
    """Each label that the words begin with, as a word of its own, and what follows it."""
    whole = words.lstrip(LEADING)
    for said in dict.fromkeys((whole, A_SIDE.sub("", whole, count=1).lstrip(LEADING))):
        for choice in aspect.choices:
            core = aspect.label(choice).strip(MARKS)
            if core and folded(said[: len(core)]) == core.casefold() and not said[len(core) : len(core) + 1].isalnum():
                yield aspect.label(choice), said[len(core) :].lstrip("*_`\"'”’)]")


def leaves_standing(aspect: AspectSpec, label: str, rest: str) -> bool:
    choice = choice_called(aspect, label)
    aside = re.fullmatch(r"\s?\(([^()]{1,60})\)[\s.!*]{0,4}", rest)
    if aside:
        words = aside[1].strip()
        known = re.fullmatch(rf"{ASIDES[choice]}|{PRAISES}", words, re.IGNORECASE)
        return bool(known) or label_alone(aspect, words) == label
    behind = BEHIND.match(rest)
    if behind:
        remark = rest[behind.end() :]
        return label_alone(aspect, remark) == label or is_harmless(aspect, label, remark)
    praise = PRAISE.match(rest)
    if praise is None or choice not in (Choice.A, Choice.B):
        return False
    compared = THAN.match(rest, praise.end())
    end = compared.end() if compared and label_alone(aspect, compared[1]) not in (None, label) else praise.end()
    return not rest[end:].strip(MARKS) or (bool(BEHIND.match(rest, end)) and is_harmless(aspect, label, rest[end:]))


# ---- a line --------------------------------------------------------------------------------


def label_on(aspect: AspectSpec, line: str) -> str | None:
    """The label, or the value of a scale, that a line states and nothing else; None where it says anything else."""
    if aspect.scale_min is not None:
        return value_on(aspect, line)
    if UNTICKED.match(line):
        return None
    if alone := label_alone(aspect, BEGINNING.sub("", line, count=1)):
        return alone
    led = without_lead(line)
    return label_given(aspect, led) if led else None


def value_on(aspect: AspectSpec, line: str) -> str | None:
    led = without_lead(line, LEAD_TO_SCORE)
    number = number_bare(aspect, line.lstrip(" #") if led is None else led)
    return number if NUMBER.fullmatch(number) and placed(aspect, float(number)) is not None else None


def number_bare(aspect: AspectSpec, words: str) -> str:
    """A number without marks, and without the end of its scale behind it."""
    number = words.replace("**", "").lstrip(BEFORE_NUMBER).rstrip(AROUND + "!")
    number = LATEX.sub(r"\1", number.strip("$ ")) if "\\" in number else number
    number = number.strip("[](){}")
    if not number.isascii() and not has_small(number):
        number = unicodedata.normalize("NFKC", number)
    out_of = OUT_OF.fullmatch(number)
    return out_of[1] if out_of and aspect.scale_max is not None and float(out_of[2]) == aspect.scale_max else number


def without_lead(line: str, leads: re.Pattern[str] = LEAD) -> str | None:
    """What a line says behind “Final verdict:” and the like; None where it does not begin so."""
    begin = line[:LONGEST_LEAD].replace("**", "").replace("`", "").lstrip(" \t#>*_-•$\\")
    lead = leads.match(begin)
    return begin[lead.end() :] + line[LONGEST_LEAD:] if lead and lead.end() < len(begin) else None
