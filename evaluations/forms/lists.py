"""Lists of forms that grow, shrink and change their order without scripts, one step at a time."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms

MOVES: Final = {"up": -1, "down": 1}
Rows = list[dict[str, Any]]


def rearranged(rows: Rows, step: str, *, new: Mapping[str, Any], most: int) -> Rows:
    """The rows after ``add``, ``remove 3``, ``up 3`` or ``down 3``; an odd step changes nothing."""
    word, _, given = step.partition(" ")
    place = int(given) if given.isdecimal() else -1
    if word == "add" and len(rows) < most:
        return [*rows, dict(new)]
    if word == "remove" and 0 <= place < len(rows):
        return rows[:place] + rows[place + 1 :]
    other = place + MOVES.get(word, 0)
    if 0 <= place < len(rows) and 0 <= other < len(rows):
        rows[place], rows[other] = rows[other], rows[place]
    return rows


def typed_rows(data: Mapping[str, Any], form: type[forms.Form], prefix: str, most: int) -> Rows:
    """What stands in the list, not yet checked."""
    total = str(data.get(f"{prefix}-TOTAL_FORMS"))
    count = min(int(total), most) if total.isdecimal() and len(total) < 9 else 0
    return [{name: data.get(f"{prefix}-{row}-{name}", "") for name in form.base_fields} for row in range(count)]
