"""What comes with a draft beside its fields."""

from django import forms

from evaluations.forms.review import StepForm


class DraftForm(StepForm):
    """``number``: the draft that the page has seen last."""

    number = forms.IntegerField(min_value=0, max_value=2**31 - 1)
