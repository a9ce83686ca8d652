"""What pages ask of the fields of a form."""

import pytest
from django import forms

from evaluations.templatetags.fields import has_errors, is_entered, is_marked_optional


class Sample(forms.Form):
    name = forms.CharField()
    note = forms.CharField(required=False)
    size = forms.IntegerField(required=False)
    agreed = forms.BooleanField(required=False)
    kind = forms.ChoiceField(required=False, choices=[("", "any")])


def test_only_fields_that_are_written_into_are_called_optional() -> None:
    form = Sample()
    assert [name for name in form.fields if is_marked_optional(form[name])] == ["note", "size"]


@pytest.mark.parametrize(
    ("given", "entered", "faults"),
    [
        ({"name": "a"}, False, False),
        ({"name": "a", "note": "why"}, True, False),
        ({"name": "a", "size": "many"}, True, True),
        ({}, False, False),  # the fault is that of another field
    ],
)
def test_fields_are_entered_by_a_value_or_a_fault(given: dict[str, str], entered: bool, faults: bool) -> None:
    form = Sample(given)
    form.is_valid()
    assert is_entered(form, "note size") is entered
    assert has_errors(form, "note size not-here") is faults
