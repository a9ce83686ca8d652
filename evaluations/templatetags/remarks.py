"""What is said once below a table: why numbers or their intervals are missing, and how the intervals were made.

A letter in a cell points to its reason. What differs in a count of clusters alone is said once, with all the counts.
"""

import re
from string import ascii_lowercase
from typing import Final

from django.utils.html import format_html
from django.utils.safestring import SafeString

COUNTED: Final = re.compile(r"[\d,]+(?= clusters| < \d)")
DESIGN_EFFECT: Final = re.compile(r"[\d,]+ ÷ design effect [\d.]+")


class Remarks:
    """Gathered while the cells of a table are rendered."""

    def __init__(self) -> None:
        self.why: dict[str, list[list[int]]] = {}
        self.made: dict[str, list[list[int]]] = {}

    def mark(self, reason: str) -> SafeString:
        kind = gather(self.why, reason)
        return format_html('<sup title="{}">{}</sup>', reason, letter(list(self.why).index(kind)))

    def made_by(self, rule: str) -> None:
        gather(self.made, DESIGN_EFFECT.sub("n ÷ design effect", rule))

    @property
    def reasons(self) -> list[str]:
        return [with_counts(kind, counts) for kind, counts in self.why.items()]

    @property
    def rules(self) -> list[str]:
        return [with_counts(kind, counts) for kind, counts in self.made.items()]


def gather(found: dict[str, list[list[int]]], said: str) -> str:
    """Put the counts in what was said to those of the same kind, and give that kind."""
    kind = COUNTED.sub("{}", said)
    found.setdefault(kind, []).append([int(count.replace(",", "")) for count in COUNTED.findall(said)])
    return kind


def with_counts(kind: str, counts: list[list[int]]) -> str:
    """``counts``: the numbers of each occurrence, in the order of the text."""
    for of_place in zip(*counts, strict=True):
        low, high = min(of_place), max(of_place)
        kind = kind.replace("{}", f"{low:,}" if low == high else f"{low:,} to {high:,}", 1)
    return kind


def letter(place: int) -> str:
    """a to z, then aa, ab: as a list counts in letters."""
    before, within = divmod(place, 26)
    return (letter(before - 1) if before else "") + ascii_lowercase[within]
