"""Inputs that never repeat a value that may be a secret, pasted by mistake."""

from collections.abc import Callable
from typing import Any

from django import forms


class SecretFreeInput(forms.TextInput):
    """A text input that comes back empty where the value must not be shown. ``may_show`` decides."""

    def __init__(self, may_show: Callable[[str], bool], **options: Any) -> None:
        super().__init__(**options)
        self.may_show = may_show

    def format_value(self, value: Any) -> str | None:
        text = super().format_value(value)
        return text if text and self.may_show(text) else None


class SecretFreeURLInput(SecretFreeInput):
    input_type = "url"
