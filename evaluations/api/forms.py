"""The forms of the pages check what programs send, too: the same rules in the same words."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from ninja import Schema

from evaluations.api.problems import Fault, Problem


def sent(body: Schema) -> dict[str, Any]:
    """What was said, by name; what was left out is not there."""
    return body.model_dump(exclude_unset=True, mode="json")


def checked(form: forms.BaseForm, where: str = "body") -> dict[str, Any]:
    """What the form made of it, or every fault with its place."""
    if not form.is_valid():
        refuse(form.errors, where)
    return form.cleaned_data


def refuse(errors: Mapping[str, Any], where: str = "body") -> None:
    faults = [
        Fault(where if name == NON_FIELD_ERRORS else f"{where}.{name}", str(said))
        for name, messages in errors.items()
        for said in messages
    ]
    raise Problem("invalid", f"{faults[0].message} Nothing was done.", faults=faults)


def refuse_unknown(given: Mapping[str, Any], form: forms.BaseForm, besides: tuple[str, ...] = ()) -> None:
    """A filter that is not known, or that this person may not use, would silently find something else."""
    unknown = sorted(set(given) - set(form.fields) - set(besides))
    if unknown:
        faults = [Fault(f"query.{name}", "There is no such filter here for you.") for name in unknown]
        raise Problem("invalid", f"There is no filter “{unknown[0][:60]}” here for you.", faults=faults)
