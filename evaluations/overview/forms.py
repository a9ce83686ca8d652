"""The form of a new evaluation."""

from django import forms

from evaluations.web.forms import MultilineField


class NewEvaluationForm(forms.Form):
    name = forms.CharField(max_length=200, help_text="What you compare and for whom, such as “Support answers, March”.")
    slug = forms.CharField(
        label="Address",
        max_length=80,
        required=False,
        help_text="Small letters, digits and hyphens. Left empty, it is made from the name.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    description = MultilineField(rows=3, required=False, help_text="One or two sentences for those who take part.")
