"""Fields for what is sent with every request besides: lines ``Name: value``, and a JSON object."""

import json
from collections.abc import Mapping
from typing import Any, Final

from django import forms

from evaluations.domain import may_show_lines
from evaluations.forms.secrets import SecretFreeTextarea

ATTRS: Final = {"rows": 3, "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}


class LinesField(forms.CharField):
    """Lines ``Name: value``; programs may send a mapping. The service that stores them checks them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, widget=SecretFreeTextarea(may_show_lines, attrs=ATTRS), **options)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{name}: {one}" for name, one in value.items()) if isinstance(value, Mapping) else value

    def to_python(self, value: Any) -> Any:
        return value if isinstance(value, Mapping) else super().to_python(value)


class ObjectField(LinesField):
    """The text of a JSON object; programs may send the object."""

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return json.dumps(value, indent=2, ensure_ascii=False) if value else ""
