"""The form of a new evaluation."""

from django import forms


class NewEvaluationForm(forms.Form):
    name = forms.CharField(max_length=200, help_text="For example: Support answers, March.")
    slug = forms.CharField(
        label="URL name",
        max_length=80,
        required=False,
        help_text="Lowercase letters, digits, hyphens. Generated from the name if blank.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
