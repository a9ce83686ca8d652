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


class SecretFreeTextarea(forms.Textarea):
    """A text area that comes back empty where its text must not be shown. ``may_show`` decides."""

    def __init__(self, may_show: Callable[[str], bool], **options: Any) -> None:
        super().__init__(**options)
        self.may_show = may_show

    def format_value(self, value: Any) -> str | None:
        text = super().format_value(value)
        return text if text and self.may_show(text) else None


class NumberOnlyInput(forms.NumberInput):
    """A number input that comes back empty where no number was entered."""

    def format_value(self, value: Any) -> str | None:
        text: str | None = super().format_value(value)
        try:
            float(text or "")
        except ValueError:
            return None
        return text


class SecretFreeForm(forms.Form):
    """A form beside whose fields keys are at hand: none comes back from a number or a choice."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for field in self.fields.values():
            if type(field.widget) is forms.NumberInput:
                field.widget = NumberOnlyInput(attrs=field.widget.attrs)
                field.widget.is_required = field.required
            if "invalid_choice" in field.error_messages:
                field.error_messages["invalid_choice"] = "Select a valid choice."
