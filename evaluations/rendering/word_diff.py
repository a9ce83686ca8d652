"""A word-by-word diff of two texts, as safe HTML.

The common subsequence is exact. One row of the usual table is one long integer, in which a cleared bit is a step up
(Hyyrö 2004, "Bit-parallel LCS-length computation revisited"): words × words / 64 steps of the processor. A table too
large to keep is halved first (Hirschberg 1975).
"""

from collections import deque
from collections.abc import Hashable, Iterator, Sequence, Sized
from html import escape
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from evaluations.domain.errors import InputRefused
from evaluations.rendering.markdown import replace_surrogates
from evaluations.rendering.text_length import PIECE

# The rows of a table are kept for tracing back, up to so many bits: 8 MB.
MOST_BITS_KEPT: Final = 1 << 26
# The bits of words with fewer positions are computed each time: kept for all, they would take hundreds of MB.
POSITIONS_WORTH_KEEPING: Final = 8
WordSequence = Sequence[Hashable]


class MatchingRun(NamedTuple):
    """A run of words that are the same in both texts from these positions on."""

    a: int
    b: int
    length: int


def align_words(a: WordSequence, b: WordSequence) -> list[MatchingRun]:
    """The runs of words common to both texts, in order, with as many words as possible."""
    runs: list[MatchingRun] = []
    for here, there in matching_pairs(a, b):
        if runs and runs[-1].a + runs[-1].length == here and runs[-1].b + runs[-1].length == there:
            runs[-1] = runs[-1]._replace(length=runs[-1].length + 1)
        else:
            runs.append(MatchingRun(here, there, 1))
    return runs


def matching_pairs(a: WordSequence, b: WordSequence) -> Iterator[tuple[int, int]]:
    """Pairs of positions of the common words; equal beginnings and ends are matched first."""
    shorter = min(len(a), len(b))
    start = next((place for place in range(shorter) if a[place] != b[place]), shorter)
    left = shorter - start
    end = next((place for place in range(left) if a[-1 - place] != b[-1 - place]), left)
    yield from ((place, place) for place in range(start))
    for here, there in align_between(a[start : len(a) - end], b[start : len(b) - end]):
        yield start + here, start + there
    yield from ((len(a) - place, len(b) - place) for place in range(end, 0, -1))


def align_between(a: WordSequence, b: WordSequence) -> Iterator[tuple[int, int]]:
    if not a or not b:
        return
    if len(a) == 1 or len(a) * len(b) <= MOST_BITS_KEPT:
        yield from trace_back(a, b)
        return
    half = len(a) // 2
    split = find_best_split(a[:half], a[half:], b)
    yield from matching_pairs(a[:half], b[:split])
    yield from ((half + here, split + there) for here, there in matching_pairs(a[half:], b[split:]))


def find_best_split(first: WordSequence, second: WordSequence, b: WordSequence) -> int:
    """The position at which to split ``b`` so that its parts share most words with ``first`` and ``second``."""
    before = prefix_lcs_lengths(first, b)
    after = prefix_lcs_lengths(second[::-1], b[::-1])
    return max(range(len(b) + 1), key=lambda cut: before[cut] + after[len(b) - cut])


def prefix_lcs_lengths(a: WordSequence, b: WordSequence) -> list[int]:
    """The length of the longest common subsequence of ``a`` and each prefix of ``b``, the empty one first."""
    (last,) = deque(bit_rows(a, b), maxlen=1)
    bits = bin(last | 1 << len(b))[:2:-1]
    return list(accumulate((bit == "0" for bit in bits), initial=0))


def bit_rows(a: WordSequence, b: WordSequence) -> Iterator[int]:
    """The rows of the table, one for each word of ``a``, in bits from the first word of ``b`` on."""
    places = word_positions(a, b)
    often = {word: bits_at_positions(found) for word, found in places.items() if len(found) >= POSITIONS_WORTH_KEEPING}
    full = row = (1 << len(b)) - 1
    for word in a:
        if word in places:
            common = row & (often.get(word) or bits_at_positions(places[word]))
            row = (row + common | row - common) & full
        yield row


def word_positions(a: WordSequence, b: WordSequence) -> dict[Hashable, list[int]]:
    """The positions in ``b`` of each word that both texts have."""
    found: dict[Hashable, list[int]] = {word: [] for word in a}
    for place, word in enumerate(b):
        if word in found:
            found[word].append(place)
    return {word: places for word, places in found.items() if places}


