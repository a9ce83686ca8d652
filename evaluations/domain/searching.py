"""Words: how texts are cut into them to be searched, what a search asks for, and where its hits stand.

Both databases are given words that were cut here, so that they find the same. Case, accents and the width of letters
make no difference; where writing has no spaces every sign is a word, and what is typed together must stand together.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.domain.refusals import InputRefused

# Thai, Lao, Burmese, Khmer, kana and Han: written without spaces.
UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
WORD: Final = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")
OF_ASCII: Final = "".join(sign.lower() if sign.isalnum() else " " for sign in map(chr, range(128)))
PIECE: Final = re.compile(r'-?"[^"]*"?|[^\s"]+')
QUOTES: Final = str.maketrans("“”„«»", '"""""')
LONGEST_WORD: Final = 64
MOST_TERMS: Final = 20
# Of each text so many characters are searched: what PostgreSQL holds of one document is limited.
CHARACTERS_SEARCHED: Final = 30_000

Term = tuple[str, ...]  # words that stand behind each other


@dataclass(frozen=True)
class Search:
    """``wanted`` must all stand in the texts, ``unwanted`` must not: single words, or words behind each other."""

    wanted: tuple[Term, ...]
    unwanted: tuple[Term, ...] = ()


def words_of(text: str) -> list[str]:
    # Most texts are ASCII alone: cut by a table they take a quarter of the time.
    words = text.translate(OF_ASCII).split() if text.isascii() else WORD.findall(folded(text))
    return [word[:LONGEST_WORD] for word in words]


def folded(text: str) -> str:
    text = text.casefold()
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(sign for sign in apart if not unicodedata.combining(sign)))


def search_for(text: str) -> Search:
    """What somebody typed: words, “phrases”, and -words that must not be there."""
    wanted: dict[Term, None] = {}
    unwanted: dict[Term, None] = {}
    for piece in PIECE.findall(text.translate(QUOTES)):
        is_unwanted = piece.startswith("-")
        term = tuple(words_of(piece))
        if term:
            (unwanted if is_unwanted else wanted)[term] = None
    if not wanted:
        raise InputRefused(no_words(text, bool(unwanted)))
    if len(wanted) + len(unwanted) > MOST_TERMS:
        raise InputRefused(f"At most {MOST_TERMS} words and phrases can be searched for at once.")
    return Search(tuple(wanted), tuple(unwanted))


def no_words(text: str, has_unwanted: bool) -> str:
    if has_unwanted:
        return "Name at least one word that must be there: a word with - only takes away from what others find."
    return f"“{text[:40]}” has no word: searching looks for letters and digits."


# ---- where hits stand -----------------------------------------------------------------------


@dataclass(frozen=True)
class Stretch:
    text: str
    is_hit: bool = False


def excerpt(text: str, search: Search, around: int = 90) -> list[Stretch]:
    """A part of the text with its first hit in it, all hits marked; empty where there is none."""
    hits = list(hits_in(text[:CHARACTERS_SEARCHED], search))
    if not hits:
        return []
    start, end = max(0, hits[0][0] - around), min(len(text), hits[0][1] + around)
    shown = [Stretch("…")] if start else []
    place = start
    for first, last in hits:
        if place <= first and last <= end:
            shown += [Stretch(text[place:first]), Stretch(text[first:last], is_hit=True)]
            place = last
    shown.append(Stretch(text[place:end] + ("…" if end < len(text) else "")))
    return [one for one in shown if one.text]


def hits_in(text: str, search: Search) -> Iterator[tuple[int, int]]:
    """Where what is wanted stands, in the order of the text, none over another."""
    found = [(match.start(), match.end(), folded(match[0])[:LONGEST_WORD]) for match in WORD.finditer(text)]
    words = [word for _, _, word in found]
    place = 0
    while place < len(words):
        length = next((len(term) for term in search.wanted if words_at(words, place, term)), 0)
        if length:
            yield found[place][0], found[place + length - 1][1]
        place += length or 1


def words_at(words: Sequence[str], place: int, term: Term) -> bool:
    return words[place] == term[0] and tuple(words[place : place + len(term)]) == term
