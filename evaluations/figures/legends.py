"""The legend above a plot: how many lines of it there are, so that the page can keep room for them."""

import math
from collections.abc import Sequence
from typing import Final

from evaluations.figures.media import Json

WIDE: Final = 640
# It begins where the plot does, to the right of the names of its rows.
NARROW: Final = 190
LETTER: Final = 6.8
SYMBOL_AND_GAP: Final = 40
LINE: Final = 20
OFFSET: Final = 8


def legend(names: Sequence[str]) -> Json | None:
    """None where no series has a name: then there is one alone."""
    if not any(names):
        return None
    return {
        "columns": {"expr": f"narrow ? {columns(names, NARROW)} : {columns(names, WIDE)}"},
        # In the middle, as beside rows: two judges, or two pairs of them, often differ at the end of their names only.
        "labelExpr": "truncate(datum.label, narrow ? 28 : 38, 'center')",
    }


def columns(names: Sequence[str], width: int) -> int:
    """As many as fit beside each other, each as wide as the longest name."""
    widest = max(len(name) for name in names) * LETTER + SYMBOL_AND_GAP
    return max(1, min(len(names), int(width // widest)))


def legend_height(names: Sequence[str]) -> int:
    """In pixels, where the plot is narrow and needs most."""
    if not any(names):
        return 0
    return math.ceil(len(names) / columns(names, NARROW)) * LINE + OFFSET
