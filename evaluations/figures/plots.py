"""A plot with everything that belongs to it: its words, its specification, its table."""

from dataclasses import dataclass, replace

from evaluations.figures.media import SUBTITLE_LETTERS, SUBTITLE_PIXELS, Json
from evaluations.figures.tables import Table
from evaluations.figures.wording import wrapped


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

    def told_of(self, words: str) -> "Plot":
        """With what it was made of among its notes, and on the image where that says of itself what it shows."""
        notes = (*self.notes, words)
        if self.spec is None or "title" not in self.spec:
            return replace(self, notes=notes)
        lines, title = wrapped(words, SUBTITLE_LETTERS), self.spec["title"]
        height = self.spec["height"] + SUBTITLE_PIXELS * len(lines)
        spec = {**self.spec, "height": height, "title": {**title, "subtitle": [*title["subtitle"], *lines]}}
        return replace(self, notes=notes, spec=spec)
