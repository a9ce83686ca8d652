"""Validation of query parameters by the filter forms of the pages."""

from collections.abc import Collection

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import HttpRequest

from evaluations.api.problems import FieldError, Problem


def validate_filters(request: HttpRequest, form: forms.Form, other_parameters: Collection[str]) -> None:
    """Refuse impossible values, and filters that are unknown or closed to this person: they would be ignored."""
    if unknown := sorted(request.GET.keys() - form.fields.keys() - set(other_parameters)):
        faults = [FieldError(f"query.{name}", "Unknown filter, or not available to you.") for name in unknown]
        raise Problem("invalid", f"You cannot use a filter “{unknown[0][:60]}” here.", faults=faults)
    if not form.is_valid():
        faults = [
            FieldError("query" if name == NON_FIELD_ERRORS else f"query.{name}", str(message))
            for name, messages in form.errors.items()
            for message in messages
        ]
        raise Problem("invalid", f"{faults[0].message} Nothing was done.", faults=faults)
