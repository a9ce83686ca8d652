"""Notices above a page that offer to undo what was just done."""

import json
from collections.abc import Mapping

from django.contrib import messages
from django.http import HttpRequest

from evaluations.templatetags.notices import UNDO_TAG


def add_notice_with_undo(
    request: HttpRequest, text: str, undo_url: str, fields: Mapping[str, str] | None = None
) -> None:
    """Show ``text`` on the next page with a button that posts ``fields`` to ``undo_url``."""
    action = json.dumps({"url": undo_url, "fields": dict(fields or {})})
    messages.success(request, text, extra_tags=f"{UNDO_TAG}{action}")
