"""Notes below a table: why numbers or intervals are missing, and how the intervals were computed.

A letter in a cell refers to its note. Reasons that differ only in a count of clusters share one note.
"""

import re
from string import ascii_lowercase
from typing import Final

from django.utils.html import format_html
from django.utils.safestring import SafeString

COUNTED: Final = re.compile(r"[\d,]+(?= clusters| < \d)")
DESIGN_EFFECT: Final = re.compile(r"[\d,]+ ÷ design effect [\d.]+")


class Remarks:
    """The notes of one table, collected while its cells are rendered."""

    def __init__(self) -> None:
        self.reason_counts: dict[str, list[list[int]]] = {}
        self.rule_counts: dict[str, list[list[int]]] = {}

    def mark(self, reason: str) -> SafeString:
        kind = gather(self.reason_counts, reason)
        return format_html('<sup title="{}">{}</sup>', reason, letter(list(self.reason_counts).index(kind)))

    def made_by(self, rule: str) -> None:
        gather(self.rule_counts, DESIGN_EFFECT.sub("n ÷ design effect", rule))

    @property
    def reasons(self) -> list[str]:
        return [with_counts(kind, counts) for kind, counts in self.reason_counts.items()]

    @property
    def rules(self) -> list[str]:
        return [with_counts(kind, counts) for kind, counts in self.rule_counts.items()]


def gather(occurrences: dict[str, list[list[int]]], reason: str) -> str:
    """Add the counts of the reason to those of its kind, and return the kind."""
    kind = COUNTED.sub("{}", reason)
    occurrences.setdefault(kind, []).append([int(count.replace(",", "")) for count in COUNTED.findall(reason)])
    return kind


def with_counts(kind: str, counts: list[list[int]]) -> str:
    """``counts``: the numbers of each occurrence, in the order of the text."""
    for numbers in zip(*counts, strict=True):
        low, high = min(numbers), max(numbers)
        kind = kind.replace("{}", f"{low:,}" if low == high else f"{low:,} to {high:,}", 1)
    return kind


def letter(index: int) -> str:
    """The letter of a list item: a to z, then aa, ab, …"""
    quotient, remainder = divmod(index, 26)
    return (letter(quotient - 1) if quotient else "") + ascii_lowercase[remainder]
