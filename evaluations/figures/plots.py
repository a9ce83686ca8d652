"""A plot with everything that belongs to it: its words, its specification, its table."""

from dataclasses import dataclass

from evaluations.figures.media import Json
from evaluations.figures.tables import Table


@dataclass(frozen=True)
class Caption:
    """``name``: in addresses and file names. ``title``: what is shown, of what. ``rule``: by which rule it was made."""

    name: str
    title: str
    rule: str = ""


@dataclass(frozen=True)
class Plot:
    """``spec`` is None where there is nothing to draw; the notes say why, and the table is there all the same.

    ``description``: the plot in words, for those who do not see it.
    """

    name: str
    title: str
    description: str
    spec: Json | None
    table: Table
    notes: tuple[str, ...]

    @property
    def height(self) -> int:
        """In pixels, legend and axes included: the room that a page keeps for it."""
        return int(self.spec["height"]) if self.spec else 0
