from typing import Any

from django import forms

from evaluations.services.importing.adding import Written

MAX_TEXT = 500_000
CANDIDATE = forms.TextInput(attrs={"list": "candidates", "autocomplete": "off", "spellcheck": "false"})


class LongText(forms.CharField):
    """Text as it was written; browsers send line ends in a way of their own."""

    def __init__(self, *, rows: int, **options: Any) -> None:
        super().__init__(
            max_length=MAX_TEXT, strip=False, widget=forms.Textarea(attrs={"rows": rows, "dir": "auto"}), **options
        )

    def to_python(self, value: Any) -> str:
        text: str = super().to_python(value) or ""
        return text.replace("\r\n", "\n")


class ComparisonForm(forms.Form):
    query = LongText(rows=4, help_text="What was asked, word for word.")
    category = forms.CharField(required=False, max_length=120, help_text="A group to filter and report by.")
    context = LongText(rows=3, required=False, help_text="What the candidates were given besides the query.")
    reference = LongText(rows=3, required=False, help_text="An answer known to be right.")
    first_candidate = forms.CharField(label="Candidate", max_length=200, widget=CANDIDATE)
    first_response = LongText(rows=10, label="Its response")
    second_candidate = forms.CharField(label="Other candidate", max_length=200, widget=CANDIDATE)
    second_response = LongText(rows=10, label="Its response")

    def written(self) -> Written:
        return Written(**self.cleaned_data)
