"""The longest common subsequence of two lists of words, exact and in bounded time.

One row of the usual table is one long integer, in which a cleared bit stands for a step up
(Hyyrö 2004, "Bit-parallel LCS-length computation revisited"): words × words / 64 steps of the
processor. What is too large to keep whole is halved first (Hirschberg 1975).
"""

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

# The rows of a table are kept, to be walked back through, up to so many bits: 8 MB.
MOST_BITS_KEPT: Final = 1 << 26
# The bits of a word that stands in fewer places are made anew each time: kept for all, they would take hundreds of MB.
PLACES_WORTH_KEEPING: Final = 8

Words = Sequence[Hashable]


class Run(NamedTuple):
    """So many words in a row are the same from these two places on."""

    a: int
    b: int
    length: int


def aligned(a: Words, b: Words) -> list[Run]:
    """Where the texts are the same: runs in order, as many words of both as possible."""
    runs: list[Run] = []
    for here, there in pairs(a, b):
        if runs and runs[-1].a + runs[-1].length == here and runs[-1].b + runs[-1].length == there:
            runs[-1] = runs[-1]._replace(length=runs[-1].length + 1)
        else:
            runs.append(Run(here, there, 1))
    return runs


def pairs(a: Words, b: Words) -> Iterator[tuple[int, int]]:
    """The places of the common words. Equal beginnings and ends are taken as they are."""
    shorter = min(len(a), len(b))
    start = next((place for place in range(shorter) if a[place] != b[place]), shorter)
    left = shorter - start
    end = next((place for place in range(left) if a[-1 - place] != b[-1 - place]), left)
    yield from ((place, place) for place in range(start))
    for here, there in between(a[start : len(a) - end], b[start : len(b) - end]):
        yield start + here, start + there
    yield from ((len(a) - place, len(b) - place) for place in range(end, 0, -1))


def between(a: Words, b: Words) -> Iterator[tuple[int, int]]:
    if not a or not b:
        return
    if len(a) == 1 or len(a) * len(b) <= MOST_BITS_KEPT:
        yield from walked_back(a, b)
        return
    half = len(a) // 2
    split = best_split(a[:half], a[half:], b)
    yield from pairs(a[:half], b[:split])
    yield from ((half + here, split + there) for here, there in pairs(a[half:], b[split:]))


def best_split(first: Words, second: Words, b: Words) -> int:
    """Where to cut ``b`` so that both halves together have the most words in common."""
    before = lengths(first, b)
    after = lengths(second[::-1], b[::-1])
    return max(range(len(b) + 1), key=lambda cut: before[cut] + after[len(b) - cut])


def lengths(a: Words, b: Words) -> list[int]:
    """How many words ``a`` has in common with each beginning of ``b``, the empty one first."""
    (last,) = deque(rows(a, b), maxlen=1)
    bits = bin(last | 1 << len(b))[:2:-1]
    return list(accumulate((bit == "0" for bit in bits), initial=0))


def rows(a: Words, b: Words) -> Iterator[int]:
    """The rows of the table, one for each word of ``a``, in bits from the first word of ``b`` on."""
    places = places_of(a, b)
    often = {word: bits_at(found) for word, found in places.items() if len(found) >= PLACES_WORTH_KEEPING}
    full = row = (1 << len(b)) - 1
    for word in a:
        if word in places:
            common = row & (often.get(word) or bits_at(places[word]))
            row = (row + common | row - common) & full
        yield row


def places_of(a: Words, b: Words) -> dict[Hashable, list[int]]:
    """Where in ``b`` each word stands that both have."""
    found: dict[Hashable, list[int]] = {word: [] for word in a}
    for place, word in enumerate(b):
        if word in found:
            found[word].append(place)
    return {word: places for word, places in found.items() if places}


def bits_at(places: Sequence[int]) -> int:
    bits = bytearray(places[-1] // 8 + 1)
    for place in places:
        bits[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(bits, "little")


def walked_back(a: Words, b: Words) -> Iterator[tuple[int, int]]:
    """The common words, found from the last cell of the table to its first."""
    table = [(1 << len(b)) - 1, *rows(a, b)]
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
