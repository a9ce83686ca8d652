"""Template filters for the fields of forms."""

from typing import Final

from django import forms, template
from django.forms import BoundField

register = template.Library()

# A box may be left alone, and a list offers its own “none”: neither has to be called optional.
NEVER_MARKED: Final = ("checkbox", "select", "radioselect")


@register.filter
def is_marked_optional(field: BoundField) -> bool:
    return not field.field.required and field.widget_type not in NEVER_MARKED


@register.filter
def is_entered(form: forms.BaseForm, names: str) -> bool:
    """``{{ form|is_entered:"context reference" }}``: whether one of these fields has a value or a fault."""
    return any(form[name].value() for name in names.split()) or has_errors(form, names)


@register.filter
def has_errors(form: forms.BaseForm, names: str) -> bool:
    """Whether one of these fields has a fault; a name that this form lacks has none."""
    return any(form[name].errors for name in names.split() if name in form.fields)
