"""Pairs as people write them: “one = other”, a line or a semicolon apart."""

from collections.abc import Mapping
from typing import Any

from django import forms


class PairsField(forms.CharField):
    """Text in, a mapping out, in the order in which it was written."""

    def __init__(self, *, separator: str = "\n", **options: Any) -> None:
        self.separator = separator
        super().__init__(**options)

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        between = "\n" if self.separator == "\n" else f"{self.separator} "
        return between.join(f"{one} = {other}" for one, other in value.items())

    def clean(self, value: Any) -> dict[str, str]:
        text = (super().clean(value) or "").replace("\r\n", "\n").replace("\r", "\n")
        pairs = [two_sides(part) for part in text.split(self.separator) if part.strip()]
        refuse_repeats([one for one, _ in pairs])
        return dict(pairs)


def two_sides(text: str) -> tuple[str, str]:
    left, equals, right = text.partition("=")
    if not equals or not left.strip() or not right.strip():
        raise forms.ValidationError(f"“{text.strip()}” is not of the form “one = other”.")
    return left.strip(), right.strip()


def refuse_repeats(given: list[str]) -> None:
    for one in given:
        if given.count(one) > 1:
            raise forms.ValidationError(f"“{one}” stands here twice: say once what it is.")
