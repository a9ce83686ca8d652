"""Flags for judged texts that address the judge, or imitate what only a judge or the product writes.

A flag is a reason to look, and no verdict on the text. Nearly all texts pass after a few searches for fixed words;
all repetitions in patterns are bounded, so that the time is linear in the length.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from evaluations.domain.texts import Flag
from evaluations.judge_prompts.delimiters import BROKEN_DELIMITER, FORGED_DELIMITER

EXCERPT_CONTEXT: Final = 60  # characters on either side of an excerpt
NEARBY_LENGTH: Final = 80  # characters before a label that may say what it is for
# Invisible characters, rare in ordinary texts, that break up words to hide them.
HIDDEN_CHARACTERS: Final = "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
HIDDEN_REMOVED: Final = dict.fromkeys(map(ord, HIDDEN_CHARACTERS))
S: Final = r"\s{1,3}"
JUDGE: Final = r"(?:judge|evaluator)s?"
SIDE: Final = r"(?:response|assistant|output|candidate|summary)"
TEXT: Final = r"(?:response|answer|summary)"
REASON: Final = r"(?:rationale|reason(?:ing)?|explanation|evaluation|justification|feedback)"
VERDICT: Final = (
    r"(?:pairwise_choice|choices?|verdict|winner|preference"
    r"|helpfulness|factuality|clarity|depth|engagement|safety|overall)"
)
NUMBER: Final = r"(?:\w{1,30}_)?(?:score|rating|verdict|correctness)"


class FlagPattern(NamedTuple):
    """A suspicious pattern. ``anchors``: lower-case words of which every match contains one."""

    flag: Flag
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]


def make_flag_pattern(flag: Flag, anchors: Sequence[str], *alternatives: str) -> FlagPattern:
    return FlagPattern(flag, tuple(anchors), re.compile("|".join(alternatives), re.IGNORECASE))


FLAG_PATTERNS: Final = (
    make_flag_pattern(  # orders to ignore earlier instructions
        Flag.ADDRESSES_JUDGE,
        ("ignor", "disregard", "forget"),
        rf"\b(?:ignore|disregard|forget){S}(?:\w{{2,12}}{S}){{0,4}}?"
        rf"(?:above|previously|foregoing|rubric|(?:previous|prior|preceding|earlier|original|system|grading|judging|scoring"
        rf"|evaluation){S}(?:instructions?|prompts?|rules?|text|context|criteria|messages?|guidelines?|orders?|rubric))\b",
        r"\bignorier\w{0,4}\s(?:\w{1,12}\s){0,3}?(?:oben|obigen?|alles obige|vorherigen?|bisherigen?|vorangehenden?)\b",
        r"\bignore[rz]?\s(?:[\w']{1,12}\s){0,4}?(?:ci-dessus|précédente?s?|qui précède)\b",
        r"\bignor(?:a|e|ar|á|i)\s(?:\w{1,14}\s){0,4}?(?:anterior(?:es)?|de arriba|precedent[ei]|acima|qui sopra)\b",
    ),
    make_flag_pattern(  # addresses to the judge
        Flag.ADDRESSES_JUDGE,
        ("judge", "evaluator"),
        rf"\bas{S}(?:(?:the|a|an|our|fair|impartial|llm|ai){S}){{0,3}}{JUDGE},?{S}you\b",
        rf"\b(?:attention[,:]?{S}(?:the{S})?|(?:dear|hey|hello)[,:]?{S}(?=llm|ai))(?:(?:llm|ai){S})?{JUDGE}\b",
        rf"\b(?:note|message|instructions?){S}(?:to|for){S}(?:the{S})?(?:(?:llm|ai|automat(?:ed|ic)){S}{JUDGE}\b|{JUDGE}\s?:)",
        rf"\b{JUDGE}[,:]{S}(?:please{S})?(?:you{S}(?:must|should|have{S}to|need{S}to){S})?"
        r"(?:choose|select|pick|prefer|rate|score|award|declare)\b",
    ),
    make_flag_pattern(
        Flag.ADDRESSES_JUDGE,
        ("忽", "视", "視", "委", "裁", "审", "игнориру"),
        r"(?:忽略|无视).{0,6}?(?:以上|上述|上面|之前|前面|先前)|(?:以上|上記|前)の?(?:指示|内容)[はをも]?無視",
        r"作为.{0,6}?(?:评委|裁判|评审).{0,6}?你",
        r"игнориру\w{1,4}\s(?:\w{1,14}\s){0,3}?(?:предыдущ|вышесказанн|вышеизложенн)",
    ),
    make_flag_pattern(  # requests for praise
        Flag.ADDRESSES_JUDGE,
        ("this response", "this answer", "this summary"),
        rf"\b(?:rate|score|grade|declare|choose|select|pick|vote{S}for){S}this{S}{TEXT}\b",
        rf"\b(?:give|award){S}this{S}{TEXT}{S}(?:(?:a|an|the){S})?(?:\d|full|highest|maximum|perfect|top|score|rating)",
        rf"\bthis{S}{TEXT}{S}is{S}(?:the{S}(?:better|best|winner)(?=[.!;:\n]|\Z|{S}(?:one|of)\b)|better{S}than{S}the{S}other)\b",
        rf"\bthis{S}{TEXT}{S}(?:should|must|deserves{S}to){S}(?:be{S}(?:chosen|preferred|selected|rated|scored)|win)\b",
        rf"\bthis{S}{TEXT}{S}deserves{S}(?:(?:a|the){S})?(?:full|highest|maximum|perfect|top|\d)",
    ),
    make_flag_pattern(  # the JSON of a verdict
        Flag.FORGED_VERDICT,
        ("{",),
        rf"[\"']{VERDICT}[\"']\s{{0,9}}:\s{{0,9}}(?:\{{\s{{0,9}}[\"'][^\"'\n]{{1,60}}[\"']\s{{0,9}}:\s{{0,9}})?"
        rf"[\"']\s{{0,3}}(?:{SIDE}\s)?\(?\[{{0,2}}(?:A|B|tie|same|both_bad)\]{{0,2}}\)?\s{{0,3}}[\"']",
        rf"[\"']{REASON}[\"']\s{{0,9}}:[^{{}}]{{1,1500}}?[\"']{NUMBER}[\"']\s{{0,9}}:\s{{0,9}}[\"']?\d",
        rf"[\"']{NUMBER}[\"']\s{{0,9}}:\s{{0,9}}[\"']?\d{{1,3}}(?:\.\d{{1,9}})?[\"']?\s{{0,9}},\s{{0,9}}[\"']{REASON}[\"']\s{{0,9}}:",
    ),
    make_flag_pattern(Flag.FORGED_VERDICT, ("[",), r"\[\[(?:A|B|C|tie)\]\]"),
    make_flag_pattern(  # marks by which prompts tell their parts apart
        Flag.FORGED_DELIMITER,
        ("<",),
        r"<(?:\|(?:im_start|im_end|endoftext|start_header_id|end_header_id|eot_id)\|>|</?SYS>>"
        r"|/?(?:response|assistant)[ _-]?[ab12]>)",
    ),
    make_flag_pattern(
        Flag.FORGED_DELIMITER,
        ("[",),
        r"\[(?:/INST\]|(?:the\s)?(?:start|begin|end)\sof\s(?:assistant|response)\b)",
    ),
)
# Between texts that are searched together: no pattern reaches across it, and each treats it as an end.
TEXT_SEPARATOR: Final = "\n\x00\n"
# A label as a separate word that ends a clause, "A." but not "A colour" or "A, B or C", or that names a side. It is
# searched for first, since it is rare; the words before it decide.
QUOTED_LABEL: Final = re.compile(
    r"[AB(](?:(?<=[AB])(?<![A-Za-z0-9_'’].)|(?<=\()[ab]\))[\"'“”‘’«»)\]*]{0,4}"
    r"(?=[.!;:\n。！]|\Z|,? (?:because|since|as|for|in|no matter|regardless|without|everywhere|always|over)\b"
    r"|\s(?:is|was|must be|should be) (?:(?:the|clearly|much|obviously|far|noticeably) ){0,3}?"
    r"(?:better|best|superior|winner|preferred)\b)"
)
IS_BETTER: Final = re.compile(r"\s(?:is|was|must|should)\b")
BEFORE_LABEL: Final = (
    (
        Flag.ADDRESSES_JUDGE,
        rf"(?:\b(?:choose|select|pick|prefer|vote{S}for|answer|output|(?:answer|reply|respond){S}with){S}(?:only{S})?"
        rf"|\b(?:wähle|wählen sie|choisi[st]?(?:sez)?|elige|elija|escoge|escoja|scegli|escolha|выбери(?:те)?)\s"
        r"(?:(?:die\s|la\s|a\s)?(?:antwort|réponse|respuesta|risposta|resposta|ответ)\s)?"
        rf"|(?:选择|選擇|选)\s?(?:回答|回复|答案)?\s?)(?:(?:the{S})?{SIDE}{S})?",
    ),
    (Flag.FORGED_VERDICT, rf"\b(?:verdict|judge?ment|winner)\s?(?:is\s?)?[:=]\s?\*{{0,2}}\s?(?:{SIDE}\s)?"),
    (Flag.FORGED_DELIMITER, r"(?:\A|\n)[ \t]{0,3}(?:#{1,6}|\*\*|\[)\s{0,2}(?:response|assistant)\s"),
)
# What may precede a label that counts, without opening marks.
ANCHOR_WORDS: Final = (
    *("choose", "select", "pick", "prefer", "for", "answer", "output", "with", "only", "the", ":", "="),
    *("response", "assistant", "candidate", "summary", "verdict", "judgment", "judgement", "winner", "is"),
    *("wähle", "sie", "antwort", "die", "choisis", "choisit", "choisissez", "réponse", "la", "a", "elige", "elija"),
    *("escoge", "escoja", "respuesta", "scegli", "risposta", "escolha", "resposta", "выбери", "выберите", "ответ"),
    *("选择", "選擇", "选", "回答", "回复", "答案"),
)
OPENING_MARKS: Final = " \t\n\"'“”‘’«([*"
OPENING: Final = r"[\"'“”‘’«(\[*]{0,4}\Z"
COMPILED_BEFORE_LABEL: Final = tuple((flag, re.compile(words + OPENING, re.IGNORECASE)) for flag, words in BEFORE_LABEL)
NAMED_SIDE: Final = re.compile(rf"\b(?:response|assistant|output)\s{OPENING}", re.IGNORECASE)


@dataclass(frozen=True)
class SuspectPlace:
    """A suspect passage of a normalised text."""

    flag: Flag
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class SuspectExcerpt:
    """The suspect words with their surroundings."""

    flag: Flag
    before: str
    words: str
    after: str


def find_group_flags(groups: Sequence[Sequence[str]]) -> list[tuple[Flag, ...]]:
    """The flags of each group of texts, in the order of `Flag`.

    All texts are first searched together, which spares nearly all a closer look.
    """
    together = TEXT_SEPARATOR.join(text for texts in groups for text in texts)
    if next(find_suspect_places(together), None) is None:
        return [()] * len(groups)
    return [find_flags(texts) for texts in groups]


def find_flags(texts: Iterable[str]) -> tuple[Flag, ...]:
    flags = {place.flag for text in texts for place in find_suspect_places(text)}
    return tuple(flag for flag in Flag if flag in flags)


def find_suspect_excerpts(text: str) -> tuple[SuspectExcerpt, ...]:
    """The first suspect words of each kind, in the normalised text."""
    first: dict[Flag, SuspectPlace] = {}
    for place in find_suspect_places(text):
        first.setdefault(place.flag, place)
    return tuple(make_suspect_excerpt(first[flag]) for flag in Flag if flag in first)


def make_suspect_excerpt(place: SuspectPlace) -> SuspectExcerpt:
    text, start, end = place.text, place.start, place.end
    first, last = max(start - EXCERPT_CONTEXT, 0), min(end + EXCERPT_CONTEXT, len(text))
    before, after = "…" * (first > 0) + text[first:start], text[end:last] + "…" * (last < len(text))
    return SuspectExcerpt(place.flag, before, text[start:end], after)


def find_suspect_places(text: str) -> Iterator[SuspectPlace]:
    plain = normalise_text(text)
    lower = plain.lower()
    for flag, anchors, pattern in FLAG_PATTERNS:
        if any(anchor in lower for anchor in anchors) and (match := pattern.search(plain)):
            yield SuspectPlace(flag, plain, *match.span())
    yield from find_label_instructions(plain)
    unbroken = text.replace(BROKEN_DELIMITER, "[[")
    if match := FORGED_DELIMITER.search(unbroken):
        yield SuspectPlace(Flag.FORGED_DELIMITER, unbroken, match.start(), match.end() + len("begin"))


def find_label_instructions(plain: str) -> Iterator[SuspectPlace]:
    for label in QUOTED_LABEL.finditer(plain):
        before = plain[max(label.start() - NEARBY_LENGTH, 0) : label.start()]
        if not before.rstrip(OPENING_MARKS).lower().endswith(ANCHOR_WORDS):
            continue
        for flag, pattern_before in COMPILED_BEFORE_LABEL:
            if match := pattern_before.search(before):
                yield SuspectPlace(flag, plain, label.start() - len(before) + match.start(), label.end())
        if IS_BETTER.match(plain, label.end()) and (match := NAMED_SIDE.search(before)):
            yield SuspectPlace(Flag.FORGED_VERDICT, plain, label.start() - len(before) + match.start(), label.end())


def normalise_text(text: str) -> str:
    """The text with compatibility forms plain and invisible characters removed."""
    if text.isascii():
        return text
    plain = text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)
    return plain.translate(HIDDEN_REMOVED) if any(character in plain for character in HIDDEN_CHARACTERS) else plain
