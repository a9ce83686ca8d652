"""What makes a judged text suspect, in words."""

from collections.abc import Iterable, Mapping
from typing import Final

from django import template

from evaluations.domain.texts import Flag

register = template.Library()

IN_WORDS: Final[Mapping[str, str]] = {
    Flag.ADDRESSES_JUDGE: "addresses the judge",
    Flag.FORGED_VERDICT: "forges a verdict",
    Flag.FORGED_DELIMITER: "forges our delimiters",
}


@register.filter
def in_words(flags: str | Iterable[str]) -> list[str]:
    """Flags as a row keeps them (``addresses_judge,forged_verdict``), or one by one."""
    words = flags.split(",") if isinstance(flags, str) else flags
    return [IN_WORDS.get(word, word) for word in words if word]
