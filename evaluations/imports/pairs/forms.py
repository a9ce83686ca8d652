"""The form that chooses a way of pairing."""

from typing import Any

from django import forms

from evaluations.domain.pairing import MAX_PAIRS_PER_QUERY, PairingWay
from evaluations.imports.forms import PAIRING_CHOICES
from evaluations.models.evaluations import Evaluation


class PairsForm(forms.Form):
    pair = forms.ChoiceField(
        choices=PAIRING_CHOICES, initial=PairingWay.ALL, label="Hold against each other", widget=forms.RadioSelect
    )
    baseline = forms.ChoiceField(required=False, label="The candidate to hold the others against")
    pairs_each = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_PAIRS_PER_QUERY, initial=1, label="Pairs of each query"
    )
    confirmed = forms.BooleanField(required=False, label="Make them even if they are more than 100,000")

    def __init__(self, evaluation: Evaluation, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = evaluation.candidates.order_by("name").values_list("name", flat=True)
        self.fields["baseline"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]
