"""Template filters for sessions and security events."""

import re
from typing import Final

from django import template

from evaluations.domain.security import SECURITY_EVENT_TEXTS, SecurityEventKind

register = template.Library()

# Browsers claim to be each other: the first that matches is the one.
BROWSERS: Final = (
    ("Edge", "Edg"),
    ("Opera", "OPR/"),
    ("Firefox", "Firefox/"),
    ("Chrome", "Chrom"),
    ("Safari", "Safari/"),
)
SYSTEMS: Final = (
    *(("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows")),
    *(("macOS", "Mac OS X"), ("Linux", "Linux")),
)


@register.filter
def security_event_text(kind: str) -> str:
    return SECURITY_EVENT_TEXTS[SecurityEventKind(kind)]


@register.filter
def browser_name(user_agent: str) -> str:
    """``Firefox on Linux``, or the first words of what a program calls itself."""
    found = [next((name for name, mark in names if mark in user_agent), "") for names in (BROWSERS, SYSTEMS)]
    if all(found):
        return " on ".join(found)
    return re.split(r"[\s(]", user_agent, maxsplit=1)[0][:40] or "unknown"
