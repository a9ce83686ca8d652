"""How texts look on pages."""

from django import template
from django.utils.safestring import SafeString, mark_safe

from evaluations.rendering.markdown import rendered as to_html

register = template.Library()


@register.filter
def rendered(text: str | None) -> SafeString:
    """``{{ message.content|rendered }}``: Markdown as HTML that is safe on any page."""
    return mark_safe(to_html(text or ""))
