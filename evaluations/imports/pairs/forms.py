"""The form that chooses a way of pairing."""

from typing import Any

from django import forms

from evaluations.comparisons.pairing.selectors import PAIR_ALL, PAIR_BASELINE, PAIR_RANDOM
from evaluations.imports.forms import PAIRING_CHOICES
from evaluations.models.evaluations import Evaluation


class PairsForm(forms.Form):
    pair = forms.ChoiceField(
        choices=PAIRING_CHOICES, initial=PAIR_ALL, label="Hold against each other", widget=forms.RadioSelect
    )
    baseline = forms.ChoiceField(required=False, label="The candidate to hold the others against")
    pairs_each = forms.IntegerField(
        required=False, min_value=1, max_value=999_999, initial=1, label="Pairs of each query"
    )
    confirmed = forms.BooleanField(required=False, label="Make them even if they are more than 100,000")

    def __init__(self, evaluation: Evaluation, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = evaluation.candidates.order_by("name").values_list("name", flat=True)
        self.fields["baseline"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]

    def ways(self) -> dict[str, str]:
        """Each way of pairing as it would be asked for with what else is entered."""
        told = self.cleaned_data if self.is_bound and self.is_valid() else {}
        first = next(iter(self.fields["baseline"].choices), ("", ""))[0]  # type: ignore[attr-defined]
        rest = {PAIR_BASELINE: told.get("baseline") or first, PAIR_RANDOM: told.get("pairs_each") or 1}
        return {way: f"{way}:{rest[way]}" if way in rest else way for way, _ in PAIRING_CHOICES if rest.get(way, True)}
