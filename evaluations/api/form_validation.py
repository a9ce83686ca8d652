"""Validation of API input by the forms of the pages."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from ninja import Schema

from evaluations.api.problems import FieldError, Problem


def dump_sent_fields(body: Schema) -> dict[str, Any]:
    """The fields that the program sent, by name; omitted fields are absent."""
    return body.model_dump(exclude_unset=True, mode="json")


def clean_form(form: forms.BaseForm, where: str = "body") -> dict[str, Any]:
    """The form's cleaned data, or a problem with every field error."""
    if not form.is_valid():
        raise_form_errors(form.errors, where)
    return form.cleaned_data


def raise_form_errors(errors: Mapping[str, Any], where: str = "body") -> None:
    faults = [
        FieldError(where if name == NON_FIELD_ERRORS else f"{where}.{name}", str(said))
        for name, messages in errors.items()
        for said in messages
    ]
    raise Problem("invalid", f"{faults[0].message} Nothing was done.", faults=faults)


def refuse_unknown_filters(given: Mapping[str, object], form: forms.BaseForm, besides: tuple[str, ...] = ()) -> None:
    """A filter that is not known, or that this person may not use, would silently find something else."""
    unknown = sorted(set(given) - set(form.fields) - set(besides))
    if unknown:
        faults = [FieldError(f"query.{name}", "There is no such filter here for you.") for name in unknown]
        raise Problem("invalid", f"There is no filter “{unknown[0][:60]}” here for you.", faults=faults)
