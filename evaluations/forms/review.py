"""The shape of what a reviewer sends; what of it is allowed, the service says."""

from collections.abc import Iterable
from typing import Any

from django import forms

from evaluations.domain import AspectSpec, Choice
from evaluations.models import Review


class StepForm(forms.Form):
    """Every step names the version of the review that it was made from, and the time spent on it."""

    version = forms.IntegerField(min_value=0, max_value=2**31 - 1)
    active_ms = forms.IntegerField(min_value=0, required=False)

    def clean_active_ms(self) -> int:
        return self.cleaned_data["active_ms"] or 0


class ChoicesForm(StepForm):
    """One choice per aspect, as the person sees the two sides, and a note to each and to all."""

    note = forms.CharField(required=False, max_length=10_000)

    def __init__(self, aspects: Iterable[AspectSpec], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.keys = [aspect.key for aspect in aspects]
        for key in self.keys:
            choices = [(choice.value, choice.value) for choice in Choice]
            self.fields[f"choice_{key}"] = forms.ChoiceField(choices=choices, required=False)
            self.fields[f"note_{key}"] = forms.CharField(required=False, max_length=10_000)

    def choices(self) -> dict[str, Choice]:
        given = {key: self.cleaned_data.get(f"choice_{key}") for key in self.keys}
        return {key: Choice(choice) for key, choice in given.items() if choice}

    def notes(self) -> dict[str, str]:
        given = {key: self.cleaned_data.get(f"note_{key}") for key in self.keys}
        return {key: note for key, note in given.items() if note}


class SkipForm(StepForm):
    reason = forms.CharField(required=False, max_length=Review._meta.get_field("skip_reason").max_length)
