"""Template filters for Markdown texts."""

from collections.abc import Mapping

from django import template
from django.utils.safestring import SafeString, mark_safe

from evaluations.rendering.markdown import render_markdown
from evaluations.rendering.plain_text import text_content

register = template.Library()


@register.filter
def rendered(text: str | None) -> SafeString:
    """``{{ message.content|rendered }}``: Markdown as HTML that is safe on any page."""
    return mark_safe(render_markdown(text or ""))


@register.filter
def of(html: Mapping[str, SafeString] | str, text: str | None) -> SafeString:
    """``{{ html|of:message.content }}``: the HTML that the view had made of it by `rendered_texts.render_texts`.

    A text that is missing there is rendered here.
    """
    prepared = html.get(text or "") if isinstance(html, Mapping) else None
    return prepared if prepared is not None else rendered(text)


@register.filter
def words(html: SafeString) -> str:
    """``{{ html|of:comment.text|words|truncatechars:280 }}``: a text without its markup."""
    return text_content(html).strip()
