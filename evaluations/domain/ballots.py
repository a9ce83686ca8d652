"""A ballot: all that one rater chose on one comparison in one go, as whole numbers.

Three bits for each aspect, at the aspect's place in its evaluation: 0 where nothing was chosen, else one
more than the choice's place in `CHOICES`. Places beyond the first twenty go into the next block.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from evaluations.domain.choices import Choice, Shown

# The code of a choice or an order is its place here. The two sides come first, so that a table
# without ties is the upper left corner of the table with them.
CHOICES: Final = (Choice.A, Choice.B, Choice.TIE, Choice.BOTH_BAD)
ORDERS: Final = (Shown.AS_STORED, Shown.SWAPPED, Shown.UNKNOWN, Shown.FOLDED)

BITS: Final = 3
PLACES_A_BLOCK: Final = 20

CODE_OF: Final[Mapping[str, int]] = {choice: place + 1 for place, choice in enumerate(CHOICES)}
ORDER_CODE: Final[Mapping[str, int]] = {shown: place for place, shown in enumerate(ORDERS)}


def packed(choices: Mapping[int, str]) -> dict[int, int]:
    """From the place of an aspect to its choice, to a number for each block."""
    blocks: dict[int, int] = defaultdict(int)
    for place, choice in choices.items():
        blocks[block_of(place)] |= choice_bits(place, choice)
    return dict(blocks)


def marked(places: "set[int]") -> dict[int, int]:
    """A bit for each of these aspects, by block."""
    blocks: dict[int, int] = defaultdict(int)
    for place in places:
        blocks[block_of(place)] |= mark_bits(place)
    return dict(blocks)


def choice_bits(place: int, choice: str) -> int:
    """What the choice of the aspect at this place is in its block."""
    return CODE_OF[choice] << shift_of(place)


def mark_bits(place: int) -> int:
    return 1 << (place % PLACES_A_BLOCK)


def block_of(place: int) -> int:
    return place // PLACES_A_BLOCK


def shift_of(place: int) -> int:
    """By how many bits the choice at this place is moved up in its block."""
    return place % PLACES_A_BLOCK * BITS
