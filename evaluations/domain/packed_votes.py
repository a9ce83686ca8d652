"""How the choices of a rater on a comparison are packed into whole numbers."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from evaluations.domain.choices import PACKED_CHOICES, PACKED_ORDERS

BITS_PER_CHOICE: Final = 3
SLOTS_PER_BLOCK: Final = 20

CHOICE_CODES: Final[Mapping[str, int]] = {choice: place + 1 for place, choice in enumerate(PACKED_CHOICES)}
ORDER_CODES: Final[Mapping[str, int]] = {shown: place for place, shown in enumerate(PACKED_ORDERS)}


def pack_choices(choices: Mapping[int, str]) -> dict[int, int]:
    """Pack choices by aspect slot into one number for each block."""
    blocks: dict[int, int] = defaultdict(int)
    for place, choice in choices.items():
        blocks[block_of_slot(place)] |= pack_choice(place, choice)
    return dict(blocks)


def pack_marks(places: "set[int]") -> dict[int, int]:
    """Pack one bit for each of these slots into one number for each block."""
    blocks: dict[int, int] = defaultdict(int)
    for place in places:
        blocks[block_of_slot(place)] |= pack_mark(place)
    return dict(blocks)


def pack_choice(place: int, choice: str) -> int:
    """The bits of a choice in the block of this slot."""
    return CHOICE_CODES[choice] << shift_of_slot(place)


def pack_mark(place: int) -> int:
    return 1 << (place % SLOTS_PER_BLOCK)


def block_of_slot(place: int) -> int:
    return place // SLOTS_PER_BLOCK


def shift_of_slot(place: int) -> int:
    """The number of bits by which the choice of this slot is shifted in its block."""
    return place % SLOTS_PER_BLOCK * BITS_PER_CHOICE
