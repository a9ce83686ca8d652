"""Labels in the words of people and tools: “Response A is slightly better”, “[[A>>B]]”, “tie”.

A label is understood completely or not at all. Every character and every word of it must be known here, so a word in
another script, an emoji or a negation in any language makes a label that is not understood.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from evaluations.domain.choices import FLIPPED_CHOICES, Choice

NOUN: Final = (
    "(?:response|answer|output|model|option|text|txt|completion|candidate|assistant|generation|item|choice|reply|summary"
    "|conversation|system|version|chatbot|bot|agent|translation|result|resp|ans)"
)
FIRST: Final = f"(?:the )?(?:(?:{NOUN} )?(?:a|left|first|1st)(?: (?:one|side|{NOUN}))?|{NOUN} (?:1|one))"
SECOND: Final = f"(?:the )?(?:(?:{NOUN} )?(?:b|right|second|2nd)(?: (?:one|side|{NOUN}))?|{NOUN} (?:2|two))"
# These may mean a side, but also a rank, or which one is correct.
TWO_MEANINGS: Final = re.compile(
    r"(?:the )?(?:first|1st|second|2nd) (?:best|choice)|the right (?:choice|answer|one|option|result)"
)
SIDE: Final = f"(?:{FIRST}|{SECOND})"
PLACE: Final = re.compile(r"\b(?:left|right)\b")
STRENGTH: Final = (
    "(?:(?:very )?(?:slightly|somewhat|marginally|mildly|weakly|moderately|narrowly|clearly|definitely|decidedly"
    "|significantly|substantially|considerably|strongly|greatly|vastly|hugely|overwhelmingly|obviously|much|far|way)"
    "|a little(?: bit)?|a bit|a lot)"
)
ADJECTIVE: Final = "(?:slight|weak|mild|moderate|clear|significant|strong)"
BETTER: Final = "(?:better|best|preferred|preferable|superior|stronger|favou?red|wins|won|win|winner|chosen)"
WORSE: Final = "(?:worse|worst|inferior|weaker|loses|lost)"
PREFER: Final = "(?:prefer|prefers|preferred|choose|chose|pick|picked|favou?r|favou?rs|vote for|voted for)"
OTHER: Final = f"(?: (?:than|to|over) (?:(?P<other>{SIDE})|the other(?: one| {NOUN})?))?"
WORD_OF_SIDE: Final = re.compile(r"\b(?:a|b|left|right|first|second|1st|2nd|1|2|one|two)\b")
NAMED_SIDE: Final = re.compile(rf"\b{NOUN} (?P<word>[ab12])(?![\w.])")
# Patterns with the side named, the strength, and the other side if it is named.
FOR_SIDE: Final = tuple(
    re.compile(pattern)
    for pattern in (
        f"(?P<side>{SIDE})(?: (?P<strength>{STRENGTH}))?",
        f"(?P<strength>{STRENGTH}) (?P<side>{SIDE})",
        f"(?P<side>{SIDE})(?: (?:is|was|are))?(?: (?P<strength>{STRENGTH}))? {BETTER}{OTHER}",
        f"(?P<side>{SIDE}) (?:is|was) the(?: (?P<strength>{ADJECTIVE}))? {BETTER}(?: one| {NOUN})?",
        f"(?:i |we )?(?:(?P<strength>{STRENGTH}) )?{PREFER} (?P<side>{SIDE}){OTHER}",
        f"(?:i |we )?{PREFER} (?P<side>{SIDE}) (?P<strength>{STRENGTH})",
        f"(?:a )?(?:(?P<strength>{ADJECTIVE}) )?preference(?: for| is)? (?P<side>{SIDE})",
        f"(?:the )?(?:(?P<strength>{STRENGTH}) )?{BETTER}(?: {NOUN})?(?: is)? (?P<side>{SIDE})",
        rf"(?P<side>{SIDE}) ?(?P<strength>\+{{1,3}})",
        f"(?P<side>{SIDE}) ?> ?(?P<other>{SIDE})",
        f"(?P<side>{SIDE}) ?(?P<strength>>{{2,3}}) ?(?P<other>{SIDE})",
    )
)
AGAINST_SIDE: Final = tuple(
    re.compile(pattern)
    for pattern in (
        f"(?P<side>{SIDE})(?: (?:is|was|are))?(?: (?P<strength>{STRENGTH}))? {WORSE}{OTHER}",
        f"(?P<side>{SIDE}) ?< ?(?P<other>{SIDE})",
        f"(?P<side>{SIDE}) ?(?P<strength><{{2,3}}) ?(?P<other>{SIDE})",
    )
)
EVEN: Final = re.compile(f"(?P<side>{SIDE}) ?(?:=|==|~) ?(?P<other>{SIDE})")
ABOUT: Final = "(?:about |roughly |approximately |nearly |almost |(?:very )?much )"
BOTH: Final = f"both(?: (?:the )?{NOUN}s)?"
TIE: Final = re.compile(
    "(?:it is |its |it's )?(?:an? )?(?:tie|draw|toss up)"
    "|tied|even|neutral|equivalent|indifferent|tie (?:both )?good"
    f"|{ABOUT}?(?:the )?(?:same|equal)(?: quality)?|(?:very |roughly )?similar|equally (?:good|preferred|well)"
    f"|both|{BOTH} (?:are |is )?(?:equally )?(?:good|great|fine|acceptable|correct|ok|okay)"
    f"|{BOTH} (?:are )?{ABOUT}?(?:the )?(?:same|equal|similar|tied)"
    f"|no (?:clear |strong )?(?:preference|difference|winner)|neither (?:one |{NOUN} )?(?:is |are )?better"
    f"|(?:a and b|1 and 2|left and right|they) are {ABOUT}?(?:the )?(?:same|equal|equally good|similar|tied)"
)
BOTH_BAD: Final = re.compile(
    f"(?:tie )?{BOTH} (?:are |is )?(?:equally )?(?:bad|poor|wrong|incorrect|unacceptable|terrible|fail|failed)"
    f"|tie bad|equally (?:bad|poor)|neither|neither (?:one |{NOUN} )?(?:is |are )?(?:good|acceptable|correct)"
)
# Compounds without a space, and typographic variants of signs.
JOINED: Final = (
    (re.compile(rf"\b({NOUN})(a|b)\b"), r"\1 \2"),
    (re.compile(r"\b(tie|both)(bothbad|bothgood|bad|good)\b"), r"\1 \2"),
    (re.compile(r"\b(both)(bad|good)\b"), r"\1 \2"),
    (re.compile(r"\bnopreference\b"), "no preference"),
)
SIGNS: Final = str.maketrans({"≈": "~", "≃": "~", "≅": "~", "≻": ">", "≺": "<", "≫": ">>", "≪": "<<", "’": "'"})
UNSEEN: Final = "\u200b\u200e\u200f\ufeff"
WRITABLE: Final = re.compile(r"[A-Za-z0-9\s_.,:;'\"“”()\[\]{}*`#+=<>~!–—-]+")
WRAPPERS: Final = ("[[ ]]", "[ ]", "( )", "{ }", "** **", "* *", "` `", "“ ”", '" "', "' '")
END: Final = (".", "!", ",", ";", ":")
MAX_LABEL_CHARACTERS: Final = 120  # a label that is longer is a text
NOT_LETTERS: Final = re.compile(r"[^a-z0-9]+")


# Names of label columns: those that may accompany our own comparisons, and further ones.
LABEL_COLUMNS: Final = ("choice", "winner", "preference", "preferred", "label", "verdict", "vote", "judgment")
LABEL_WORDS: Final = frozenset(
    {*LABEL_COLUMNS, "judgement", "votes", "annotation", "rating", "ratings", "score", "scores", "stars", "better"}
)


# Names of label columns, or their beginnings, in other languages.
LABELS_ELSEWHERE: Final = re.compile(
    "bewertung|urteil|praferenz|gewinner|sieger|besser|beurteilung|preferenc|preferit|prefer[eé]|gagnant|vainqueur"
    "|ganador|evaluac|avaliac|vencedor|vincitore|giudizio|voto|eleccion|escolha|choix|auswahl|keuze|winnaar"
    "|оценк|выбор|победител|предпочт|лучш|голос|评价|選択|选择|偏好|标签|標籤|标注|評価|评分|评判|胜者|勝者|更好|判定"
    "|ラベル|선호|평가|승자|선택|تقييم|الفائز|اختيار|मूल्यांकन|पसंद|विजेता|ผู้ชนะ|คะแนน"
)


@dataclass(frozen=True)
class ParsedLabel:
    """A parsed label. ``strength``: how much better, in its own words; ``by_place``: whether it says left or right."""

    choice: Choice
    strength: str = ""
    by_place: bool = False


def parse_label(text: str, names_a: Collection[str] = (), names_b: Collection[str] = ()) -> ParsedLabel | None:
    """The choice of a label between two sides; None where it is not understood, or may mean either side.

    ``names_a`` and ``names_b``: what either side is called. An exact name counts first, then one that differs in case
    alone. A name that is also a word for the other side, or for a tie, is not understood, nor is a label that holds it.
    """
    label = text.strip()
    named, by_words = side_with_name(label, names_a, names_b), parse_label_words(label)
    if not named:
        return None if by_words and holds_doubtful_name(label, names_a, names_b) else by_words
    if named == AMBIGUOUS or (by_words and by_words.choice != named):
        return None
    return ParsedLabel(Choice(named), by_place=bool(by_words and by_words.by_place))


def holds_doubtful_name(label: str, names_a: Collection[str], names_b: Collection[str]) -> bool:
    """Whether a label mentions one side in words that are the name of the other.

    So does “B is better” where A is called B, and “Model A” or “A” where B is called “Model A (new)”.
    """
    doubtful = {
        word
        for side, names in ((Choice.A, names_a), (Choice.B, names_b))
        for name in names
        for word in ambiguous_name_words(name, side)
    }
    words = plain_label_words(label) if doubtful else ""
    return any(re.search(rf"\b{re.escape(word)}\b", words) for word in doubtful)


@lru_cache(maxsize=4_096)
def ambiguous_name_words(name: str, side: Choice) -> tuple[str, ...]:
    """The words in a candidate's name by which labels call the other side, or a tie."""
    words = plain_label_words(name)
    if (label := parse_label_words(name)) and label.choice != side:
        return tuple(WORD_OF_SIDE.findall(words)) or (words,)
    return tuple(match["word"] for match in NAMED_SIDE.finditer(words) if side_of_word(match.group()) != side)


