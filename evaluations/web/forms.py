"""Form fields and small forms that several pages use."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from django import forms
from django.db.models import QuerySet

from evaluations.domain.errors import InputRefused
from evaluations.domain.money import parse_budget_usd
from evaluations.domain.secrets import can_show_lines
from evaluations.models.users import User

P = ParamSpec("P")
T = TypeVar("T")


def submit_form(form: forms.Form, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """The result of the action; None if it was refused, with the reason on the form."""
    try:
        return action(*args, **kwargs)
    except InputRefused as refused:
        add_refusal(form, refused)
        return None


def add_refusal(form: forms.Form, refused: InputRefused, field: str | None = None) -> None:
    """Show a refusal at the field that it names, or else at this one."""
    field_of_refusal = refused.field if refused.field in form.fields else field
    form.add_error(field_of_refusal, str(refused))


class BudgetField(forms.CharField):
    """An amount in USD; cleaned to nano-USD, None if empty."""

    def __init__(self, *, help_text: str, label: str = "Budget in USD") -> None:
        widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})
        super().__init__(required=False, label=label, widget=widget, help_text=help_text)

    def clean(self, value: object) -> int | None:
        text: str = super().clean(value)
        try:
            return parse_budget_usd(text, "Budget") if text else None
        except InputRefused as refused:
            raise forms.ValidationError(str(refused)) from refused


CleanedData: TypeAlias = dict[str, Any]


# Longer ones are ids of no row, and are too large for the database to compare with.
MAX_ID_DIGITS: Final = 18


class RowsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # not subscriptable at run time
    """Rows chosen by their ids; an id that no row can have is refused like one that no row has."""

    def clean(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)) and any(len(str(pk)) > MAX_ID_DIGITS for pk in value):
            raise forms.ValidationError(self.error_messages["invalid_choice"], "invalid_choice", {"value": "…"})
        return super().clean(value)


class ReviewersForm(forms.Form):
    """The reviewers to whom comparisons are assigned."""

    people = RowsField(
        User.objects.none(),
        error_messages={
            "required": "Select at least one reviewer.",
            "invalid_choice": "A selected member is not a reviewer here.",
        },
    )

    def __init__(self, data: Mapping[str, object] | None, *, people: QuerySet[User]) -> None:
        super().__init__(data)
        self.fields["people"].queryset = people  # type: ignore[attr-defined]

    def get_reviewers(self) -> list[User]:
        """The reviewers; InputRefused if the choice is invalid."""
        if not self.is_valid():
            raise InputRefused(" ".join(map(str, self.errors["people"])))
        return list(self.cleaned_data["people"])


class SecretFreeWidget(forms.Widget):
    """A widget that is empty if ``may_show`` says that its value must not be shown."""

    def __init__(self, may_show: Callable[[str], bool], **options: Any) -> None:
        super().__init__(**options)
        self.may_show = may_show

    def format_value(self, value: object) -> str | None:
        text = super().format_value(value)
        return text if text and self.may_show(text) else None


class SecretFreeInput(SecretFreeWidget, forms.TextInput):
    pass


class SecretFreeURLInput(SecretFreeWidget, forms.URLInput):
    pass


class SecretFreeTextarea(SecretFreeWidget, forms.Textarea):
    pass


class NumberOnlyInput(forms.NumberInput):
    """A number input that is empty if its value is no number."""

    def format_value(self, value: object) -> str | None:
        text: str | None = super().format_value(value)
        try:
            float(text or "")
        except ValueError:
            return None
        return text


class SecretFreeForm(forms.Form):
    """A form next to secret fields: no number or choice field returns a pasted value."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for field in self.fields.values():
            if type(field.widget) is forms.NumberInput:
                field.widget = NumberOnlyInput(attrs=field.widget.attrs)
                field.widget.is_required = field.required
            if "invalid_choice" in field.error_messages:
                field.error_messages["invalid_choice"] = "Select a valid choice."


PLAIN_TEXT_ATTRS: Final = {"rows": 3, "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}


class HeaderLinesField(forms.CharField):
    """Lines ``Name: value``; programs may send a mapping. The service that stores them checks them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, widget=SecretFreeTextarea(can_show_lines, attrs=PLAIN_TEXT_ATTRS), **options)

    def prepare_value(self, value: object) -> object:
        return "\n".join(f"{name}: {text}" for name, text in value.items()) if isinstance(value, Mapping) else value

    def to_python(self, value: object) -> Any:
        return value if isinstance(value, Mapping) else super().to_python(value)


class JSONObjectField(HeaderLinesField):
    """The text of a JSON object; programs may send the object."""

    def prepare_value(self, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        return json.dumps(value, indent=2, ensure_ascii=False) if value else ""


class MultilineField(forms.CharField):
    """A text of several lines. The CRLF of browsers is replaced, or an unchanged text would look changed."""

    def __init__(self, *, rows: int, **options: Any) -> None:
        super().__init__(widget=forms.Textarea(attrs={"rows": rows}), **options)

    def to_python(self, value: object) -> Any:
        return (super().to_python(value) or "").replace("\r\n", "\n").replace("\r", "\n")


class KeyValueField(forms.CharField):
    """A field that parses lines of “one = other” into a mapping, in their order."""

    def __init__(self, *, separator: str = "\n", **options: Any) -> None:
        self.separator = separator
        super().__init__(**options)

    def prepare_value(self, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        between = "\n" if self.separator == "\n" else f"{self.separator} "
        return between.join(f"{key} = {item}" for key, item in value.items())

    def clean(self, value: object) -> dict[str, str]:
        text = (super().clean(value) or "").replace("\r\n", "\n").replace("\r", "\n")
        pairs = [split_pair(part) for part in text.split(self.separator) if part.strip()]
        refuse_repeated_names([name for name, _ in pairs])
        return dict(pairs)


def split_pair(text: str) -> tuple[str, str]:
    left, equals, right = text.partition("=")
    if not equals or not left.strip() or not right.strip():
        raise forms.ValidationError(f"“{text.strip()}” is not of the form “one = other”.")
    return left.strip(), right.strip()


def refuse_repeated_names(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise forms.ValidationError(f"“{name}” is listed twice. List it once.")
