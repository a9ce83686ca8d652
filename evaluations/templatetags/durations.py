"""Lengths of time as people say them."""

from django import template

register = template.Library()

UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


@register.filter
def duration(seconds: float) -> str:
    """The one or two largest units: ``2 hours 5 minutes``, ``40 seconds``."""
    left = max(round(seconds), 1)
    parts = []
    for size, name in UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}{'s' if count > 1 else ''}")
        elif parts:
            break
    return " ".join(parts[:2])
