"""What all aspects of a report share, each made when it is first asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from evaluations.stats.items import Items
from evaluations.stats.length_control import Lengths
from evaluations.stats.matches import Matches


@dataclass(frozen=True)
class Known:
    """``families``: of each judge by name, empty where not set. ``judges``: how many claims are controlled over."""

    items: Items
    families: Mapping[str, str]
    judges: int = 0

    @cached_property
    def matches(self) -> Matches:
        return Matches(self.items)

    @cached_property
    def lengths(self) -> Lengths:
        return Lengths(self.matches)
