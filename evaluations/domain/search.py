"""The words of a text and what a search asks of them."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.domain.errors import InputRefused

# Thai, Lao, Burmese, Khmer, kana and Han: written without spaces.
UNSPACED_SCRIPTS: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
WORD: Final = re.compile(rf"[{UNSPACED_SCRIPTS}]|[^\W_{UNSPACED_SCRIPTS}]+")
ASCII_WORD_TABLE: Final = "".join(sign.lower() if sign.isalnum() else " " for sign in map(chr, range(128)))
SEARCH_TERM: Final = re.compile(r'-?"[^"]*"?|[^\s"]+')
QUOTES: Final = str.maketrans("“”„«»", '"""""')
MAX_WORD_CHARACTERS: Final = 64
MAX_SEARCH_TERMS: Final = 20
# Characters of each text that are searched: PostgreSQL limits the size of an indexed document.
CHARACTERS_SEARCHED: Final = 30_000

Term = tuple[str, ...]  # consecutive words


@dataclass(frozen=True)
class SearchQuery:
    """Terms that must all occur in the texts (``required``) and terms that must not (``excluded``)."""

    required: tuple[Term, ...]
    excluded: tuple[Term, ...] = ()


def split_words(text: str) -> list[str]:
    # Most texts are ASCII alone: cut by a table they take a quarter of the time.
    words = text.translate(ASCII_WORD_TABLE).split() if text.isascii() else WORD.findall(fold_text(text))
    return [word[:MAX_WORD_CHARACTERS] for word in words]


def fold_text(text: str) -> str:
    text = text.casefold()
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(sign for sign in apart if not unicodedata.combining(sign)))


def parse_search_text(text: str) -> SearchQuery:
    """Parse a search: words, “phrases”, and -words that must not occur."""
    required: dict[Term, None] = {}
    excluded: dict[Term, None] = {}
    for piece in SEARCH_TERM.findall(text.translate(QUOTES)):
        is_excluded = piece.startswith("-")
        term = tuple(split_words(piece))
        if term:
            (excluded if is_excluded else required)[term] = None
    if not required:
        raise InputRefused(explain_missing_words(text, bool(excluded)))
    if len(required) + len(excluded) > MAX_SEARCH_TERMS:
        raise InputRefused(f"At most {MAX_SEARCH_TERMS} words and phrases can be searched for at once.")
    return SearchQuery(tuple(required), tuple(excluded))


def explain_missing_words(text: str, has_unwanted: bool) -> str:
    if has_unwanted:
        return "Add at least one word to find. A word with - only excludes results."
    return f"“{text[:40]}” has no word: searching looks for letters and digits."


@dataclass(frozen=True)
class ExcerptPart:
    text: str
    is_hit: bool = False


def make_search_excerpt(text: str, search: SearchQuery, around: int = 90) -> list[ExcerptPart]:
    """A part of the text with its first hit in it, all hits marked; empty where there is none."""
    hits = list(find_hits(text[:CHARACTERS_SEARCHED], search))
    if not hits:
        return []
    start, end = max(0, hits[0][0] - around), min(len(text), hits[0][1] + around)
    shown = [ExcerptPart("…")] if start else []
    place = start
    for first, last in hits:
        if place <= first and last <= end:
            shown += [ExcerptPart(text[place:first]), ExcerptPart(text[first:last], is_hit=True)]
            place = last
    shown.append(ExcerptPart(text[place:end] + ("…" if end < len(text) else "")))
    return [part for part in shown if part.text]


def find_hits(text: str, search: SearchQuery) -> Iterator[tuple[int, int]]:
    """Character ranges of the required terms in the text, in order, without overlaps."""
    matches = [(match.start(), match.end(), fold_text(match[0])[:MAX_WORD_CHARACTERS]) for match in WORD.finditer(text)]
    words = [word for _, _, word in matches]
    place = 0
    while place < len(words):
        length = next((len(term) for term in search.required if has_term_at(words, place, term)), 0)
        if length:
            yield matches[place][0], matches[place + length - 1][1]
        place += length or 1


def has_term_at(words: Sequence[str], place: int, term: Term) -> bool:
    return words[place] == term[0] and tuple(words[place : place + len(term)]) == term