def bits_at_positions(places: Sequence[int]) -> int:
    bits = bytearray(places[-1] // 8 + 1)
    for place in places:
        bits[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(bits, "little")


def trace_back(a: WordSequence, b: WordSequence) -> Iterator[tuple[int, int]]:
    """The common words, found from the last cell of the table to its first."""
    table = [(1 << len(b)) - 1, *bit_rows(a, b)]
    here, there = len(a), len(b)
    found: list[tuple[int, int]] = []
    while here and there:
        if table[here] >> (there - 1) & 1:
            there -= 1
        elif table[here - 1] >> (there - 1) & 1:
            here, there = here - 1, there - 1
            found.append((here, there))
        else:
            here -= 1
    return reversed(found)


# Up to this product of word counts words are compared directly, in less than a second. Above, only lines that differ
# are compared, and where these are too many, the comparison is refused.
MOST_COMPARED: Final = 2_500_000_000
TOO_LONG: Final = "These texts are too long and too different to be compared word by word: read them side by side."
ELEMENTS: Final = ("del", "ins")
SPOKEN: Final = ("only in A: ", "only in B: ")
Line = tuple[str, ...]


def diff_words(a: str, b: str) -> tuple[str, str]:
    """Both texts as safe HTML, as they were written, in which the words that only one side has are marked.

    To be shown where white space is kept: ``<div class="written" dir="auto">``. White space alone
    makes no difference. Raises InputRefused where the texts are too long.
    """
    texts = (replace_surrogates(a), replace_surrogates(b))
    places = [[piece.span() for piece in PIECE.finditer(text)] for text in texts]
    words = [[text[start:end] for start, end in spans] for text, spans in zip(texts, places, strict=True)]
    runs = drop_coincidental_matches(common_runs(texts, words), *words)
    return (
        mark_differences(texts[0], places[0], [(run.a, run.length) for run in runs], side=0),
        mark_differences(texts[1], places[1], [(run.b, run.length) for run in runs], side=1),
    )


def common_runs(texts: tuple[str, str], words: Sequence[Sequence[str]]) -> list[MatchingRun]:
    if len(words[0]) * len(words[1]) <= MOST_COMPARED:
        return align_words(*words)
    lines = [[tuple(PIECE.findall(line)) for line in text.split("\n")] for text in texts]
    return list(align_by_lines(*lines))


def align_by_lines(a: Sequence[Line], b: Sequence[Line]) -> Iterator[MatchingRun]:
    """Equal lines first, then words between them."""
    places_a, places_b = part_starts(a), part_starts(b)
    compared = 0
    for before, run in pairwise([MatchingRun(0, 0, 0), *align_words(a, b), MatchingRun(len(a), len(b), 0)]):
        here, there = before.a + before.length, before.b + before.length
        words_a = [word for line in a[here : run.a] for word in line]
        words_b = [word for line in b[there : run.b] for word in line]
        compared += len(words_a) * len(words_b)
        if compared > MOST_COMPARED:
            raise InputRefused(TOO_LONG)
        for inner in align_words(words_a, words_b):
            yield MatchingRun(places_a[here] + inner.a, places_b[there] + inner.b, inner.length)
        yield MatchingRun(places_a[run.a], places_b[run.b], places_a[run.a + run.length] - places_a[run.a])


def part_starts(parts: Sequence[Sized]) -> list[int]:
    """The start of each part when the parts are joined, and the end of the last one."""
    return [0, *accumulate(map(len, parts))]


def drop_coincidental_matches(runs: Sequence[MatchingRun], a: Sequence[str], b: Sequence[str]) -> list[MatchingRun]:
    """The runs without short ones between two changes, which two texts share by chance, such as “of” or a comma.

    A run is dropped where it has no more characters than each of its neighboring changes, as diff-match-patch does.
    """
    ends_a, ends_b = part_starts(a), part_starts(b)

    def changed(before: MatchingRun, after: MatchingRun) -> int:
        only_a = ends_a[after.a] - ends_a[before.a + before.length]
        only_b = ends_b[after.b] - ends_b[before.b + before.length]
        return max(only_a, only_b)

    kept = [MatchingRun(0, 0, 0)]
    for run in [*runs, MatchingRun(len(a), len(b), 0)]:
        while len(kept) > 1:
            last = kept[-1]
            same = ends_a[last.a + last.length] - ends_a[last.a]
            if same > changed(kept[-2], last) or same > changed(last, run):
                break
            kept.pop()
        kept.append(run)
    return kept[1:-1]


def mark_differences(
    text: str, places: Sequence[tuple[int, int]], same: Sequence[tuple[int, int]], *, side: int
) -> str:
    """The text with a mark around each stretch that the other text does not have."""
    parts, shown = [], 0
    for (before, count), (run, _) in pairwise([(0, 0), *same, (len(places), 0)]):
        if before + count < run:
            start, end = places[before + count][0], places[run - 1][1]
            parts += [escape(text[shown:start]), mark_words(text[start:end], side)]
            shown = end
    return "".join([*parts, escape(text[shown:])])


def mark_words(text: str, side: int) -> str:
    spoken = f'<span class="visually-hidden" dir="ltr">{SPOKEN[side]}</span>'
    return f'<{ELEMENTS[side]} class="only">{spoken}{escape(text)}</{ELEMENTS[side]}>'