AMBIGUOUS: Final = "both"


def side_with_name(label: str, names_a: Collection[str], names_b: Collection[str]) -> str:
    """The side of this name, AMBIGUOUS where both have it, "" where neither has."""
    for form in (str.strip, fold_name):
        folded_label = form(label)
        is_a, is_b = (any(form(name) == folded_label for name in names) for names in (names_a, names_b))
        if is_a or is_b:
            return AMBIGUOUS if is_a and is_b else Choice.A if is_a else Choice.B
    return ""


def is_other_name(label: str, choice: str, names_a: Collection[str], names_b: Collection[str]) -> bool:
    """Whether a label equals one side's name while it is read as the other choice."""
    return (
        side_with_name(label, names_a, names_b) in {Choice.A, Choice.B} - {choice} and parse_label_words(label) is None
    )


def fold_name(name: str) -> str:
    """A name without its case; every other character stays, so that gpt-3.5 is not gpt-35."""
    return unicodedata.normalize("NFC", name).strip().casefold()


@lru_cache(maxsize=4_096)
def parse_label_words(label: str) -> ParsedLabel | None:
    words = plain_label_words(label) if len(label) <= MAX_LABEL_CHARACTERS else ""
    if not words or TWO_MEANINGS.fullmatch(words):
        return None
    if BOTH_BAD.fullmatch(words):
        return ParsedLabel(Choice.BOTH_BAD)
    if TIE.fullmatch(words):
        return ParsedLabel(Choice.TIE)
    if (match := EVEN.fullmatch(words)) and side_of_word(match["side"]) != side_of_word(match["other"]):
        return ParsedLabel(Choice.TIE)
    return parse_side_words(words, FOR_SIDE) or parse_side_words(words, AGAINST_SIDE, is_against=True)


