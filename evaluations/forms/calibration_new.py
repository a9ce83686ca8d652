import re
from typing import Any

from django import forms

from evaluations.services.reviewing.posing import MOST


class NumbersField(forms.CharField):
    """Numbers of comparisons, in any order, separated by commas, spaces or lines."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}), **options)

    def clean(self, value: Any) -> list[int]:
        given: list[str] = [part for part in re.split(r"[\s,;]+", super().clean(value)) if part]
        wrong = [part for part in given if not (part.isascii() and part.isdecimal() and len(part) < 19)]
        if wrong:
            raise forms.ValidationError(f"“{wrong[0][:40]}” is not the number of a comparison.")
        return [int(part) for part in given]


class CalibrationForm(forms.Form):
    name = forms.CharField(max_length=120, initial="Calibration")
    size = forms.IntegerField(
        label="How many, drawn at random",
        min_value=1,
        max_value=MOST,
        required=False,
        help_text="Of those with a known label. Eight to twenty show whether somebody reads the guidelines as you do.",
    )
    comparisons = NumbersField(
        label="Or these",
        required=False,
        help_text="The numbers of comparisons with a known label, in the order in which they are to be met.",
    )
    seed = forms.IntegerField(
        initial=0, min_value=0, max_value=2**53, help_text="The same seed draws the same comparisons again."
    )

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if not self.errors and bool(given.get("size")) == bool(given.get("comparisons")):
            raise forms.ValidationError("Say either how many are to be drawn, or which ones they are.")
        return given
