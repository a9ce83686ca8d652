"""The undo action of a notice above a page."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django import template

register = template.Library()
UNDO_TAG: Final = "undo:"


@dataclass(frozen=True)
class UndoAction:
    """Where an Undo button posts to, and the fields that it sends."""

    url: str
    fields: Mapping[str, str]


@register.filter
def undo_action(extra_tags: str | None) -> UndoAction | None:
    """``{{ message.extra_tags|undo_action }}``: None where the message offers none."""
    if not (extra_tags or "").startswith(UNDO_TAG):
        return None
    return UndoAction(**json.loads(str(extra_tags).removeprefix(UNDO_TAG)))