def parse_side_words(
    words: str, patterns: Sequence[re.Pattern[str]], *, is_against: bool = False
) -> ParsedLabel | None:
    for pattern in patterns:
        if not (match := pattern.fullmatch(words)):
            continue
        groups, side = match.groupdict(), side_of_word(match["side"])
        if groups.get("other") and side_of_word(groups["other"]) == side:
            return None  # better than itself
        strength = (groups.get("strength") or "").replace("<", ">")
        return ParsedLabel(FLIPPED_CHOICES[side] if is_against else side, strength, bool(PLACE.search(words)))
    return None


def side_of_word(words: str) -> Choice:
    return Choice.A if re.fullmatch(FIRST, words) else Choice.B


def plain_label_words(label: str) -> str:
    """A label in lower case with single spaces; "" where it has any other character."""
    text = unicodedata.normalize("NFKC", label.translate(SIGNS).strip(UNSEEN)).strip()
    text = text.replace("&gt;", ">").replace("&lt;", "<")
    if not WRITABLE.fullmatch(text):
        return ""
    for _ in range(3):
        text = unwrap_label(text).strip()
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).casefold()
    text = re.sub(r"\(([^()]+)\)", r" \1", text)
    text = re.sub(r"[,:;]|\.(?= )|_|(?<=\w)-(?=\w)| [-–—] ", " ", text)
    text = re.sub(r"(?<=[a-z])(?=\d)|#(?=\d)", " ", text)
    for pattern, apart in JOINED:
        text = pattern.sub(apart, text)
    return " ".join(text.split())


def unwrap_label(text: str) -> str:
    """The label without brackets, quotes or marks around it, and without a full stop."""
    for opening, closing in map(str.split, WRAPPERS):
        inner = text[len(opening) : -len(closing)]
        if text == f"{opening}{inner}{closing}" and opening not in inner and closing not in inner:
            return inner
    return text[:-1] if text[-1:] in END and text[-2:-1] not in (*END, "-") else text


@lru_cache(maxsize=1_000)
def is_label_column(column: str) -> bool:
    """Whether a column is called like labels, on its own or with an aspect: ``choice_style``."""
    letters = unicodedata.normalize("NFKD", column.lower())
    plain = unicodedata.normalize("NFC", "".join(sign for sign in letters if not "\u0300" <= sign <= "\u036f"))
    return not LABEL_WORDS.isdisjoint(NOT_LETTERS.split(plain)) or LABELS_ELSEWHERE.search(plain) is not None


def note_with_strength(note: str, strength: str) -> str:
    """A verdict's note that also keeps how much better the chosen response is."""
    if not strength:
        return note
    return f"{note}; strength: {strength}" if note else f"strength: {strength}"
