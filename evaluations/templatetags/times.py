"""How moments look: the zone of the reader, which a tooltip names."""

from datetime import datetime

from django import template
from django.template.defaultfilters import date
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def when(moment: datetime | None, layout: str = "j M Y, H:i") -> SafeString | str:
    """``{{ run.created_at|when }}`` or ``{{ call.sent_at|when:"H:i:s" }}``: the moment, with its zone in a tooltip."""
    if moment is None:
        return ""
    local = timezone.localtime(moment)
    exact = date(local, "j M Y, H:i:s T")
    return format_html('<time datetime="{}" title="{}">{}</time>', local.isoformat(), exact, date(local, layout))
